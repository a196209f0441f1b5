"""Waiting for things to end, and ending them: nothing of a group may run on when whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from steersman._util.tasks import end
from steersman.runtime.controller import Controller


async def until_first(tasks: Collection[asyncio.Future[Any]], ends: asyncio.Future[Any] | None = None) -> None:
    """Wait until `ends` is done (any, if None), or one fails; raises its error."""
    running = set(tasks)
    while running:
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        if ends is None or ends in done:
            return


async def stop_all(
    controllers: Collection[Controller[Any]], tasks: Collection[asyncio.Future[Any]], grace: float
) -> None:
    """Stop controllers and tasks, and return when nothing of them runs any more.

    Whoever cancels this takes away the grace, but does not leave it: what is left running would be so beyond the lock's
    release.
    """
    ending = asyncio.gather(*(controller.stop(grace) for controller in controllers), end(tasks))
    cancelled = False
    while not ending.done():
        try:
            await asyncio.wait([ending])
        except asyncio.CancelledError:
            cancelled = True
            for controller in controllers:
                controller.cancel()
    ending.result()
    if cancelled:
        raise asyncio.CancelledError


async def until_done(future: asyncio.Future[Any]) -> None:
    """Returns when it is done, however often this is cancelled; then the cancellation is raised."""
    cancelled = False
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
