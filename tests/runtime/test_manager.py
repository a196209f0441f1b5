"""The manager: what starts and stops in which order, and what it tells of itself."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from typing import Any

import aiohttp
import pytest
from tests.runtime.kit import MAPS, SOON, Lab, Log, Sent, started, started_after

from steersman.client import Resource
from steersman.client.transport import RawResponse, TransportError
from steersman.runtime.cache import informer as informer_module
from steersman.runtime.cache.cache import CacheSyncError
from steersman.runtime.election import Election
from steersman.runtime.leaderelection import LeadershipLost
from steersman.runtime.manager import Manager

QUICK = {"lease_duration": 1.5, "renew_deadline": 1.0, "retry_period": 0.2}
LEASE = Resource("coordination.k8s.io/v1", "Lease")


def election(lab: Lab, **options: Any) -> Election:
    """Patient, so that a busy machine loses nothing, unless it is told to be QUICK."""
    return Election("test", lab.namespace, on_overrun="log", **{"retry_period": 0.2, **options})


async def ask(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


async def test_it_starts_in_order_and_stops_in_the_opposite_one(lab: Lab) -> None:
    order: list[str] = []

    def runs(name: str) -> Any:
        async def runnable(manager: Manager) -> None:
            order.append(f"{name} starts" + (", caches are complete" if manager.ready.is_set() else ""))
            try:
                await asyncio.Event().wait()
            finally:
                order.append(f"{name} stops" + (", leading" if manager.leading.is_set() else ""))

        return runnable

    async def reconcile(ctx: Any, widget: Any) -> None:
        order.append(f"reconcile with token {ctx.fencing_token}")
        await done.add(1)

    done = Log()
    manager, wire = lab.manager(leader_election=election(lab), health="127.0.0.1:0")
    manager.controller(lab.typed, reconcile)
    manager.add_server(runs("webhooks"))
    manager.add(runs("helper"), needs_leader=False)
    manager.add(runs("leader's"))
    await lab.make("w")
    async with started(manager):
        await done.until(1)
        lease = await lab.outside.get(LEASE, "test")
        assert lease["spec"]["holderIdentity"]
    assert order == [
        "webhooks starts",
        "helper starts, caches are complete",
        "leader's starts, caches are complete",
        "reconcile with token 0",
        "leader's stops",
        "helper stops",
        "webhooks stops",
    ]
    lease = await lab.outside.get(LEASE, "test")
    assert not lease["spec"].get("holderIdentity"), "the lease is given up at once"
    assert [sent for sent in wire.sent if sent.watch][-1].path.endswith(("/widgets", "/leases"))


async def test_what_runs_may_end_before_it_stops(lab: Lab) -> None:
    began, ended = Log(), Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await began.add(widget.metadata.name)
        await asyncio.sleep(0.3)
        await ctx.client.patch(lab.widget, widget.metadata.name, {"metadata": {"labels": {"done": "yes"}}})
        await ended.add(widget.metadata.name)

    manager, _ = lab.manager(leader_election=election(lab), grace=math.inf)
    manager.controller(lab.typed, reconcile, concurrency=1)
    await lab.make("first")
    await lab.make("second")
    async with started(manager):
        await began.until(1)
    assert began.entries == ended.entries == ["first"]
    assert (await lab.outside.get(lab.widget, "first"))["metadata"]["labels"] == {"done": "yes"}


async def test_what_runs_too_long_is_cancelled(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    began, ended = Log(), Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await began.add(1)
        try:
            await asyncio.Event().wait()
        finally:
            await ended.add(1)

    manager, _ = lab.manager(grace=0.1)
    manager.controller(lab.typed, reconcile)
    await lab.make("w")
    async with started(manager):
        await began.until(1)
    assert len(ended) == 1
    assert "widget: what still runs after 0.1 s is cancelled" in caplog.text


async def test_a_thread_is_stopped_at_its_next_call(lab: Lab) -> None:
    began = Log()
    loop, go = asyncio.get_running_loop(), threading.Event()
    outcome: list[str] = []

    def reconcile(ctx: Any, widget: Any) -> None:
        asyncio.run_coroutine_threadsafe(began.add(1), loop).result()
        go.wait(SOON)
        try:
            ctx.client.patch(lab.widget, "w", {"metadata": {"labels": {"late": "yes"}}})
        finally:
            outcome.append("refused")

    manager, _ = lab.manager(grace=0.05)
    manager.controller(lab.typed, reconcile)
    await lab.make("w")
    async with started(manager):
        await began.until(1)
        loop.call_later(0.3, go.set)
    assert outcome == ["refused"]
    assert "labels" not in (await lab.outside.get(lab.widget, "w"))["metadata"]


async def test_when_leadership_is_lost_all_work_is_cancelled_at_once(lab: Lab) -> None:
    began, ended = Log(), Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await began.add(1)
        try:
            await asyncio.sleep(SOON)
        finally:
            await ended.add(asyncio.get_running_loop().time())

    def refuse(sent: Sent) -> RawResponse | None:
        if "/leases" in sent.path and down.is_set():
            return RawResponse(500, (), b"{}")
        return None

    down = asyncio.Event()
    manager, wire = lab.manager(leader_election=election(lab, **QUICK), grace=SOON)
    wire.refuse = refuse
    manager.controller(lab.typed, reconcile)
    await lab.make("w")
    running = asyncio.ensure_future(manager.start())
    await began.until(1)
    down.set()
    since = asyncio.get_running_loop().time()
    with pytest.raises(LeadershipLost):
        async with asyncio.timeout(SOON):
            await running
    assert ended.entries[0] - since < QUICK["lease_duration"]


async def test_a_leader_that_was_stopped_writes_nothing_when_it_goes_on(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was frozen finds itself in the middle of its work, before anything can have told it."""
    outcome, loop = Log(), asyncio.get_running_loop()
    begun: list[str] = []
    frozen = 0.0

    async def reconcile(ctx: Any, widget: Any) -> None:
        nonlocal frozen
        begun.append(widget.metadata.name)
        await ctx.client.patch(lab.widget, "w", {"metadata": {"labels": {"written": "before"}}})
        frozen = 15.0
        try:
            await ctx.client.patch(lab.widget, "w", {"metadata": {"labels": {"written": "after"}}})
        except LeadershipLost as error:
            await outcome.add(error)
            raise

    monkeypatch.setattr(loop, "time", lambda: time.monotonic() + frozen)
    manager, _ = lab.manager(leader_election=election(lab, lease_duration=60, renew_deadline=12))
    manager.controller(lab.typed, reconcile, concurrency=1)
    await lab.make("w")
    await lab.make("x")
    running = asyncio.ensure_future(manager.start())
    await outcome.until(1)
    with pytest.raises(LeadershipLost):
        await running
    assert begun == ["w"]
    assert (await lab.outside.get(lab.widget, "w"))["metadata"]["labels"] == {"written": "before"}


