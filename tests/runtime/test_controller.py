"""Controllers on a real server: what runs, how often, and what is written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.runtime.kit import MAPS, Lab, Log, started


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
