"""What a type checker makes of a reconciler."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

PROGRAM = """
import steersman as st
from steersman.runtime.blocking import BlockingContext


@st.custom_resource("myorg.io/v1")
class App(st.CustomResource[st.Model, st.Model]): ...


async def reconcile(ctx: st.Context, app: App) -> None:
    made, done = await ctx.create_or_update({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}})
    ready: int = made.get("status", {}).get("ready", 0)
    made, done = await ctx.apply({"apiVersion": "v1", "kind": "Pod", "spec": {"replicas": 1, "items": [1]}})
    ready += made["spec"]["replicas"]
    typed, done = await ctx.create_or_update(app, lambda found: None)
    typed.metadata.name.upper()


def plain(ctx: BlockingContext, app: App) -> None:
    made, done = ctx.create_or_update({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}})
    made["status"]["ready"] += 1
    ctx.apply(app).object.metadata.name.upper()
"""


@pytest.mark.slow
async def test_untyped_objects_are_what_they_are_called(tmp_path: Path) -> None:
    (tmp_path / "operator_program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "operator_program.py"]
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    assert told.decode().startswith("Success"), told.decode()