async def test_the_lock_is_kept_until_what_is_cancelled_has_ended(lab: Lab) -> None:
    """However often it is cancelled: a thread that still runs is still work of the leader."""
    began, holders = Log(), Log()
    loop = asyncio.get_running_loop()

    def reconcile(ctx: Any, widget: Any) -> None:
        asyncio.run_coroutine_threadsafe(began.add(1), loop).result()
        threading.Event().wait(0.7)
        lease = asyncio.run_coroutine_threadsafe(lab.outside.get(LEASE, "test"), loop).result()
        asyncio.run_coroutine_threadsafe(holders.add(lease["spec"]["holderIdentity"]), loop).result()

    manager, _ = lab.manager(leader_election=election(lab))
    manager.controller(lab.typed, reconcile)
    await lab.make("w")
    running = asyncio.ensure_future(manager.start())
    await began.until(1)
    while not running.done():
        running.cancel()
        await asyncio.wait([running], timeout=0.05)
    assert running.cancelled()
    assert len(holders) == 1
    assert holders.entries[0]
    assert not (await lab.outside.get(LEASE, "test"))["spec"].get("holderIdentity")


async def test_a_lock_that_is_lost_while_it_stops_takes_the_grace_away(lab: Lab) -> None:
    began, ended = Log(), Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await began.add(1)
        try:
            await asyncio.sleep(SOON)
        finally:
            await asyncio.sleep(0.2)
            await ended.add(1)

    down = asyncio.Event()

    def refuse(sent: Sent) -> RawResponse | None:
        return RawResponse(500, (), b"{}") if "/leases" in sent.path and down.is_set() else None

    manager, wire = lab.manager(leader_election=election(lab, **QUICK), grace=SOON)
    wire.refuse = refuse
    manager.controller(lab.typed, reconcile)
    await lab.make("w")
    running = asyncio.ensure_future(manager.start())
    await began.until(1)
    manager.stop()
    down.set()
    async with asyncio.timeout(10):
        await asyncio.wait([running])
    assert isinstance(running.exception(), LeadershipLost)
    assert len(ended) == 1


