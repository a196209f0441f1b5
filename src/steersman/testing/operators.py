"""An operator that runs while a test does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from steersman.client.errors import NoMatch

if TYPE_CHECKING:
    from steersman.runtime.cache.informer import Informer
    from steersman.runtime.manager import Manager

READY = 60.0
"""Seconds for the caches to fill, and what needs no leader to start."""
UNKNOWN = 5.0
"""Seconds for which a kind may be unknown to the server while the caches fill: nobody will load it any more."""
_LOOK = 0.1


@asynccontextmanager
async def running(manager: Manager, *, timeout: float = READY) -> AsyncIterator[Manager]:
    """Run a manager on this event loop while the block does; it has started, and its caches are complete.

    Whether it leads yet, where it takes part in an election, `manager.leading` tells. At the end it is stopped in
    order. Raises what `Manager.start` raises, and TimeoutError if it has not started within `timeout` seconds, or
    if the server has not served a kind that it watches for 5 seconds: the message says what cannot be watched, and why.
    """
    work = asyncio.ensure_future(manager.start())
    ready = asyncio.ensure_future(manager.ready.wait())
    try:
        await _started(manager, work, ready, timeout)
        if ready.done():
            yield manager
    finally:
        ready.cancel()
        manager.stop()
        await asyncio.wait([work])
    work.result()


async def _started(manager: Manager, work: asyncio.Future[None], ready: asyncio.Future[Any], timeout: float) -> None:
    """Wait until the manager is ready, or has ended. Raises TimeoutError."""
    clock = asyncio.get_running_loop().time
    began = known = clock()
    while True:
        left = began + timeout - clock()
        await asyncio.wait([work, ready], timeout=min(max(left, 0), _LOOK), return_when=asyncio.FIRST_COMPLETED)
        if ready.done() or work.done():
            return
        unsynced = _unsynced(manager)
        if left <= 0:
            raise TimeoutError(f"the operator has not started within {timeout:g} s{_reasons(unsynced)}")
        missing = [informer for informer in unsynced if isinstance(informer.error, NoMatch)]
        if not missing:
            known = clock()
        elif clock() - known >= UNKNOWN:
            raise TimeoutError(f"the operator cannot start{_reasons(missing)}; `apiserver.load(...)` their definitions")


def _unsynced(manager: Manager) -> list[Informer]:
    with suppress(RuntimeError):  # a cluster is not open yet
        informers = (informer for cluster in manager._clusters for informer in cluster.cache.informers)
        return [informer for informer in informers if not informer.has_synced]
    return []


def _reasons(informers: list[Informer]) -> str:
    told = [f"cannot watch {informer}: {informer.error}" for informer in informers if informer.error is not None]
    return f": {', '.join(told)}" if told else ""
