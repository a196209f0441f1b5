"""The front doors: every name resolves, and none costs anything before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import steersman
import steersman.client


@pytest.mark.parametrize("package", [steersman, steersman.client])
def test_every_exported_name_resolves(package: object) -> None:
    for name in package._MODULES:  # type: ignore[attr-defined]
        assert getattr(package, name) is not None
        assert name in dir(package)


@pytest.mark.parametrize("package", [steersman, steersman.client])
def test_an_unknown_name_is_an_attribute_error(package: object) -> None:
    with pytest.raises(AttributeError, match="no attribute 'Absent'"):
        package.Absent  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("module", ["steersman", "steersman.client"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    heavy = "{'aiohttp', 'pydantic', 'yaml', 'asyncio', 'ssl'}"
    code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_client_is_imported_without_its_http_library() -> None:
    code = "import sys; from steersman import Client; print('aiohttp' in sys.modules, 'yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"
