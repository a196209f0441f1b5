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


def test_the_plugin_loads_nothing_that_pytest_has_not_loaded() -> None:
    """Every run of pytest loads it, in whatever project."""
    code = (
        "import sys, pytest; before = set(sys.modules)\n"
        "import steersman.testing.plugin; print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)
    assert sorted(done.stdout.split()) == ["steersman", "steersman.testing", "steersman.testing.plugin"]
