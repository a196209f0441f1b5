"""Events about objects, counted in series; and fights over fields, which are told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.kit import MAPS, Lab, Log, started

from steersman.client import Resource

EVENT = Resource("events.k8s.io/v1", "Event")


async def test_what_happens_again_is_counted_in_the_first_event(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        for _ in range(3):
            ctx.event("Created", "made a ConfigMap", action="Create")
        ctx.event("Failed", "x" * 2000, type="Warning")
        await runs.add(1)

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        made = await lab.make("w")
        await runs.until(1)
    events = {each["reason"]: each async for each in lab.outside.list(EVENT, namespace=lab.namespace)}
    assert set(events) == {"Created", "Failed"}
    created, failed = events["Created"], events["Failed"]
    assert created["series"]["count"] == 3
    assert created["regarding"] == {
        "apiVersion": f"{lab.group}/v1",
        "kind": "Widget",
        "name": "w",
        "namespace": lab.namespace,
        "uid": made["metadata"]["uid"],
    }
    assert (created["type"], created["action"], created["note"]) == ("Normal", "Create", "made a ConfigMap")
    assert created["reportingController"] == "widget"
    assert (failed["type"], len(failed["note"]), "series" in failed) == ("Warning", 1024, False)


async def test_an_event_that_has_expired_begins_anew_and_failures_do_not_end_the_rest(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        ctx.event("not a word", "refused", action="x" * 500)
        ctx.event("Seen", "again")
        await runs.add(1)

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        first = await _event(lab, "Seen")
        await lab.outside.delete(EVENT, first["metadata"]["name"])
        await lab.outside.patch(lab.widget, "w", {"spec": {"replicas": 2}})
        await runs.until(2)
    [second] = [each async for each in lab.outside.list(EVENT, namespace=lab.namespace)]
    assert second["reason"] == "Seen"
    assert second["metadata"]["name"] != first["metadata"]["name"]
    assert "an Event could not be recorded: not a word: refused" in caplog.text


async def _event(lab: Lab, reason: str) -> dict[str, Any]:
    async with lab.outside.watch(EVENT, namespace=lab.namespace) as events:
        async for event in events:
            if event.object["reason"] == reason:
                return event.object
    raise AssertionError


async def test_two_writers_that_fight_over_a_field_are_told_of_with_the_field_and_the_writer(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg"}, "data": {"x": "mine", "y": "z"}}
        await runs.add((await ctx.create_or_update(body)).operation)

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile).owns(MAPS)
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        for number in range(7):
            await lab.outside.patch(MAPS, "cfg", {"data": {"x": "theirs"}}, field_manager="meddler")
            await runs.until(2 + number)
            await lab.until(MAPS, "cfg", lambda found: found["data"]["x"] == "mine")
        text = manager.metrics.text().decode()
    told = [record.message for record in caplog.records if "has written" in record.message]
    assert told == [
        f"widget has written ConfigMap {lab.namespace}/cfg back to the same state 5 times, "
        'against another writer: .data.x: "mine" -> "theirs" by meddler'
    ]
    assert 'steersman_hot_loops_total{controller="widget"} 1' in text


async def test_a_fight_is_seen_although_the_status_moves(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    """With each write of a spec some controller moves the status."""
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        def change(found: Any) -> None:
            found["spec"]["replicas"] = 1

        await ctx.client.modify(lab.widget, widget.metadata.name, change)
        widget.status.observed_generation = widget.metadata.generation
        await runs.add(widget.spec.replicas)

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        for number in range(7):
            await lab.outside.patch(lab.widget, "w", {"spec": {"replicas": 5}}, field_manager="meddler")
            await runs.until(2 + number)
            await lab.until(lab.widget, "w", lambda found: found["spec"]["replicas"] == 1)
    assert ".spec.replicas: 1 -> 5 by meddler" in caplog.text
