"""Objects that are not what the model says."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.runtime.kit import Lab, Log, started

from steersman.client import CustomResource, Model, custom_resource


class Strict(Model):
    image: str


async def test_an_object_that_does_not_fit_waits_for_a_change(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    runs = Log()

    @custom_resource(f"{lab.group}/v1", kind="Widget")
    class Widget(CustomResource[Strict, Model]): ...

    async def reconcile(ctx: Any, widget: Widget) -> None:
        await runs.add((widget.metadata.name, widget.spec.image))

    manager, _ = lab.manager()
    manager.controller(Widget, reconcile)
    await lab.outside.create(
        {"apiVersion": f"{lab.group}/v1", "kind": "Widget", "metadata": {"name": "fits"}, "spec": {"image": "a"}}
    )
    await lab.make("odd")
    async with started(manager):
        await runs.until(1)
        await lab.settled(manager)
        await lab.outside.patch(lab.widget, "odd", {"spec": {"image": "b"}})
        await runs.until(2)
    assert runs.entries == [("fits", "a"), ("odd", "b")]
    failures = [
        record for record in caplog.records if record.levelno == logging.ERROR and "/odd" in vars(record)["key"]
    ]
    assert [record.exc_info for record in failures] == [None], "told once, without a traceback"
    assert "the object does not fit the model: Widget: spec.image: Field required" in failures[0].message


async def test_an_object_without_a_spec_has_the_defaults(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        widget.status.ready = widget.spec.replicas
        await runs.add(widget.metadata.name)

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile)
    await lab.outside.create({"apiVersion": f"{lab.group}/v1", "kind": "Widget", "metadata": {"name": "bare"}})
    async with started(manager):
        found = await lab.until(lab.widget, "bare", lambda found: bool(found.get("status")))
    assert found["status"] == {"ready": 1}
    assert "spec" not in found
    assert [sent.method for sent in wire.writes()] == ["PATCH"]
