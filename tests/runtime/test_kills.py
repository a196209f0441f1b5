"""The example operator and the server are killed in the middle, in turn: nothing is lost, and all ends as wanted."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from tests.server_process import ServerProcess

from steersman.apimachinery.errors import ApiError
from steersman.client import ClientError, Resource
from steersman.client.client import Client

ROOT = Path(__file__).parents[2]
MY_APP = Resource("myorg.io/v1", "MyApp", "myapps", True)
MAP = Resource("v1", "ConfigMap", "configmaps", True)
APPS = 12
ROUNDS = 3


async def start_operator(server: ServerProcess) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "steersman.cli", "run", "--no-leader-election"),
        str(ROOT / "examples/myapp_operator.py"),
        env={**os.environ, "KUBECONFIG": str(server.kubeconfig)},
        stderr=asyncio.subprocess.DEVNULL,
    )


async def write(client: Client, name: str, version: str) -> None:
    """Set an app's version, however often the server goes away meanwhile."""
    body = {"apiVersion": "myorg.io/v1", "kind": "MyApp", "metadata": {"name": name}, "spec": {"version": version}}
    while True:
        with suppress(ApiError, ClientError):
            await client.apply(body, field_manager="test", force=True)
            return
        await asyncio.sleep(0.05)


async def settled(client: Client, version: str) -> None:
    """Returns once every app's status and ConfigMap are of a version."""
    pending = {("status", f"app-{number}") for number in range(APPS)} | {
        ("map", f"app-{number}-settings") for number in range(APPS)
    }

    async def follow(kind: Resource, what: str) -> None:
        async with client.watch(kind, namespace="default") as events:
            async for event in events:
                part = event.object.get("status" if what == "status" else "data") or {}
                if event.type != "DELETED" and part.get("version") == version:
                    pending.discard((what, event.object["metadata"]["name"]))
                if not any(kind == what for kind, _ in pending):
                    return

    async with asyncio.timeout(60):
        await asyncio.gather(follow(MY_APP, "status"), follow(MAP, "map"))


@pytest.mark.slow
async def test_either_side_may_be_killed_at_any_time(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server, server.client(namespace="default") as client:
        await client.create(yaml.safe_load((ROOT / "examples/myapp-crd.yaml").read_text()))
        operator = await start_operator(server)
        try:
            for number in range(ROUNDS):
                writes = [
                    asyncio.create_task(write(client, f"app-{index}", f"{number}.{turn}"))
                    for turn in range(4)
                    for index in range(APPS)
                ]
                await asyncio.wait(writes[: APPS * 2])
                if number % 2:
                    operator.kill()
                    await operator.wait()
                    operator = await start_operator(server)
                else:
                    await server.kill()
                    await server.start()
                await asyncio.gather(*writes)
                await asyncio.gather(*(write(client, f"app-{index}", f"end-{number}") for index in range(APPS)))
                await settled(client, f"end-{number}")
            for kind in (MY_APP, MAP):
                names = [obj["metadata"]["name"] async for obj in client.list(kind, namespace="default")]
                assert sum(name.startswith("app-") for name in names) == APPS
        finally:
            operator.terminate()
            await operator.wait()
