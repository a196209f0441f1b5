"""Many writers count up one object's counter: no increment is lost, and the versions tell the order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from lightkube import AsyncClient, KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource

from steersman.client.resources import Object, Resource
from steersman.client.retry import Backoff

from ..server_process import ServerProcess

GROUP = "test.example.com"
COUNTER = Resource(f"{GROUP}/v1", "Counter", "counters", True)
NAME = "shared"
WRITERS = 64
PATIENT = Backoff(steps=1000, duration=0.005, factor=2.0, jitter=3.0, cap=0.1)
"""Enough attempts for the unluckiest of all writers."""


def crd() -> Object:
    count = {"type": "object", "properties": {"count": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": count}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"counters.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "counters", "singular": "counter", "kind": "Counter", "listKind": "CounterList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """A server with one counter at 0."""
    async with ServerProcess(tmp_path) as server:
        async with server.client(namespace="default") as client:
            definition = await client.create(crd())
            watch = client.watch(Resource.of(definition), name=definition["metadata"]["name"])
            async with asyncio.timeout(10), watch as events:
                async for event in events:
                    conditions = event.object.get("status", {}).get("conditions") or []
                    if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
                        break
            meta = {"name": NAME, "namespace": "default"}
            kind = {"apiVersion": COUNTER.api_version, "kind": COUNTER.kind}
            await client.create({**kind, "metadata": meta, "spec": {"count": 0}})
        yield server
        assert await server.terminate() == 0
        assert "Traceback" not in server.log


class Results:
    """What the writers were told: each count that was written, with its version and generation."""

    def __init__(self) -> None:
        self.written: dict[int, tuple[int, int]] = {}

    def add(self, obj: Any) -> None:
        count, meta = obj["spec"]["count"], obj["metadata"]
        assert count not in self.written, f"two writers wrote {count}"
        self.written[count] = int(meta["resourceVersion"]), meta["generation"]

    def check(self, final: Any, increments: int) -> None:
        """Every count was written once; versions rise with it, generations rise by one."""
        assert final["spec"]["count"] == increments
        assert sorted(self.written) == list(range(1, increments + 1))
        versions = [self.written[count][0] for count in range(1, increments + 1)]
        assert versions == sorted(set(versions))
        assert all(generation == count + 1 for count, (_, generation) in self.written.items())
        last = final["metadata"]
        assert (int(last["resourceVersion"]), last["generation"]) == self.written[increments]


@pytest.mark.slow
async def test_modify_loses_no_increment(server: ServerProcess) -> None:
    results = Results()

    def increment(obj: Object) -> None:
        obj["spec"]["count"] += 1

    async with server.client(namespace="default") as client:

        async def write(times: int) -> None:
            for _ in range(times):
                results.add(await client.modify(COUNTER, NAME, increment, backoff=PATIENT))

        await asyncio.gather(*(write(80) for _ in range(WRITERS)))
        results.check(await client.get(COUNTER, NAME), 80 * WRITERS)


@pytest.mark.slow
async def test_another_library_loses_no_increment(server: ServerProcess) -> None:
    """The same by the bare protocol: GET, PUT, and again after 409."""
    kind = create_namespaced_resource(GROUP, "v1", "Counter", "counters")
    client = AsyncClient(KubeConfig.from_file(server.kubeconfig), namespace="default")
    results = Results()

    async def write(times: int) -> None:
        for _ in range(times):
            results.add(await increment())

    async def increment() -> Any:
        wait = 0.05
        while True:
            obj = await client.get(kind, NAME)
            obj["spec"]["count"] += 1
            try:
                return (await client.replace(obj)).to_dict()
            except ApiError as error:
                assert error.status.code == 409
            await asyncio.sleep(random.uniform(wait, 2 * wait))
            wait = min(2 * wait, 0.8)

    try:
        await asyncio.gather(*(write(80) for _ in range(WRITERS)))
        results.check((await client.get(kind, NAME)).to_dict(), 80 * WRITERS)
    finally:
        await client.close()
