"""Time that passes when a test says so."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import RunningServer

import steersman as st
from steersman.testing import advance, eventually_async, running
from steersman.testing.apiserver import fresh_server

MAP = st.Resource("v1", "ConfigMap")
HERE = st.CacheScope(namespaces=["kube-public"])


async def test_timers_fire_in_their_order_and_as_often_as_they_would() -> None:
    loop = asyncio.get_running_loop()
    fired: list[str] = []

    async def every_minute() -> None:
        while True:
            await asyncio.sleep(60)
            fired.append("minute")

    ticking = asyncio.create_task(every_minute())
    loop.call_later(150, fired.append, "late")
    await asyncio.sleep(0)
    before = loop.time()
    await advance(185)
    assert fired == ["minute", "minute", "late", "minute"]
    assert loop.time() - before >= 185
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3600):
            await advance(3700)
    ticking.cancel()


async def test_an_operator_comes_back_when_it_has_said(apiserver: RunningServer) -> None:
    runs: list[str] = []

    async def reconcile(ctx: st.Context, obj: st.Object) -> st.Result:
        runs.append(obj["metadata"]["name"])
        return st.Result(requeue_after=3600)

    async with await apiserver.client() as client:
        manager = st.Manager(client=client, watch_default=HERE)
        manager.controller(MAP, reconcile)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "kube-public"}}
        async with running(manager):
            await client.create(body)
            for times in (1, 2, 3):

                async def check(times: int = times) -> None:
                    assert runs.count("a") == times

                await eventually_async(check, timeout=60)
                await advance(3601)


async def test_a_lease_runs_out(apiserver: RunningServer) -> None:
    """A leader that has died without a word is followed after its lease, of which nobody has to wait."""
    led: list[str] = []

    def elector(client: st.Client, name: str) -> st.LeaderElector:
        return st.LeaderElector(client, st.LeaseLock("default", "lock"), identity=name)

    async def lead(leadership: st.Leadership) -> None:
        led.append(leadership.identity)
        await asyncio.Event().wait()

    async with await apiserver.client() as client, await apiserver.client() as other:
        lease = st.Resource("coordination.k8s.io/v1", "Lease")
        dead = {"holderIdentity": "dead", "leaseDurationSeconds": 300, "leaseTransitions": 4}
        times = {"acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z"}
        metadata = {"name": "lock", "namespace": "default"}
        await client.create(
            {"apiVersion": lease.api_version, "kind": lease.kind, "metadata": metadata, "spec": {**dead, **times}}
        )
        task = asyncio.create_task(elector(other, "next").run(lead))

        async def check() -> None:
            await advance(150)
            assert led == ["next"]

        await eventually_async(check, timeout=3600 * 24)
        task.cancel()
        await asyncio.wait([task])
        assert (await client.get(lease, "lock", namespace="default"))["spec"]["leaseTransitions"] == 5


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (math.inf, ValueError),
        (1e308, ValueError),
        (math.nan, ValueError),
        (-1, ValueError),
        ("5", TypeError),
        (None, TypeError),
        (True, TypeError),
    ],
)
def test_what_is_no_time(seconds: Any, error: type[Exception], tmp_path: Path) -> None:
    told = "takes (a number of|from 0 to 3153600000) seconds"
    with pytest.raises(error, match=f"^advance {told}"):
        asyncio.run(advance(seconds))
    with fresh_server(tmp_path) as server:
        with pytest.raises(error, match=f"^advance {told}"):
            server.advance(seconds)
        with pytest.raises(error, match=f"^restart {told}"):
            server.restart(seconds)
        assert server.kube.server_version()["major"]
