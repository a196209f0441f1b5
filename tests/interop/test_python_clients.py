"""Clients in Python, unmodified, each in a program that does with it what its users do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ..conftest import ServerFiles
from .go_programs import run
from .programs import HERE, made_once, steps_done
from .steps import PYTHON

PROGRAMS = HERE / "python"


@pytest.fixture(scope="module")
def python() -> Path:
    """An interpreter that has the clients."""
    wanted = (PROGRAMS / "requirements.txt").read_bytes() + sys.version.encode()
    return made_once("clients", wanted, _make) / "bin" / "python"


async def _make(environment: Path) -> None:
    code, out = await run(sys.executable, "-m", "venv", str(environment), cwd=environment)
    assert code == 0, out
    install = (f"{environment}/bin/python", "-m", "pip", "install", "-q", "-r")
    code, out = await run(*install, str(PROGRAMS / "requirements.txt"), cwd=environment)
    if code:
        pytest.skip(f"the clients cannot be had: {out.strip().splitlines()[-1]}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", PYTHON)
async def test_a_client(client: str, python: Path, certificates: ServerFiles, tmp_path: Path) -> None:
    code, said, errors = await steps_done([python, PROGRAMS / f"with_{client}.py"], certificates, tmp_path)
    assert (code, said) == (0, PYTHON[client]), errors
