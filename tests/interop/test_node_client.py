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
def node() -> Path:
    """A Node.js that the client can use, which needs a newer one than many have; it is beside the client's modules."""
    if shutil.which("npm") is None:
        pytest.skip("no npm to fetch it with")
    modules = made_once("node", (PROGRAMS / "package.json").read_bytes(), _make) / "node_modules"
    node = next(modules.glob("node-*/bin/node"), None)
    if node is None:
        pytest.skip("no package has a Node.js for this machine")
    return node


async def _make(directory: Path) -> None:
    shutil.copy(PROGRAMS / "package.json", directory)
    install = ("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
    code, out = await run(*install, cwd=directory)
    if code:
        pytest.skip(f"the client cannot be had: {out.strip().splitlines()[-1]}")


@pytest.mark.timeout(600)
async def test_a_client(node: Path, certificates: ServerFiles, tmp_path: Path) -> None:
    program = shutil.copy(PROGRAMS / "with_client.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(node.parents[2])
    code, said, errors = await steps_done([node, program], certificates, tmp_path)
    assert (code, said) == (0, NODE), errors
