"""An operator written in Go with controller-runtime, unmodified, against this server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..conftest import RunningServer
from .go_programs import build, run

STEPS = ["elected", "typed", "conflicts", "apply", "pages", "reconcile", "done"]
SPEC: dict[str, Any] = {"type": "object", "properties": {"replicas": {"type": "integer", "minimum": 0}}}
STATUS: dict[str, Any] = {"type": "object", "properties": {"readyReplicas": {"type": "integer"}}}


@pytest.fixture
async def operator(tmp_path: Path) -> Path:
    """The program, built."""
    return await build("build", ".", into=tmp_path / "operator")


@pytest.mark.timeout(900)
async def test_an_operator(operator: Path, apiserver: RunningServer, tmp_path: Path) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}}
    await apiserver.define(group="interop.example.com", version={"schema": schema})

    code, out = await run(str(operator), cwd=tmp_path, KUBECONFIG=str(apiserver.kubeconfig))

    assert (code, out.splitlines()) == (0, STEPS), out