async def test_the_next_in_line_takes_over_without_a_gap_in_what_is_done(lab: Lab) -> None:
    runs = Log()

    def named(name: str) -> Any:
        async def reconcile(ctx: Any, widget: Any) -> None:
            widget.status.ready = widget.spec.replicas
            await runs.add((name, widget.metadata.name, ctx.fencing_token))

        return reconcile

    first, _ = lab.manager(name="first", leader_election=election(lab))
    second, _ = lab.manager(name="second", leader_election=election(lab))
    first.controller(lab.typed, named("first"))
    second.controller(lab.typed, named("second"))
    await lab.make("w")
    async with started(first):
        waiting = asyncio.ensure_future(second.start())
        async with asyncio.timeout(SOON):
            await second.ready.wait()
        await lab.until(lab.widget, "w", lambda found: "status" in found)
        assert not second.leading.is_set()
    async with asyncio.timeout(SOON):
        await second.leading.wait()
    await lab.outside.patch(lab.widget, "w", {"spec": {"replicas": 5}})
    await lab.until(lab.widget, "w", lambda found: found["status"]["ready"] == 5)
    second.stop()
    await waiting
    assert runs.entries[0] == ("first", "w", 0)
    tokens = {token for name, _, token in runs.entries if name == "second"}
    assert tokens == {1} or tokens == {2}


