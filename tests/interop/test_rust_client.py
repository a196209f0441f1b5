"""kube-rs, unmodified, in a program that does with it what its users do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ..conftest import ServerFiles
from .go_programs import run
from .programs import HERE, made_once, steps_done
from .steps import RUST

SOURCE = HERE / "rust"


@pytest.fixture(scope="module")
def program() -> Path:
    """The program, built once for a user of this machine."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo to build it with")
    written = (SOURCE / "Cargo.toml").read_bytes() + (SOURCE / "src/main.rs").read_bytes()
    return made_once("rust", written, _build) / "with_kube"


async def _build(directory: Path) -> None:
    crate = directory / "crate"
    shutil.copytree(SOURCE, crate)
    code, out = await run("cargo", "fetch", cwd=crate)
    if code:
        pytest.skip(f"its crates cannot be had: {out.strip().splitlines()[-1]}")
    code, out = await run("cargo", "build", "--offline", cwd=crate, CARGO_TARGET_DIR=str(crate / "target"))
    assert code == 0, out
    (crate / "target/debug/with_kube").rename(directory / "with_kube")
    shutil.rmtree(crate)


@pytest.mark.timeout(3000)
async def test_a_client(program: Path, certificates: ServerFiles, tmp_path: Path) -> None:
    code, said, errors = await steps_done([program], certificates, tmp_path)
    assert (code, said) == (0, RUST), errors
