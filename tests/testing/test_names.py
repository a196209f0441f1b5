"""What the package exports."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from steersman import testing


@pytest.mark.parametrize("name", sorted(testing._MODULES))
def test_no_module_hides_a_name(name: str) -> None:
    """Importing a submodule sets it as the package's attribute."""
    assert find_spec(f"steersman.testing.{name}") is None


def test_the_order_of_imports_does_not_matter() -> None:
    code = "from steersman.testing import eventually_async, eventually; eventually(lambda: 1)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
