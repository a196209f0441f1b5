"""An operator that runs while a test does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steersman.runtime.manager import Manager

READY = 60.0
"""Seconds for the caches to fill, and what needs no leader to start."""


@asynccontextmanager
async def running(manager: Manager, *, timeout: float = READY) -> AsyncIterator[Manager]:
    """Run a manager on this event loop while the block does; it has started, and its caches are complete.

    Whether it leads yet, where it takes part in an election, `manager.leading` tells. At the end it is stopped in
    order. Raises what `Manager.start` raises, and TimeoutError if it has not started within `timeout` seconds.
    """
    work = asyncio.ensure_future(manager.start())
    ready = asyncio.ensure_future(manager.ready.wait())
    try:
        await asyncio.wait([work, ready], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done() and not work.done():
            raise TimeoutError(f"the operator has not started within {timeout:g} s")
        if ready.done():
            yield manager
    finally:
        ready.cancel()
        manager.stop()
        await asyncio.wait([work])
    work.result()
