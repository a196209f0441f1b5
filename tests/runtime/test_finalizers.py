"""An object is not gone before the operator has cleaned up after it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.kit import Lab, Log, started

from steersman.runtime.finalizers import finalizers_of, has_finalizer, is_deleting

MINE = "example.com/bucket"


async def test_an_object_is_held_until_all_is_cleaned_up(lab: Lab) -> None:
    runs = Log()
    buckets: set[str] = set()

    async def reconcile(ctx: Any, widget: Any) -> None:
        name = widget.metadata.name
        async with ctx.finalizing(MINE) as deleting:
            await runs.add((name, deleting))
            if deleting:
                buckets.discard(name)
                return
        buckets.add(name)
        widget.status.ready = widget.spec.replicas

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        found = await lab.until(lab.widget, "w", lambda found: "status" in found)
        assert found["metadata"]["finalizers"] == [MINE]
        await lab.settled(manager, lab.widget)
        assert len(wire.writes("/widgets/w")) == 2
        await lab.outside.delete(lab.widget, "w")
        await lab.until_gone(lab.widget, "w")
        await lab.settled(manager, lab.widget)
        assert [entry for entry in runs.entries if entry[0] == "w"] == [("w", False), ("w", True)]
        assert "w" not in buckets
        assert wire.conflicts() == 0
        assert len(wire.writes("/widgets/w")) == 3


async def test_a_clean_up_that_fails_is_done_again(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        async with ctx.finalizing(MINE) as deleting:
            await runs.add(deleting)
            if deleting and len(runs) < 4:
                raise OSError("the bucket is not empty")

    manager, _ = lab.manager()
    manager.controller(lab.widget, reconcile)
    async with started(manager):
        await lab.make("w")
        await lab.until(lab.widget, "w", lambda found: "finalizers" in found["metadata"])
        await lab.outside.delete(lab.widget, "w")
        await lab.until_gone(lab.widget, "w")
        assert runs.entries == [False, True, True, True]


async def test_while_others_hold_it_nothing_is_made_anew(lab: Lab) -> None:
    """A reconciler that was told "not deleting" would make the bucket again, and nobody would ever delete it."""
    runs = Log()
    buckets: set[str] = set()

    async def reconcile(ctx: Any, widget: Any) -> None:
        async with ctx.finalizing(MINE) as deleting:
            if deleting:
                buckets.discard("b")
            else:
                buckets.add("b")
        await runs.add(deleting)

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w", finalizers=["example.com/other"])
        await runs.until(1)
        await lab.outside.delete(lab.widget, "w")
        await lab.until(lab.widget, "w", lambda found: found["metadata"]["finalizers"] == ["example.com/other"])
        await lab.outside.patch(lab.widget, "w", {"metadata": {"labels": {"touch": "1"}}})
        await runs.until(3)
        assert runs.entries == [False, True, True]
        assert not buckets
        await lab.outside.patch(lab.widget, "w", {"metadata": {"finalizers": None}})
        await lab.until_gone(lab.widget, "w")


async def test_with_a_write_of_its_own_in_between_there_is_no_conflict(lab: Lab) -> None:
    async def reconcile(ctx: Any, widget: Any) -> None:
        async with ctx.finalizing(MINE) as deleting:
            if deleting:
                await ctx.client.patch_status(lab.widget, widget.metadata.name, {"status": {"ready": 3}})

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await lab.until(lab.widget, "w", lambda found: "finalizers" in found["metadata"])
        await lab.outside.delete(lab.widget, "w")
        await lab.until_gone(lab.widget, "w")
        assert wire.conflicts() == 0


async def test_what_is_asked_of_objects(lab: Lab) -> None:
    raw = await lab.make("w", finalizers=[MINE])
    typed = await lab.outside.get(lab.typed, "w")
    for obj in (raw, typed):
        assert has_finalizer(obj, MINE)
        assert finalizers_of(obj) == [MINE]
        assert not is_deleting(obj)
    await lab.outside.delete(lab.widget, "w")
    assert is_deleting(await lab.outside.get(lab.typed, "w"))
    assert is_deleting(await lab.outside.get(lab.widget, "w"))
    await lab.outside.patch(lab.widget, "w", {"metadata": {"finalizers": None}})


async def test_without_an_object_there_is_nothing_to_hold(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, request: str) -> None:
        with pytest.raises(RuntimeError, match="no object to put a finalizer on"):
            ctx.finalizing(MINE)
        with pytest.raises(RuntimeError, match="no object that could own"):
            await ctx.create_or_update({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
        with pytest.raises(RuntimeError, match="no object that the Event"):
            ctx.event("Reason", "note")
        await runs.add(request)

    manager, _ = lab.manager()
    manager.controller(None, reconcile, name="free").enqueue("go")
    async with started(manager):
        await runs.until(1)
