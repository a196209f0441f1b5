"""A queue of keys for a controller: each waits once, is worked on by one task at a time, and is tried again later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
log = logging.getLogger("steersman.controlplane")
FIRST_WAIT, LONGEST_WAIT = 0.01, 30.0


class WorkQueue(Generic[K]):
    """`add` keys at any time; `run` works on them until it is cancelled.

    A key that is added while it is worked on is worked on again. When `work` raises, the key comes back after a wait
    that doubles with every failure in a row, from 10 ms to 30 s.
    """

    def __init__(self, name: str, work: Callable[[K], Awaitable[None]], *, workers: int = 8) -> None:
        self._name = name
        self._work = work
        self._workers = workers
        self._waiting: dict[K, None] = {}
        self._running: set[K] = set()
        self._failures: dict[K, int] = {}
        self._wake = asyncio.Event()

    def add(self, key: K) -> None:
        self._waiting[key] = None
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled; what has begun is cancelled too."""
        async with asyncio.TaskGroup() as tasks:
            slots = asyncio.Semaphore(self._workers)
            while True:
                await slots.acquire()
                key = await self._next()
                self._running.add(key)
                tasks.create_task(self._try(key, slots))

    async def _next(self) -> K:
        while True:
            key = next((key for key in self._waiting if key not in self._running), None)
            if key is not None:
                del self._waiting[key]
                return key
            self._wake.clear()
            await self._wake.wait()

    async def _try(self, key: K, slots: asyncio.Semaphore) -> None:
        try:
            await self._work(key)
            self._failures.pop(key, None)
        except Exception as error:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            wait = min(FIRST_WAIT * 2.0 ** (failures - 1), LONGEST_WAIT)
            level = logging.DEBUG if failures < 3 else logging.WARNING
            log.log(level, "a controller tries again", extra={"controller": self._name, "error": str(error)})
            asyncio.get_running_loop().call_later(wait, self.add, key)
        finally:
            self._running.discard(key)
            slots.release()
            self._wake.set()
