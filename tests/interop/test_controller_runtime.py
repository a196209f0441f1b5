"""An operator written in Go with controller-runtime, unmodified, against this server."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ..conftest import RunningServer

SOURCE = Path(__file__).parent / "controller_runtime"
STEPS = ["elected", "typed", "conflicts", "apply", "pages", "reconcile", "done"]
SPEC: dict[str, Any] = {"type": "object", "properties": {"replicas": {"type": "integer", "minimum": 0}}}
STATUS: dict[str, Any] = {"type": "object", "properties": {"readyReplicas": {"type": "integer"}}}


async def run(*command: str, cwd: Path, **environment: str) -> tuple[int, str]:
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


@pytest.fixture
async def operator(tmp_path: Path) -> Path:
    """The program, built; its modules come from Go's cache, or from where Go gets modules."""
    if shutil.which("go") is None:
        pytest.skip("no Go to build the operator with")
    code, out = await run("go", "mod", "download", cwd=SOURCE)
    if code:
        pytest.skip(f"the operator's modules cannot be had: {out.strip().splitlines()[-1]}")
    program = tmp_path / "operator"
    code, out = await run("go", "build", "-o", str(program), ".", cwd=SOURCE)
    assert code == 0, out
    return program


@pytest.mark.timeout(900)
async def test_an_operator(operator: Path, apiserver: RunningServer, tmp_path: Path) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}}
    await apiserver.define(group="interop.example.com", version={"schema": schema})

    code, out = await run(str(operator), cwd=tmp_path, KUBECONFIG=str(apiserver.kubeconfig))

    assert (code, out.splitlines()) == (0, STEPS), out
