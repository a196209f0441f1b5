"""The examples as their users run them: as programs, against a real API server."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.apimachinery import errors
from steersman.client import Client, Resource

EXAMPLES = Path(__file__).parents[2] / "examples"
CRD = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition")
MY_APP = Resource("myorg.io/v1", "MyApp", "myapps", True)


@pytest.fixture
async def client(apiserver: Any) -> AsyncIterator[Client]:
    """A client of a server that serves MyApp, with the example's object."""
    async with await apiserver.client() as client:
        await client.create(yaml.safe_load((EXAMPLES / "myapp-crd.yaml").read_text()))
        async with asyncio.timeout(30), client.watch(CRD, name="myapps.myorg.io") as events:
            async for event in events:
                conditions = event.object.get("status", {}).get("conditions") or []
                if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                    break
        await client.create(yaml.safe_load((EXAMPLES / "example-myapp.yaml").read_text()))
        yield client
        await client.delete(CRD, "myapps.myorg.io")
        async with asyncio.timeout(30), client.watch(CRD, name="myapps.myorg.io") as events:
            while await _exists(client):
                await anext(events)


async def _exists(client: Client) -> bool:
    try:
        await client.get(CRD, "myapps.myorg.io")
    except errors.NotFound:
        return False
    return True


async def start(name: str, kubeconfig: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-X",
        "dev",
        "-W",
        "error",
        str(EXAMPLES / name),
        env={**os.environ, "KUBECONFIG": kubeconfig},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def run(name: str, kubeconfig: str) -> tuple[int | None, str, str]:
    process = await start(name, kubeconfig)
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("name", ["update_typed.py", "update_untyped.py"])
async def test_the_version_is_set_to_the_time_and_nothing_else_changes(
    client: Client, apiserver: Any, name: str
) -> None:
    before = (await client.get(MY_APP, "example-myapp"))["spec"]
    code, out, err = await run(name, apiserver.kubeconfig)
    after = (await client.get(MY_APP, "example-myapp"))["spec"]
    assert code == 0, err
    assert datetime.fromisoformat(after["version"]).tzinfo is not None
    assert out.startswith(f"spec.version is now {after['version']}")
    assert after == {**before, "version": after["version"]}


@pytest.mark.parametrize("name", ["update_typed.py", "update_untyped.py"])
async def test_a_failure_is_no_conflict(client: Client, apiserver: Any, tmp_path: Path, name: str) -> None:
    await client.delete(MY_APP, "example-myapp")
    code, _, err = await run(name, apiserver.kubeconfig)
    assert code == 1
    assert 'failed: myapps.myorg.io "example-myapp" not found' in err
    code, _, err = await run(name, str(tmp_path / "absent"))
    assert code == 1
    assert "failed: no kubeconfig" in err


@pytest.mark.slow
async def test_conflicts_without_end_are_no_failure(client: Client, apiserver: Any) -> None:
    """A mutating write by somebody else lands between every read and its write."""
    names = ("update_typed.py", "update_untyped.py")
    done = asyncio.Event()

    async def rival() -> None:
        count = 0
        while not done.is_set():
            count += 1
            await client.patch(MY_APP, "example-myapp", {"spec": {"note": f"rival {count}"}}, field_manager="rival")

    rivals = [asyncio.ensure_future(rival()) for _ in range(2)]
    results = await asyncio.gather(*[run(name, apiserver.kubeconfig) for name in names])
    done.set()
    await asyncio.gather(*rivals)
    for code, out, err in results:
        lost = [line for line in err.splitlines() if line.startswith("conflict in attempt")]
        assert (code == 2) == (len(lost) == 5)
        assert (code == 0) == out.startswith("spec.version is now")


async def test_the_operator_keeps_the_status_in_step(client: Client, apiserver: Any) -> None:
    process = await start("myapp_operator.py", apiserver.kubeconfig)
    async with asyncio.timeout(30), client.watch(MY_APP) as events:
        await client.patch(MY_APP, "example-myapp", {"spec": {"version": "9", "replicas": 4}})
        async for event in events:
            app = event.object
            if app.get("status", {}).get("version") == "9":
                break
    assert app["status"]["replicas"] == 4
    assert app["status"]["observedGeneration"] == app["metadata"]["generation"]
    assert app["status"]["conditions"][0]["status"] == "True"
    process.send_signal(signal.SIGTERM)
    _, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert (await client.get(MY_APP, "example-myapp"))["metadata"]["resourceVersion"] == app["metadata"][
        "resourceVersion"
    ]
