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
async def served(apiserver: Any) -> AsyncIterator[Client]:
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
    served: Client, apiserver: Any, name: str
) -> None:
    before = (await served.get(MY_APP, "example-myapp"))["spec"]
    code, out, err = await run(name, apiserver.kubeconfig)
    after = (await served.get(MY_APP, "example-myapp"))["spec"]
    assert code == 0, err
    assert datetime.fromisoformat(after["version"]).tzinfo is not None
    assert out.startswith(f"spec.version is now {after['version']}")
    assert after == {**before, "version": after["version"]}


@pytest.mark.parametrize("name", ["update_typed.py", "update_untyped.py"])
async def test_a_failure_is_no_conflict(served: Client, apiserver: Any, tmp_path: Path, name: str) -> None:
    await served.delete(MY_APP, "example-myapp")
    code, _, err = await run(name, apiserver.kubeconfig)
    assert code == 1
    assert 'failed: myapps.myorg.io "example-myapp" not found' in err
    code, _, err = await run(name, str(tmp_path / "absent"))
    assert code == 1
    assert "failed: no kubeconfig" in err


PATH = "/apis/myorg.io/v1/namespaces/default/myapps/example-myapp"
LOST = {"kind": "Status", "code": 409, "reason": "Conflict", "message": "the object has been modified"}


def rival(peer: Any, answer: Any, conflicts: int, kubeconfig: Path) -> None:
    """A server on which another manager has written between every read and write, so many times."""
    for version in range(conflicts + 1):
        entry = {
            "manager": "rival",
            "operation": "Update",
            "fieldsV1": {"f:spec": {"f:note": {}}},
            "time": str(version),
        }
        metadata = {"name": "example-myapp", "namespace": "default", "resourceVersion": str(version)}
        app = {"apiVersion": "myorg.io/v1", "kind": "MyApp", "metadata": {**metadata, "managedFields": [entry]}}
        peer.on("GET", PATH, answer(200, {**app, "spec": {"version": "0", "note": f"note {version}"}}))
    served = {"kind": "APIResourceList", "resources": [{"name": "myapps", "kind": "MyApp", "namespaced": True}]}
    peer.on("GET", "/apis/myorg.io/v1", answer(200, served))
    peer.on("PUT", PATH, *[answer(409, LOST)] * conflicts, answer(200, {**app, "spec": {"version": "now"}}))
    cluster = {"name": "c", "cluster": {"server": peer.url}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {}}]
    content = {"clusters": [cluster], "users": users, "contexts": [context], "current-context": "c"}
    kubeconfig.write_text(yaml.safe_dump(content))


@pytest.mark.parametrize("name", ["update_typed.py", "update_untyped.py"])
async def test_after_a_conflict_the_object_is_read_again(peer: Any, answer: Any, tmp_path: Path, name: str) -> None:
    rival(peer, answer, 1, tmp_path / "config")
    code, out, err = await run(name, str(tmp_path / "config"))
    assert (code, out) == (0, "spec.version is now now, at resourceVersion 1\n")
    assert err.startswith("conflict in attempt 1 of 5")
    writes = peer.asked_for("PUT", PATH)
    assert [write.body["metadata"]["resourceVersion"] for write in writes] == ["0", "1"]
    assert [write.body["spec"]["note"] for write in writes] == ["note 0", "note 1"]
    assert writes[1].at - writes[0].at >= 1.0
    if name == "update_typed.py":
        assert '.spec.note: "note 0" -> "note 1" by rival' in err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["update_typed.py", "update_untyped.py"])
async def test_after_five_conflicts_it_gives_up(peer: Any, answer: Any, tmp_path: Path, name: str) -> None:
    rival(peer, answer, 5, tmp_path / "config")
    code, out, err = await run(name, str(tmp_path / "config"))
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "given up after 5 conflicts: the object has been modified"
    assert len(peer.asked_for("PUT", PATH)) == 5


async def test_the_operator_keeps_everything_in_step(served: Client, apiserver: Any) -> None:
    maps = Resource("v1", "ConfigMap", "configmaps", True)
    process = await start("myapp_operator.py", apiserver.kubeconfig)
    async with asyncio.timeout(30), served.watch(MY_APP) as events:
        await served.patch(MY_APP, "example-myapp", {"spec": {"version": "9", "replicas": 4}}, namespace="default")
        async for event in events:
            app = event.object
            if app.get("status", {}).get("version") == "9":
                break
    assert app["status"]["replicas"] == 4
    assert app["status"]["observedGeneration"] == app["metadata"]["generation"]
    assert app["status"]["conditions"][0]["status"] == "True"
    async with asyncio.timeout(30), served.watch(maps, name="example-myapp-settings", namespace="default") as events:
        await anext(events)
        await served.patch(maps, "example-myapp-settings", {"data": {"version": "0"}}, namespace="default")
        async for event in events:
            if event.type == "MODIFIED" and event.object["data"]["version"] == "9":
                break  # put right again
    async with asyncio.timeout(30), served.watch(MY_APP) as events:
        await anext(events)
        await served.delete(MY_APP, "example-myapp", namespace="default")
        async for event in events:
            if event.type == "DELETED":
                break  # the finalizer has let it go
    process.send_signal(signal.SIGTERM)
    _, err = await process.communicate()
    assert process.returncode == 0, err.decode()
