"""An operator as a process: signals, what importing and starting cost, and memory."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
import time
import tracemalloc
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.runtime.kit import MAPS, SOON, Lab, Log, Sent, started

from steersman.client import Resource
from steersman.client.transport import RawResponse
from steersman.runtime.cache.indexer import Indexer

PROGRAM = Path(__file__).with_name("operator_process.py")


@asynccontextmanager
async def operator(lab: Lab, seconds: float) -> AsyncIterator[Process]:
    arguments = [str(PROGRAM), lab.url, lab.group, lab.namespace, str(seconds)]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE, stderr=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def says(process: Process, *words: str) -> None:
    """Returns once it has said these, in any order."""
    assert process.stdout is not None
    async with asyncio.timeout(SOON):
        missing = set(words)
        while missing:
            line = await process.stdout.readline()
            assert line, f"it has ended without {missing}"
            missing.discard(line.decode().strip())


async def test_a_signal_lets_it_end_in_order_and_the_lease_is_free_at_once(lab: Lab) -> None:
    await lab.make("w")
    async with operator(lab, 0.3) as process:
        await says(process, "ready", "begin")
        process.send_signal(signal.SIGTERM)
        await says(process, "end")
        async with asyncio.timeout(SOON):
            assert await process.wait() == 0
    lease = await lab.outside.get(Resource("coordination.k8s.io/v1", "Lease"), "program")
    assert not lease["spec"].get("holderIdentity")


async def test_a_second_signal_ends_it_now(lab: Lab) -> None:
    await lab.make("w")
    async with operator(lab, 60) as process:
        await says(process, "ready", "begin")
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        await asyncio.sleep(0.2)
        assert process.returncode is None
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(SOON):
            assert await process.wait() == 1


def test_importing_costs_little() -> None:
    """R18: what is heavy is loaded when it is used."""
    heavy = ("aiohttp", "pydantic", "steersman.apiserver", "steersman.runtime.manager")
    code = (
        "import sys, time; began = time.process_time(); import steersman; print(time.process_time() - began);"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    best = float("inf")
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        assert out[1] == "[]"
        best = min(best, float(out[0]))
    assert best < 0.15


def test_memory_is_flat_over_many_events() -> None:
    """R18: 1000 objects of 3 KB cost little more than their bytes; 35,000 events later no more than that."""
    indexer = Indexer()
    indexer.add_index("app", lambda raw: [raw["metadata"]["labels"]["app"]])
    payload = {"fields": ["x" * 50] * 50}

    def event(number: int) -> dict[str, Any]:
        metadata = {
            "name": f"object-{number % 1000}",
            "namespace": f"space-{number % 7}",
            "uid": f"uid-{number % 1000}",
            "resourceVersion": str(number + 1),
            "labels": {"app": f"app-{number % 10}"},
        }
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": payload}

    encoded = sum(len(orjson.dumps(event(number))) for number in range(7000)) / 7000
    tracemalloc.start()
    try:
        for number in range(7000):
            list(indexer.tell("MODIFIED", event(number), False))
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        assert before / len(indexer) < encoded + 700
        for number in range(7000, 35_000):
            kind = "DELETED" if number % 11 == 0 else "MODIFIED"
            list(indexer.tell(kind, event(number), False))  # type: ignore[arg-type]
            if number % 5 == 0:
                indexer.observe(event(number))
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after < 1.05 * before


async def test_a_large_object_is_reconciled_and_nothing_is_written_into_it(lab: Lab) -> None:
    """R12: 900 KiB of spec."""
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        widget["status"] = {"ready": len(widget["spec"].get("text", ""))}
        await runs.add(widget["metadata"]["name"])

    manager, wire = lab.manager()
    manager.controller(lab.widget, reconcile)
    body = {"apiVersion": f"{lab.group}/v1", "kind": "Widget", "metadata": {"name": "large"}}
    await lab.outside.create({**body, "spec": {"text": "x" * 900 * 1024}})
    async with started(manager):
        found = await lab.until(lab.widget, "large", lambda found: "status" in found)
        assert found["status"] == {"ready": 900 * 1024}
        assert "annotations" not in found["metadata"]
        assert [sent.method for sent in wire.writes()] == ["PATCH"]


@pytest.mark.slow
async def test_a_busy_server_is_heeded_at_the_start_and_nothing_is_skipped(lab: Lab) -> None:
    """R11: 429 with Retry-After above 50 requests a second."""
    from tests.runtime.kit import Log, started

    from steersman.client.transport import RawResponse

    count, limit = 400, 200
    runs = Log()
    window: list[float] = []

    def refuse(sent: Sent) -> RawResponse | None:
        now = time.monotonic()
        while window and now - window[0] > 1.0:
            window.pop(0)
        if len(window) >= limit:
            body = orjson.dumps({"kind": "Status", "apiVersion": "v1", "code": 429, "reason": "TooManyRequests"})
            return RawResponse(429, (("Retry-After", "1"),), body)
        window.append(now)
        return None

    async def reconcile(ctx: Any, widget: Any) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{ctx.request.name}-cfg"}}
        await ctx.create_or_update(body)
        widget.status.ready = 1
        await runs.add(ctx.request.name)

    for first in range(0, count, 50):
        await asyncio.gather(*(lab.make(f"w{number}") for number in range(first, first + 50)))
    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile).owns(MAPS)
    wire.refuse = refuse
    async with started(manager):
        await runs.until(count)
        await lab.settled(manager)
        assert wire.writes(status=429)
    found = [each async for each in lab.outside.list(lab.widget, namespace=lab.namespace)]
    assert len([each for each in found if each.get("status") == {"ready": 1}]) >= count
    assert sorted(name for name in runs.entries if name.startswith("w")) == sorted(f"w{n}" for n in range(count))
