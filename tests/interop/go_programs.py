"""Programs in Go: their modules come from Go's cache, or from where Go gets modules."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "controller_runtime"


async def run(*command: str, cwd: Path, **environment: str) -> tuple[int, str]:
    """A command's exit status, and what it has printed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


async def build(*command: str, into: Path) -> Path:
    """The program that `go COMMAND -o INTO` makes; the test is skipped where Go, or the modules, cannot be had."""
    if shutil.which("go") is None:
        pytest.skip("no Go to build it with")
    code, out = await run("go", "mod", "download", cwd=SOURCE)
    if code:
        pytest.skip(f"its modules cannot be had: {out.strip().splitlines()[-1]}")
    verb, *rest = command
    code, out = await run("go", verb, "-o", str(into), *rest, cwd=SOURCE)
    assert code == 0, out
    return into
