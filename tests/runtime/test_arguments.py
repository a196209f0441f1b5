"""What an operator's author gets wrong is told at once, in one sentence that says what to do."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.runtime.kit import Lab, Log, started

from steersman.runtime.cache.cache import CacheScope
from steersman.runtime.manager import Manager
from steersman.runtime.requests import Result


async def _nothing(ctx: Any, obj: Any) -> None:
    """Does nothing."""


async def _only_context(ctx: Any) -> None:
    """Takes too little."""


async def test_of_a_controller(lab: Lab) -> None:
    manager, _ = lab.manager()
    with pytest.raises(ValueError, match="at least 1, not 0"):
        manager.controller(lab.typed, _nothing, concurrency=0)
    with pytest.raises(ValueError, match="the timeout of widget must be None, or seconds greater than zero, not -1"):
        manager.controller(lab.typed, _nothing, timeout=-1)
    with pytest.raises(ValueError, match=r"written by one of .*'patch', 'apply', 'off'.*, not 'put'"):
        manager.controller(lab.typed, _nothing, status="put")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"must be a function of \(ctx, obj\), not None"):
        manager.controller(lab.typed, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"called with \(ctx, obj\), but takes \(ctx"):
        manager.controller(lab.typed, _only_context)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'Widget' is no kind: give a class made with @custom_resource, or a Resource"):
        manager.controller("Widget", _nothing)  # type: ignore[type-var]
    controller = manager.controller(lab.typed, _nothing)
    with pytest.raises(TypeError, match="'Deployment' is no kind"):
        controller.owns("Deployment")  # type: ignore[type-var]
    with pytest.raises(TypeError, match="is no kind"):
        controller.watches(dict, lambda obj: [])  # type: ignore[type-var]
    with pytest.raises(ValueError, match="a controller 'widget' already"):
        manager.controller(lab.widget, _nothing)
    with pytest.raises(ValueError, match="needs a name"):
        manager.controller(None, _nothing)
    manager.controller(None, print, name="of a function in C")


def test_of_a_manager() -> None:
    with pytest.raises(ValueError, match="grace must be 0 or more seconds, not -1"):
        Manager(grace=-1)
    with pytest.raises(ValueError, match="'x' is not an address"):
        Manager().configure(webhooks="x")


def test_of_what_is_watched() -> None:
    with pytest.raises(ValueError, match=r"namespaces must be a list of names: \['default'\]"):
        CacheScope(namespaces="default")
    with pytest.raises(ValueError, match="at least one, or be None for all"):
        CacheScope(namespaces=[])
    with pytest.raises(ValueError, match="resync must be None, or seconds greater than zero, not 0"):
        CacheScope(resync=0)


@pytest.mark.parametrize("after", ["5s", float("nan"), float("inf")])
async def test_of_a_result(lab: Lab, after: Any) -> None:
    """It is an error of the reconcile, and the worker goes on."""
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> Result:
        await runs.add(ctx.attempt)
        return Result(requeue_after=after if len(runs) == 1 else None)

    with pytest.raises(ValueError, match="must be a number of seconds, a timedelta or None, not "):
        Result(requeue_after=after)
    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile, concurrency=1)
    async with started(manager):
        await lab.make("w")
        await runs.until([0, 1].__eq__)


@pytest.mark.parametrize("after", [0, -1, timedelta(seconds=-1)])
async def test_a_reconcile_that_waits_for_nothing_leaves_room_for_everything_else(lab: Lab, after: Any) -> None:
    """One that asks to run again at once runs for ever; signals, probes and leases must have their turn."""
    runs, often = 0, asyncio.Event()

    async def reconcile(ctx: Any, widget: Any) -> Result:
        nonlocal runs
        runs += 1
        if runs > 100:
            often.set()
        return Result(requeue_after=after)

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await often.wait()
        await lab.outside.patch(lab.widget, "w", {"spec": {"replicas": 2}})
