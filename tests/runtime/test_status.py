"""The status of the reconciled object: written once, and only if it has changed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import Field
from tests.runtime.kit import Lab, Log, Spec, started

from steersman.client import Condition, CustomResource, Model, Resource, custom_resource, set_condition

MODES = pytest.mark.parametrize("mode", ["patch", "apply"])


class Full(Model):
    phase: str | None = None
    conditions: list[Condition] = Field(default_factory=list)


@MODES
async def test_only_what_has_changed_is_written_and_only_then(lab: Lab, mode: Any) -> None:
    @custom_resource(f"{lab.group}/v1")
    class Widget(CustomResource[Spec, Full]): ...

    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        ready = "True" if widget.spec.replicas else "False"
        condition = Condition(
            type="Ready", status=ready, reason="Counted", observed_generation=widget.metadata.generation
        )
        set_condition(widget.status.conditions, condition)
        widget.status.phase = "Done" if widget.spec.replicas else None
        await runs.add(widget.spec.replicas)

    manager, wire = lab.manager()
    manager.controller(Widget, reconcile, status=mode)
    async with started(manager):
        await lab.make("w")
        first = await lab.until(lab.widget, "w", lambda found: found.get("status", {}).get("phase") == "Done")
        [condition] = first["status"]["conditions"]
        assert (condition["status"], condition["observedGeneration"]) == ("True", 1)
        age = datetime.now(UTC) - datetime.fromisoformat(condition["lastTransitionTime"])
        assert age.total_seconds() < 60
        await lab.outside.patch(lab.widget, "w", {"metadata": {"labels": {"a": "b"}}})
        await runs.until(2)
        await lab.settled(manager, lab.widget)
        assert len(wire.writes("/w/status")) == 1
        await lab.outside.patch(lab.widget, "w", {"spec": {"replicas": 0}})
        last = await lab.until(lab.widget, "w", lambda found: "phase" not in found["status"])
        assert last["status"]["conditions"][0]["status"] == "False"
        assert wire.conflicts() == 0


@MODES
async def test_untyped_objects_and_a_status_that_others_write_to(lab: Lab, mode: Any) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        widget.setdefault("status", {})["mine"] = {"ready": widget["spec"]["replicas"], "nothing": None}
        await runs.add(widget["metadata"]["name"])

    manager, wire = lab.manager()
    manager.controller(lab.widget, reconcile, status=mode)
    async with started(manager):
        await lab.make("w")
        await lab.until(lab.widget, "w", lambda found: found.get("status", {}).get("mine") == {"ready": 1})
        await lab.outside.patch_status(lab.widget, "w", {"status": {"theirs": "x"}})
        await lab.settled(manager, lab.widget)
        await lab.outside.patch(lab.widget, "w", {"spec": {"replicas": 2}})
        found = await lab.until(lab.widget, "w", lambda found: found["status"]["mine"].get("ready") == 2)
        assert found["status"] == {"mine": {"ready": 2}, "theirs": "x"}
        await lab.settled(manager, lab.widget)
        assert len(wire.writes("/w/status")) == 2
        assert wire.conflicts() == 0


@MODES
async def test_the_last_words_of_a_run_that_fails_are_written(lab: Lab, mode: Any) -> None:
    failed = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        widget.status.ready = 3
        await failed.add(ctx.attempt)
        if ctx.attempt < 2:
            raise ValueError("no")

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile, status=mode)
    async with started(manager):
        await lab.make("w")
        await failed.until(3)
        await lab.until(lab.widget, "w", lambda found: found.get("status") == {"ready": 3})
        await lab.settled(manager, lab.widget)
        assert len(wire.writes("/w/status")) == 1


async def test_it_is_not_written_where_that_is_left_to_the_reconciler(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        widget.status.ready = 5
        await runs.add(widget.metadata.name)

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile, status="off")
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        await lab.settled(manager, lab.widget)
        assert wire.writes() == []


async def test_a_kind_that_has_no_status_is_an_error_in_words(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    await lab.define(kind="Plain", status=False)
    plain = Resource(f"{lab.group}/v1", "Plain")
    runs = Log()

    async def reconcile(ctx: Any, found: Any) -> None:
        found["status"] = {"a": "b"}
        await runs.add(1)

    manager, _ = lab.manager()
    manager.controller(plain, reconcile)
    async with started(manager):
        await lab.make("p", kind=plain)
        await runs.until(2)
    assert "Plain has no status subresource: use status='off'" in caplog.text


@MODES
async def test_the_status_of_an_object_that_went_away_or_was_made_anew_is_dropped(lab: Lab, mode: Any) -> None:
    runs = Log()
    uids = []

    async def reconcile(ctx: Any, widget: Any) -> None:
        uids.append(widget.metadata.uid)
        if widget.metadata.name == "gone" or (widget.metadata.name == "anew" and len(set(uids)) == 2):
            await lab.outside.delete(lab.widget, widget.metadata.name)
        if widget.metadata.name == "anew" and len(set(uids)) == 2:
            wire.events.close()
            await lab.make("anew", 9)
        widget.status.ready = widget.spec.replicas
        await runs.add(widget.metadata.name)

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile, status=mode)
    async with started(manager):
        await lab.make("gone")
        await runs.until(1)
        await lab.make("anew", 1)
        await runs.until(2)
        await asyncio.sleep(0.05)
        wire.events.open()
        found = await lab.until(lab.widget, "anew", lambda found: "status" in found)
        assert (found["spec"], found["status"]) == ({"replicas": 9}, {"ready": 9})
