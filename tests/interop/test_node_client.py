"""The official client for JavaScript, in a program that does with it what its users do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ..conftest import ServerFiles
from .go_programs import run
from .programs import HERE, made_once, steps_done
from .steps import NODE

PROGRAMS = HERE / "node"


@pytest.fixture(scope="module")
def modules() -> Path:
    """The client's modules, and among them a Node.js that it can use: it needs a newer one than many have."""
    if shutil.which("npm") is None:
        pytest.skip("no npm to fetch it with")
    return made_once("node", (PROGRAMS / "package.json").read_bytes(), _make) / "node_modules"


async def _make(directory: Path) -> None:
    shutil.copy(PROGRAMS / "package.json", directory)
    install = ("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
    code, out = await run(*install, cwd=directory)
    if code:
        pytest.skip(f"the client cannot be had: {out.strip().splitlines()[-1]}")


@pytest.mark.timeout(600)
async def test_a_client(modules: Path, certificates: ServerFiles, tmp_path: Path) -> None:
    node = next(modules.glob("node-*/bin/node"), None)
    if node is None:
        pytest.skip("no package has a Node.js for this machine")
    program = shutil.copy(PROGRAMS / "with_client.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(modules)
    code, said, errors = await steps_done([node, program], certificates, tmp_path)
    assert (code, said) == (0, NODE), errors