async def test_a_runnable_that_fails_ends_the_manager_with_its_error(lab: Lab) -> None:
    began, ended = Log(), Log()

    async def broken(manager: Manager) -> None:
        await began.until(1)
        raise ValueError("out of order")

    async def done_early(manager: Manager) -> None:
        """It may end; the others go on."""

    async def reconcile(ctx: Any, widget: Any) -> None:
        await began.add(1)
        await asyncio.sleep(0.05)
        await ended.add(1)

    for needs_leader in (True, False):
        manager, _ = lab.manager(leader_election=election(lab))
        manager.controller(lab.typed, reconcile)
        manager.add(done_early, needs_leader=needs_leader)
        manager.add(broken, needs_leader=needs_leader)
        await lab.outside.apply(
            {"apiVersion": f"{lab.group}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"replicas": 1}}
        )
        with pytest.raises(ValueError, match="out of order"):
            async with asyncio.timeout(SOON):
                await manager.start()
        assert len(began) == len(ended)
        began.entries.clear()
        ended.entries.clear()


async def test_caches_that_do_not_fill_are_named_with_the_reason(lab: Lab) -> None:
    manager, _ = lab.manager(sync_timeout=0.5)
    manager.controller(Resource(f"{lab.group}/v1", "Nothing"), _nothing)
    manager.controller(lab.typed, _nothing)
    with pytest.raises(CacheSyncError) as failure:
        await manager.start()
    assert str(failure.value) == (
        f"not all objects could be read within 0.5 s: Nothing.{lab.group}/v1: "
        f'no matches for kind "Nothing" in version "{lab.group}/v1"'
    )


async def test_it_can_be_stopped_while_the_caches_fill(lab: Lab) -> None:
    manager, _ = lab.manager()
    manager.controller(Resource(f"{lab.group}/v1", "Nothing"), _nothing)
    running = asyncio.ensure_future(manager.start())
    await asyncio.sleep(0.2)
    manager.stop()
    async with asyncio.timeout(5):
        await running
    assert not manager.ready.is_set()


async def test_a_stop_before_it_has_begun_is_not_lost(lab: Lab) -> None:
    manager, _ = lab.manager()
    running = asyncio.ensure_future(manager.start())
    manager.stop()
    async with asyncio.timeout(5):
        await running
    again = asyncio.ensure_future(manager.start())
    await manager.ready.wait()  # the stop was for the first one
    manager.stop()
    await again


async def test_health_and_readiness_and_metrics(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_module, "STALE_AFTER", 0.3)
    down: list[bool] = []

    def refuse(sent: Sent) -> RawResponse | None:
        return RawResponse(503, (), b"{}") if down and sent.watch and "/configmaps" in sent.path else None

    gadget = Resource(f"{lab.group}/v1", "Gadget")
    manager, wire = lab.manager(health="127.0.0.1:0", metrics=":0")
    wire.refuse = refuse
    manager.controller(lab.typed, _nothing).owns(MAPS)
    manager.controller(gadget, _nothing)
    wrong: list[str | None] = [None]
    manager.add_health_check("disk", lambda: wrong[0])

    def broken() -> str | None:
        raise KeyError("x")

    async def before() -> None:
        async with asyncio.timeout(SOON):
            while "health" not in manager.addresses:  # noqa: ASYNC110 -- nothing tells
                await asyncio.sleep(0.01)
        health = manager.addresses["health"]
        assert await ask(health, "/healthz") == (200, "ok")
        assert await ask(health, "/readyz") == (
            500,
            "[-]caches failed: not all objects have been read yet\nreadyz check failed\n",
        )
        await lab.define(kind="Gadget")

    async with started_after(manager, before()):
        health, metrics = manager.addresses["health"], manager.addresses["metrics"]
        assert await ask(health, "/readyz") == (200, "ok")
        assert await ask(health, "/readyz?verbose") == (200, "[+]caches ok\nreadyz check passed\n")
        wrong[0] = "full"
        assert await ask(health, "/healthz") == (500, "[+]ping ok\n[-]disk failed: full\nhealthz check failed\n")
        assert await ask(health, "/healthz/ping") == (200, "ok")
        assert await ask(health, "/healthz/disk") == (500, "[-]disk failed: full\nhealthz check failed\n")
        assert await ask(health, "/healthz?exclude=disk") == (200, "ok")
        assert (await ask(health, "/healthz/nothing"))[0] == 404
        assert (await ask(health, "/metrics"))[0] == 404
        assert (await ask(metrics, "/healthz"))[0] == 404
        manager.add_ready_check("broken", broken)
        assert "[-]broken failed: KeyError: 'x'" in (await ask(health, "/readyz"))[1]
        status, text = await ask(metrics, "/metrics")
        assert status == 200
        assert 'controller_runtime_max_concurrent_reconciles{controller="widget"} 10' in text
        assert 'controller_runtime_reconcile_total{controller="gadget",result="error"} 0' in text
        down.append(True)
        wire.cut = True
        await lab.map("unheard")
        async with asyncio.timeout(SOON):
            while "not connected: ConfigMap.v1" not in (await ask(health, "/readyz"))[1]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def test_requests_are_counted_by_their_answers(lab: Lab) -> None:
    busy, lost = [True], [True]

    def refuse(sent: Sent) -> RawResponse | None:
        if sent.method == "PATCH" and "status" not in sent.path and lost:
            lost.clear()
            raise TransportError("lost")
        if sent.path.endswith("/status") and busy:
            busy.clear()
            return RawResponse(429, (("Retry-After", "0"),), b"{}")
        return None

    async def reconcile(ctx: Any, widget: Any) -> None:
        await ctx.client.patch(lab.widget, "w", {"metadata": {"labels": {"a": "b"}}})
        widget.status.ready = 1

    manager, wire = lab.manager()
    wire.refuse = refuse
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await lab.until(lab.widget, "w", lambda found: "status" in found)
        text = manager.metrics.text().decode()
    assert 'rest_client_requests_total{code="200",method="PATCH",host=""} ' in text
    assert 'rest_client_requests_total{code="429",method="PATCH",host=""} 1' in text
    assert 'rest_client_requests_total{code="<error>",method="PATCH",host=""} 1' in text
    assert 'rest_client_request_retries_total{code="429",verb="PATCH",host=""} 1' in text
    assert 'code="<error>",verb' not in text


async def test_addresses_that_are_none_are_refused_in_words(lab: Lab) -> None:
    manager, _ = lab.manager(health="8081")
    with pytest.raises(ValueError, match=r'write it as "127\.0\.0\.1:8081", or ":8081" for all interfaces'):
        await manager.start()


async def test_log_lines_tell_the_reconcile(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    runs = Log()
    caplog.set_level(logging.INFO)

    async def reconcile(ctx: Any, widget: Any) -> None:
        ctx.log.info("looking at %s", widget.metadata.name, extra={"color": "red"})
        await runs.add(ctx.reconcile_id)

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
    [record] = [vars(record) for record in caplog.records if record.message == "looking at w"]
    assert (record["controller"], record["key"], record["color"]) == ("widget", f"{lab.namespace}/w", "red")
    assert record["reconcile_id"] == runs.entries[0]


async def _nothing(ctx: Any, obj: Any) -> None:
    """Does nothing."""
