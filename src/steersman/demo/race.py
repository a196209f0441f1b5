"""Writers that race on one counter, each through `Client.modify`: get, change, put, and again after a Conflict."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import steersman as st
from steersman.demo.server import DemoError

NAMESPACE, NAME = "default", "example-myapp"
MANAGER = "steersman-demo"
ESTABLISHED_WITHIN = 30.0

# Short waits of random length (5 to 50 ms): the writers meet again and again, but not in step for ever.
BACKOFF = st.Backoff(steps=200, duration=0.005, jitter=9.0)

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "myapps.myorg.io"},
    "spec": {
        "group": "myorg.io",
        "scope": "Namespaced",
        "names": {"plural": "myapps", "singular": "myapp", "kind": "MyApp", "listKind": "MyAppList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Counter", "type": "integer", "jsonPath": ".spec.counter"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"counter": {"type": "integer", "minimum": 0, "default": 0}},
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


class MyAppSpec(st.Model):
    counter: int = 0


@st.custom_resource("myorg.io/v1", plural="myapps", namespaced=True)
class MyApp(st.CustomResource[MyAppSpec, dict[str, Any]]): ...


@dataclass
class Writer:
    """What one writer went through. `conflicts` are lost races; `most` is the most tries that one increment took."""

    name: str
    writes: int = 0
    conflicts: int = 0
    retries: int = 0
    most: int = 0
    failure: Exception | None = None


@dataclass
class Result:
    """The end of a race: `counter` as a fresh read gives it, of `expected`. `seconds` is how long the writers took."""

    expected: int
    counter: int
    generation: int
    seconds: float
    writers: list[Writer] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return self.counter == self.expected and not any(writer.failure for writer in self.writers)


class Audience(Protocol):
    """Who is told of the race while it goes on."""

    def fact(self, name: str, text: str) -> None: ...

    def conflict(self, loser: str, report: st.ConflictReport) -> None: ...


async def run(kubeconfig: Path, writers: int, increments: int, audience: Audience) -> Result:
    """Define MyApp, create one, let `writers` add 1 to its counter `increments` times each, and read it again."""
    config = st.load(kubeconfig=kubeconfig)
    async with st.Client(config, field_manager=MANAGER) as client:
        await _define(client)
        audience.fact("kind", f"{CRD['metadata']['name']} is defined and served")
        app = MyApp.model_validate({"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {"counter": 0}})
        await client.create(app)
        audience.fact("object", f"MyApp {NAMESPACE}/{NAME} with spec.counter: 0")
        began = time.monotonic()
        racing = [_write(config, f"writer-{number}", increments, audience) for number in range(1, writers + 1)]
        ended = await asyncio.gather(*racing)
        seconds = time.monotonic() - began
        final = await client.get(MyApp, NAME, namespace=NAMESPACE)
    return Result(writers * increments, final.spec.counter, final.metadata.generation, seconds, ended)


async def _define(client: st.Client) -> None:
    """Create the CRD, and return when its kind is served."""
    crd = await client.create(CRD)
    kind, version = st.Resource.of(crd), crd["metadata"]["resourceVersion"]
    try:
        async with (
            asyncio.timeout(ESTABLISHED_WITHIN),
            client.watch(kind, name=crd["metadata"]["name"], resource_version=version) as events,
        ):
            async for event in events:
                conditions = event.object.get("status", {}).get("conditions", [])
                if any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions):
                    return
    except TimeoutError:
        raise DemoError(f"MyApp was not served within {ESTABLISHED_WITHIN:.0f} s") from None


async def _write(config: st.Config, name: str, increments: int, audience: Audience) -> Writer:
    """One writer, with connections of its own."""
    writer = Writer(name)
    tries = 0

    def add(app: MyApp) -> None:
        nonlocal tries
        tries += 1
        app.spec.counter += 1

    def lost(report: st.ConflictReport) -> None:
        writer.conflicts += 1
        audience.conflict(name, report)

    async with st.Client(config, field_manager=name) as client:
        for _ in range(increments):
            tries = 0
            try:
                await client.modify(MyApp, NAME, add, namespace=NAMESPACE, backoff=BACKOFF, on_conflict=lost)
            except (st.ApiError, st.ClientError) as error:
                writer.failure = error
                break
            writer.writes += 1
            writer.retries += tries - 1
            writer.most = max(writer.most, tries)
    return writer
