"""Controllers on a real server: what runs, how often, and what is written."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from tests.runtime.kit import MAPS, SOON, Lab, Log, heard_of, started, started_after

from steersman.apimachinery.errors import Conflict
from steersman.client import Client, Config, Resource, retry_on_conflict
from steersman.runtime.blocking import RefusedCall
from steersman.runtime.cluster import Cluster
from steersman.runtime.predicates import generation_changed, has_labels
from steersman.runtime.requests import Reason, Request, Result, TerminalError
from steersman.testing import control_plane


def child(obj: Any, replicas: Any) -> dict[str, Any]:
    name = obj["metadata"]["name"] if isinstance(obj, dict) else obj.metadata.name
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-cfg"},
        "data": {"replicas": str(replicas)},
    }


@pytest.mark.parametrize("mode", ["patch", "apply"])
async def test_a_change_is_one_reconcile_and_two_writes(lab: Lab, mode: Any) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await ctx.create_or_update(child(widget, widget.spec.replicas))
        widget.status.ready = widget.spec.replicas
        widget.status.observed_generation = widget.metadata.generation
        await runs.add((widget.metadata.name, widget.spec.replicas, [reason.cause for reason in ctx.reasons]))

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile, status=mode).owns(MAPS)
    names = [f"w{number}" for number in range(20)]
    for name in names:
        await lab.make(name)
    async with started(manager):
        await runs.until(len(names))
        await lab.settled(manager)
        mine = [entry for entry in runs.entries if entry[0] in names]
        assert sorted(mine) == sorted((name, 1, ["initial"]) for name in names)
        runs.entries.clear()
        wire.sent.clear()
        await asyncio.gather(*(lab.outside.patch(lab.widget, name, {"spec": {"replicas": 2}}) for name in names))
        await runs.until(len(names))
        await lab.settled(manager)
        mine = [entry for entry in runs.entries if entry[0] in names]
        assert sorted(mine) == sorted((name, 2, ["updated"]) for name in names)
        of_names = [sent for sent in wire.writes() if "marker" not in sent.path]
        assert len([sent for sent in of_names if sent.method == "PUT"]) == len(names)
        assert len([sent for sent in of_names if sent.path.endswith("/status")]) == len(names)
        assert wire.conflicts() == 0
        assert [sent.path for sent in wire.reads() if "marker" not in sent.path] == []
    found = await lab.outside.get(lab.widget, "w3")
    assert found["status"] == {"ready": 2, "observedGeneration": 2}


async def test_a_touch_writes_nothing(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await ctx.create_or_update(child(widget, widget.spec.replicas))
        widget.status.ready = widget.spec.replicas
        await runs.add(widget.metadata.name)

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile).owns(MAPS)
    await lab.make("touched")
    async with started(manager):
        await runs.until(1)
        await lab.settled(manager)
        runs.entries.clear()
        wire.sent.clear()
        await lab.outside.patch(lab.widget, "touched", {"metadata": {"labels": {"a": "b"}}})
        await runs.until(lambda entries: "touched" in entries)
        await lab.settled(manager)
        assert runs.entries.count("touched") == 1
        assert [sent for sent in wire.writes() if "marker" not in sent.path and sent.method != "POST"] == []


async def test_a_conflict_is_retried_at_once_with_a_fresh_read_and_is_no_error(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        seen = widget.spec.replicas
        if widget.metadata.name == "raced" and seen == 1:
            # Somebody else writes while this runs; the watch tells it late.
            wire.events.close()
            await lab.outside.patch(lab.widget, widget.metadata.name, {"spec": {"replicas": 2}})
        widget.status.ready = seen
        await runs.add((widget.metadata.name, seen, [reason.cause for reason in ctx.reasons]))

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("raced")
        await runs.until(2)
        found = await lab.until(lab.widget, "raced", lambda found: found.get("status", {}).get("ready") == 2)
        assert found["spec"]["replicas"] == 2
        wire.events.open()
        await lab.settled(manager, lab.widget)
        mine = [entry for entry in runs.entries if entry[0] == "raced"]
        assert mine == [("raced", 1, ["created"]), ("raced", 2, ["conflict"])]
        assert wire.conflicts() == 1
        text = manager.metrics.text().decode()
    assert 'controller_runtime_reconcile_total{controller="widget",result="conflict"} 1' in text
    assert 'controller_runtime_reconcile_errors_total{controller="widget"} 0' in text
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("how", ["guarded", "unguarded", "json", "apply", "update"])
async def test_writes_of_its_own_object_lead_to_no_further_run_and_no_conflict(lab: Lab, how: str) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        name, version = widget.metadata.name, widget.metadata.resource_version
        labels = {"seen": str(widget.spec.replicas)}
        kind = {"apiVersion": f"{lab.group}/v1", "kind": "Widget"}
        if widget.metadata.labels != labels and not name.startswith("zz"):
            if how == "guarded":
                await ctx.client.patch(lab.widget, name, {"metadata": {"labels": labels, "resourceVersion": version}})
            elif how == "unguarded":
                await ctx.client.patch(lab.widget, name, {"metadata": {"labels": labels}})
            elif how == "json":
                test = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
                add = {"op": "add", "path": "/metadata/labels", "value": labels}
                await ctx.client.patch(lab.widget, name, [test, add])
            elif how == "apply":
                await ctx.client.apply({**kind, "metadata": {"name": name, "labels": labels}})
            else:
                await ctx.client.modify(lab.typed, name, lambda found: setattr(found.metadata, "labels", labels))
        widget.status.ready = widget.spec.replicas
        await runs.add(name)

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        await lab.settled(manager, lab.widget)
        assert runs.entries.count("w") == 1
        assert wire.conflicts() == 0
    found = await lab.outside.get(lab.widget, "w")
    assert (found["metadata"]["labels"], found["status"]) == ({"seen": "1"}, {"ready": 1})


async def test_deleting_what_it_owns_leads_to_no_further_run_but_others_deletions_do(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        name = widget.metadata.name
        if widget.spec.replicas:
            await ctx.create_or_update(child(widget, widget.spec.replicas))
        else:
            await ctx.client.delete(MAPS, f"{name}-cfg")
        await runs.add((name, widget.spec.replicas))

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile).owns(MAPS)
    async with started(manager):
        await lab.make("w", 1)
        await runs.until(1)
        await lab.outside.delete(MAPS, "w-cfg")
        await runs.until(2)
        await lab.until(MAPS, "w-cfg", lambda found: True)
        await lab.outside.patch(lab.widget, "w", {"spec": {"replicas": 0}})
        await runs.until(3)
        await lab.settled(manager)
        assert [entry for entry in runs.entries if entry[0] == "w"] == [("w", 1), ("w", 1), ("w", 0)]


async def test_what_an_answer_brings_along_of_others_is_acted_upon(lab: Lab) -> None:
    """The answer to a write of its own holds what somebody else has written, and the watch has not told."""
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        name = widget.metadata.name
        await runs.add((name, widget.spec.replicas))
        if name == "w" and widget.spec.replicas == 1:
            wire.events.close()
            await lab.outside.patch(lab.widget, name, {"spec": {"replicas": 2}})
            await ctx.client.patch(lab.widget, name, {"metadata": {"labels": {"mine": "yes"}}})

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile, status="off")
    async with started(manager):
        await lab.make("w")
        await runs.until(lambda entries: ("w", 2) in entries)
        wire.events.open()
        await lab.settled(manager, lab.widget)
        assert [entry for entry in runs.entries if entry[0] == "w"] == [("w", 1), ("w", 2)]


@pytest.mark.parametrize("fails", [False, True])
async def test_what_happens_while_a_write_is_under_way_is_acted_upon(lab: Lab, fails: bool) -> None:
    """Events that come before the answer: the write's own, and after it somebody else's."""
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        name = widget.metadata.name
        await runs.add((name, widget.spec.replicas))
        if name != "w" or widget.spec.replicas != 1:
            return
        wire.answers.close()
        version = "1" if fails else widget.metadata.resource_version
        patch = {"metadata": {"labels": {"mine": "yes"}, "resourceVersion": version}}
        writing = asyncio.ensure_future(ctx.client.patch(lab.widget, name, patch))
        await wire.answers.until_waiting()
        made = await lab.outside.patch(lab.widget, name, {"spec": {"replicas": 2}})
        await heard_of(manager.cluster.cache.kind(lab.widget).informers[0], made)
        wire.answers.open()
        if fails:
            with pytest.raises(Conflict):
                await writing
        else:
            await writing

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile, status="off")
    async with started(manager):
        await lab.make("w")
        await runs.until(lambda entries: ("w", 2) in entries)
        await lab.settled(manager, lab.widget)
        assert [entry for entry in runs.entries if entry[0] == "w"] == [("w", 1), ("w", 2)]


@pytest.mark.parametrize("how", ["modify", "live", "retry"])
async def test_what_is_read_in_the_middle_of_a_run_is_acted_upon(lab: Lab, how: str) -> None:
    """It has done its work for the old spec when it meets the new one, and only adds a label to that."""
    runs = Log()

    async def label(ctx: Any, name: str) -> None:
        if how == "modify":
            await ctx.client.modify(lab.widget, name, lambda found: found["metadata"].update(labels={"mine": "yes"}))
            return

        async def attempt() -> None:
            reader = ctx.client.live if how == "live" else ctx.client
            found = await reader.get(lab.widget, name)
            found["metadata"]["labels"] = {"mine": "yes"}
            await ctx.client.update(found)

        await retry_on_conflict(attempt)

    async def reconcile(ctx: Any, widget: Any) -> None:
        name = widget.metadata.name
        await runs.add((name, widget.spec.replicas))
        if name == "w" and widget.spec.replicas == 1:
            wire.events.close()
            await lab.outside.patch(lab.widget, name, {"spec": {"replicas": 2}})
            await label(ctx, name)
        widget.status.ready = widget.spec.replicas

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await runs.until(lambda entries: ("w", 2) in entries)
        wire.events.open()
        found = await lab.until(lab.widget, "w", lambda found: found.get("status", {}).get("ready") == 2)
        assert found["metadata"]["labels"] == {"mine": "yes"}
        await lab.settled(manager, lab.widget)
        assert len([entry for entry in runs.entries if entry[0] == "w"]) <= 3


@pytest.mark.parametrize("seed", range(3))
async def test_with_foreign_writers_racing_nothing_is_lost(lab: Lab, seed: int) -> None:
    """R2: whatever the interleaving, the last word of the others is what the operator has acted upon in the end."""
    random = Random(seed)
    names = [f"w{number}" for number in range(6)]

    async def reconcile(ctx: Any, widget: Any) -> None:
        if widget.metadata.name.startswith("zz"):
            return
        if random.random() < 0.3:
            await ctx.client.patch(
                lab.widget, widget.metadata.name, {"metadata": {"labels": {"a": str(random.random())}}}
            )
        if random.random() < 0.3:
            text = str(random.random())
            await ctx.client.modify(
                lab.widget,
                widget.metadata.name,
                lambda found: found["metadata"].setdefault("annotations", {}).update(b=text),
            )
        if random.random() < 0.5:
            await asyncio.sleep(random.random() / 100)
        await ctx.create_or_update(child(widget, widget.spec.replicas))
        widget.status.ready = widget.spec.replicas

    async def meddle() -> None:
        for number in range(40):
            name = random.choice(names)
            await asyncio.sleep(random.random() / 50)
            if random.random() < 0.2:
                await lab.outside.apply(
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "metadata": {"name": f"{name}-cfg"},
                        "data": {"replicas": "x"},
                    },
                    force=True,
                    field_manager=f"meddler{number}",
                )
            else:
                await lab.outside.patch(lab.widget, name, {"spec": {"replicas": number + 10}})
            if random.random() < 0.2:
                wire.events.close()
                asyncio.get_running_loop().call_later(random.random() / 10, wire.events.open)

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile, status=random.choice(["patch", "apply"])).owns(MAPS)
    for name in names:
        await lab.make(name)
    async with started(manager):
        await asyncio.gather(meddle(), meddle())
        for name in names:
            last = (await lab.outside.get(lab.widget, name))["spec"]["replicas"]
            await lab.until(lab.widget, name, lambda found, last=last: found["status"].get("ready") == last)
            await lab.until(MAPS, f"{name}-cfg", lambda found, last=last: found["data"] == {"replicas": str(last)})
        await lab.settled(manager)
        sent = len(wire.writes())
        await lab.settled(manager)
        assert len(wire.writes()) == sent, "it has come to rest"


async def test_errors_back_off_and_success_ends_that(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await runs.add((ctx.attempt, [str(reason) for reason in ctx.reasons]))
        if ctx.attempt < 4 and len(runs) < 5:
            raise ValueError("not yet")

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        began = asyncio.get_running_loop().time()
        await lab.make("w")
        await runs.until(5)
        assert asyncio.get_running_loop().time() - began > 0.005 + 0.01 + 0.02 + 0.04
        assert [attempt for attempt, _ in runs.entries] == [0, 1, 2, 3, 4]
        assert runs.entries[1][1] == ["retry (attempt 1 failed: ValueError: not yet)"]
        await lab.outside.patch(lab.widget, "w", {"spec": {"replicas": 2}})
        await runs.until(6)
        assert runs.entries[5][0] == 0
        text = manager.metrics.text().decode()
    assert 'controller_runtime_reconcile_total{controller="widget",result="error"} 4' in text
    assert 'controller_runtime_reconcile_panics_total{controller="widget"} 4' in text
    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(failures) == 4
    assert "reconcile failed: ValueError: not yet (it ran because of: created (Widget" in failures[0].message
    assert vars(failures[0])["key"] == f"{lab.namespace}/w"
    assert vars(failures[0])["controller"] == "widget"
    assert len({vars(record)["reconcile_id"] for record in failures}) == 4


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize(
    "error", [ValueError("x"), StopIteration(), asyncio.CancelledError(), KeyError("x"), BaseException("x")]
)
async def test_whatever_a_reconciler_raises_the_worker_goes_on(lab: Lab, error: BaseException, threaded: bool) -> None:
    runs = Log()
    loop = asyncio.get_running_loop()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await runs.add(widget.metadata.name)
        if len(runs) == 1:
            raise error

    def plainly(ctx: Any, widget: Any) -> None:
        asyncio.run_coroutine_threadsafe(runs.add(widget.metadata.name), loop).result()
        if len(runs) == 1:
            raise error

    manager, _ = lab.manager()
    manager.controller(lab.typed, plainly if threaded else reconcile, concurrency=1)
    async with started(manager):
        await lab.make("w")
        await runs.until(2)


async def test_a_group_of_conflicts_is_a_conflict(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await runs.add(ctx.reasons[0].cause)
        if len(runs) == 1:
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    ctx.client.patch(lab.widget, "w", {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 3}})
                )

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await runs.until(2)
        assert runs.entries == ["created", "conflict"]
        text = manager.metrics.text().decode()
    assert 'controller_runtime_reconcile_errors_total{controller="widget"} 0' in text


async def test_fields_that_others_own_are_an_error_not_a_race(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await runs.add(ctx.attempt)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"x": "mine"}}
        await ctx.apply(body, owned=False, force=False)

    await lab.outside.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"x": "theirs"}}
    )
    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await runs.until(3)
        assert runs.entries[:3] == [0, 1, 2]
    assert 'conflict with "outside": .data.x' in caplog.text


async def test_what_no_further_attempt_can_mend_waits_for_a_change(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await runs.add((widget.metadata.name, widget.spec.replicas))
        if widget.metadata.name == "w":
            raise TerminalError("no such color")

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        await lab.settled(manager, lab.widget)
        await lab.outside.patch(lab.widget, "w", {"spec": {"replicas": 2}})
        await runs.until(lambda entries: ("w", 2) in entries)
        await lab.settled(manager, lab.widget)
        assert [entry for entry in runs.entries if entry[0] == "w"] == [("w", 1), ("w", 2)]
        text = manager.metrics.text().decode()
    assert 'controller_runtime_terminal_reconcile_errors_total{controller="widget"} 2' in text


async def test_a_reconcile_that_takes_too_long_is_ended_and_tried_again(lab: Lab) -> None:
    runs, ends = Log(), Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await runs.add(ctx.attempt)
        if len(runs) == 1:
            try:
                await asyncio.Event().wait()
            finally:
                await ends.add("ended")

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile, timeout=0.2)
    async with started(manager):
        await lab.make("w")
        await runs.until(2)
        assert (runs.entries, ends.entries) == ([0, 1], ["ended"])
        text = manager.metrics.text().decode()
    assert 'controller_runtime_reconcile_timeouts_total{controller="widget"} 1' in text


async def test_a_thread_that_takes_too_long_may_do_nothing_more_and_is_waited_for(lab: Lab) -> None:
    runs = Log()
    loop, go = asyncio.get_running_loop(), threading.Event()
    refused: list[str] = []

    def reconcile(ctx: Any, widget: Any) -> None:
        asyncio.run_coroutine_threadsafe(runs.add(ctx.attempt), loop).result()
        if len(runs) > 1:
            return
        go.wait(SOON)
        try:
            ctx.client.patch(lab.widget, "w", {"metadata": {"labels": {"late": "yes"}}})
        except RefusedCall as error:
            refused.append(str(error))

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile, timeout=0.1)
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        await asyncio.sleep(0.3)
        assert len(runs) == 1, "one object is never worked on twice at a time"
        go.set()
        await runs.until(2)
    assert refused == ["the reconcile took longer than 0.1 s"]
    assert "labels" not in (await lab.outside.get(lab.widget, "w"))["metadata"]


async def test_plain_functions_run_in_threads_with_all_that_async_ones_have(lab: Lab) -> None:
    runs = Log()
    loop = asyncio.get_running_loop()

    def reconcile(ctx: Any, widget: Any) -> Result:
        assert threading.current_thread() is not threading.main_thread()
        with ctx.finalizing("example.com/hold") as deleting:
            if not deleting:
                ctx.create_or_update(child(widget, widget.spec.replicas))
                ctx.apply({**child(widget, 1), "metadata": {"name": f"{widget.metadata.name}-applied"}})
                assert ctx.client.get(MAPS, f"{ctx.request.name}-cfg")["data"] == {"replicas": "1"}
                assert ctx.live.get(MAPS, f"{ctx.request.name}-cfg")["data"] == {"replicas": "1"}
                found = [each["metadata"] for each in ctx.by_index(MAPS, "replicas", "1")]
                assert {"w-cfg", "w-applied"} <= {each["name"] for each in found if each["namespace"] == lab.namespace}
                assert ctx.object is widget
                ctx.event("Made", "it is there", action="Make")
        widget.status.ready = widget.spec.replicas
        asyncio.run_coroutine_threadsafe(runs.add(str(ctx.request)), loop).result()
        return Result()

    manager, wire = lab.manager()
    manager.index(MAPS, "replicas", lambda raw: [(raw.get("data") or {}).get("replicas", "")])
    manager.controller(lab.typed, reconcile).owns(MAPS)
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        await lab.until(lab.widget, "w", lambda found: found.get("status") == {"ready": 1})
        await lab.settled(manager, MAPS)
        assert runs.entries == [f"{lab.namespace}/w"]
        assert len(wire.writes()) == 4
        assert (await lab.outside.get(MAPS, "w-applied"))["data"] == {"replicas": "1"}
        await lab.outside.delete(lab.widget, "w")
        await lab.until_gone(lab.widget, "w")


async def test_it_runs_again_when_it_has_asked_for_that(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> Result | None:
        await runs.add([str(reason) for reason in ctx.reasons])
        return Result(timedelta(milliseconds=50)) if len(runs) < 3 else None

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await runs.until(3)
        assert runs.entries[1:] == [["requeued (after 0.05 s)"]] * 2


async def test_many_run_at_a_time_but_one_object_never_twice(lab: Lab) -> None:
    runs = Log()
    now: list[str] = []
    most = 0

    async def reconcile(ctx: Any, widget: Any) -> Result | None:
        nonlocal most
        name = widget.metadata.name
        assert name not in now
        now.append(name)
        most = max(most, len(now))
        await asyncio.sleep(0.02)
        now.remove(name)
        await runs.add(name)
        return None

    manager, _ = lab.manager()
    controller = manager.controller(lab.typed, reconcile, concurrency=3)
    names = [f"w{number}" for number in range(9)]
    for name in names:
        await lab.make(name)
    async with started(manager):
        for _ in range(5):
            for name in names:
                controller.enqueue(Request(lab.namespace, name))
            await asyncio.sleep(0.02)
        await lab.settled(manager, lab.widget)
        assert set(names) <= set(runs.entries)
        assert most == 3
        text = manager.metrics.text().decode()
    assert 'controller_runtime_max_concurrent_reconciles{controller="widget"} 3' in text
    assert 'result="error"} 0' in text


async def test_what_it_maps_to_is_reconciled_before_and_after_a_change(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await runs.add((widget["metadata"]["name"], ctx.reasons[0].cause))

    def users(found: Any) -> list[Request]:
        assert "data" not in found
        return [Request(lab.namespace, name) for name in found["metadata"].get("labels", {}).values()]

    manager, _ = lab.manager()
    manager.controller(lab.widget, reconcile, generation_changed).watches(
        MAPS, users, has_labels("used"), metadata_only=True
    )
    for name in ("a", "b"):
        await lab.make(name)
    async with started(manager):
        await runs.until(2)
        runs.entries.clear()
        await lab.map("shared", labels={"used": "a"})
        await runs.until(1)
        await lab.outside.patch(MAPS, "shared", {"metadata": {"labels": {"used": "b"}}})
        await runs.until(3)
        await lab.outside.patch(MAPS, "shared", {"metadata": {"labels": {"used": None, "other": "a"}}})
        await lab.outside.patch(lab.widget, "a", {"metadata": {"labels": {"x": "y"}}})
        await lab.outside.delete(MAPS, "shared")
        await lab.settled(manager)
        mine = [entry for entry in runs.entries if not entry[0].startswith("zz")]
        assert sorted(mine) == [("a", "created"), ("a", "updated"), ("b", "updated")]


async def test_reasons_of_several_events_are_all_told(lab: Lab) -> None:
    runs, go = Log(), asyncio.Event()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await runs.add([reason.cause for reason in ctx.reasons])
        await go.wait()

    manager, _ = lab.manager()
    controller = manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        controller.enqueue(Request(lab.namespace, "w"), detail="a call from outside")
        await lab.outside.patch(lab.widget, "w", {"spec": {"replicas": 2}})
        await manager.cluster.cache.kind(lab.widget).informers[0].resync()
        await heard_of(manager.cluster.cache.kind(lab.widget).informers[0], await lab.make("other"))
        go.set()
        await runs.until(3)
        assert ["external", "resync", "updated"] in [sorted(entry) for entry in runs.entries]


async def test_a_controller_without_a_kind_takes_what_it_is_given(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, request: str) -> None:
        await runs.add((request, ctx.reasons[0]))

    manager, _ = lab.manager()
    controller = manager.controller(None, reconcile, name="outside").watches(MAPS, lambda found: [found["data"]["to"]])
    controller.enqueue("early", detail="before the start")
    async with started(manager):
        await lab.map("m", {"to": "mapped"})
        await runs.until(lambda entries: "mapped" in [request for request, _ in entries])
        controller.enqueue("late", after=0.01)
        await runs.until(lambda entries: "late" in [request for request, _ in entries])
    assert runs.entries[0] == ("early", Reason("external", "before the start"))
    with pytest.raises(ValueError, match="no kind of its own"):
        controller.owns(MAPS)


async def test_a_kind_that_is_not_served_yet_is_waited_for(lab: Lab) -> None:
    """R10: the definition comes after the operator; owners of a kind that is not known are found later."""
    runs = Log()
    gadget = Resource(f"{lab.group}/v1", "Gadget")

    async def reconcile(ctx: Any, found: Any) -> None:
        await runs.add(found["metadata"]["name"])
        await ctx.create_or_update({**child(found, 1)})

    manager, _ = lab.manager()
    manager.controller(gadget, reconcile).owns(MAPS)
    async with started_after(manager, lab.define(kind="Gadget")):
        await lab.make("g", kind=gadget)
        await runs.until(1)
        await lab.until(MAPS, "g-cfg", lambda found: True)
        await lab.outside.delete(MAPS, "g-cfg")
        await runs.until(2)


async def test_a_kind_of_another_cluster(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        other = await cluster.client.get(MAPS, "switch")
        widget.status.ready = int(other["data"]["ready"])
        await runs.add(widget.status.ready)

    with control_plane() as second:
        async with Client(Config(server=second.url), namespace="default") as beyond:
            await beyond.create(
                {**child({"metadata": {"name": "x"}}, 0), "metadata": {"name": "switch"}, "data": {"ready": "1"}}
            )
            manager, _ = lab.manager()
            cluster = manager.add_cluster(Cluster(Config(server=second.url, namespace="default")))
            manager.controller(lab.typed, reconcile).watches(
                MAPS, lambda found: [Request(lab.namespace, "w")], cluster=cluster
            )
            await lab.make("w")
            async with started(manager):
                await lab.until(lab.widget, "w", lambda found: found.get("status") == {"ready": 1})
                await beyond.patch(MAPS, "switch", {"data": {"ready": "5"}})
                await lab.until(lab.widget, "w", lambda found: found["status"] == {"ready": 5})


async def test_two_controllers_of_a_kind_hear_of_each_others_writes(lab: Lab) -> None:
    runs = Log()

    async def first(ctx: Any, widget: Any) -> None:
        await runs.add("first")
        widget.status.ready = widget.spec.replicas

    async def second(ctx: Any, widget: Any) -> None:
        await runs.add("second")
        if widget.status.ready and widget.metadata.labels != {"ready": "yes"}:
            await ctx.client.patch(lab.widget, widget.metadata.name, {"metadata": {"labels": {"ready": "yes"}}})

    manager, wire = lab.manager()
    manager.controller(lab.typed, first, name="first")
    manager.controller(lab.typed, second, name="second", status="off")
    async with started(manager):
        await lab.make("w")
        await lab.until(lab.widget, "w", lambda found: found["metadata"].get("labels") == {"ready": "yes"})
        watches = [sent for sent in wire.sent if sent.watch and "/widgets" in sent.path]
        assert len(watches) == 1, "the kind is watched once"


async def _nothing(ctx: Any, obj: Any) -> None:
    """Does nothing."""
