"""The work queue: each item once, never twice at a time, later if asked, and nothing starves.

Source: client-go `util/workqueue/{queue,delaying_queue,rate_limiting_queue}.go`; controller-runtime
`pkg/controller/priorityqueue`.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from steersman.runtime.metrics import QueueMetrics
from steersman.runtime.rate_limiter import ExponentialBackoff
from steersman.runtime.requests import Reason

K = TypeVar("K", bound=Hashable)

AGEING = 0.1
"""Seconds of waiting that make up for one point of priority: an item of priority -100 goes before those of priority 0
that came 10 s after it."""

MAX_REASONS = 8


class ShutDown(Exception):
    """The queue gives nothing any more."""


@dataclass(slots=True)
class Item(Generic[K]):
    """An item as it waits. `ready_at` is the loop's time at which it may be worked on, `reasons` why it is there."""

    key: K
    priority: int
    ready_at: float
    reasons: list[Reason] = field(default_factory=list)
    waited: float = 0.0
    """Seconds between `ready_at` and the start of the work."""


class WorkQueue(Generic[K]):
    """Items to be worked on by a number of workers on one event loop.

    An item that is added while it waits stays one item: it keeps the higher priority, the earlier time and all reasons.
    An item that is added while it is worked on comes back once that is done. Among the items whose time has come, the
    one goes first that has waited longest, a point of priority counting as `AGEING` seconds.
    """

    def __init__(
        self, name: str = "", *, rate_limiter: ExponentialBackoff[K] | None = None, metrics: QueueMetrics | None = None
    ) -> None:
        self.name = name
        self._limiter = rate_limiter or ExponentialBackoff()
        self._loop = asyncio.get_running_loop()
        self._metrics = (metrics or QueueMetrics()).of(name)
        self._waiting: dict[K, Item[K]] = {}
        self._again: dict[K, Item[K]] = {}
        self._working: dict[K, float] = {}
        self._later: list[tuple[float, int, Item[K]]] = []
        self._ready: list[tuple[float, int, Item[K]]] = []
        self._serials = itertools.count()
        self._workers: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._closed = False
        self._idle = asyncio.Event()
        self._metrics.watch(self)

    def __len__(self) -> int:
        """How many items wait, those included whose time has not come."""
        return len(self._waiting)

    def depths(self) -> dict[int, int]:
        """How many items wait whose time has come, by priority."""
        now, found = self._loop.time(), dict[int, int]()
        for item in self._waiting.values():
            if item.ready_at <= now:
                found[item.priority] = found.get(item.priority, 0) + 1
        return found

    def working(self) -> list[float]:
        """For how many seconds each item that is worked on has been."""
        now = self._loop.time()
        return [now - since for since in self._working.values()]

    def add(self, key: K, *, after: float = 0.0, priority: int = 0, reason: Reason | None = None) -> None:
        """Have an item worked on, `after` so many seconds. Ignored once the queue is shut down."""
        if self._closed:
            return
        self._metrics.added()
        item = Item(key, priority, self._loop.time() + max(after, 0.0), [reason] if reason else [])
        if key in self._working:
            known = self._again.get(key)
            if known is None:
                self._again[key] = item
            else:
                _merge(known, item)
            return
        known = self._waiting.get(key)
        if known is None:
            self._put(item)
        elif item.priority <= known.priority and item.ready_at >= known.ready_at:
            _add_reasons(known.reasons, item.reasons)  # it keeps its place
        else:
            self._put(_merged(known, item))

    def add_rate_limited(self, key: K, *, priority: int = 0, reason: Reason | None = None) -> float:
        """Have an item worked on after its backoff, which grows with each call; gives the seconds."""
        delay = self._limiter.when(key)
        self._metrics.retried()
        self.add(key, after=delay, priority=priority, reason=reason)
        return delay

    def forget(self, key: K) -> None:
        """The item has succeeded: its backoff starts anew."""
        self._limiter.forget(key)

    def failures(self, key: K) -> int:
        """How often the item has failed since it last succeeded."""
        return self._limiter.failures(key)

    async def get(self) -> Item[K]:
        """The next item; call `done` with its key after the work. Raises ShutDown."""
        while True:
            self._promote()
            while self._ready:
                _, _, item = heapq.heappop(self._ready)
                if self._waiting.get(item.key) is item:
                    return self._begin(item)
            if self._closed:
                raise ShutDown(self.name)
            waiter = self._loop.create_future()
            self._workers.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()  # the wake-up was for an item that somebody else must take now
                raise

    def done(self, key: K) -> None:
        """The work on an item has ended. If the item was added meanwhile, it waits again."""
        since = self._working.pop(key)
        self._metrics.worked(self._loop.time() - since)
        again = self._again.pop(key, None)
        if again is not None and not self._closed:
            self._put(again)
        if not self._working:
            self._idle.set()

    def shut_down(self) -> None:
        """Give out nothing more: what waits is dropped, and `get` raises ShutDown."""
        self._closed = True
        for kept in (self._waiting, self._again, self._later, self._ready):
            kept.clear()
        if self._timer is not None:
            self._timer.cancel()
        while self._workers:
            self._wake()

    async def drained(self) -> None:
        """Returns when nothing is worked on."""
        while self._working:
            self._idle.clear()
            await self._idle.wait()

    def _put(self, item: Item[K]) -> None:
        self._waiting[item.key] = item
        if item.ready_at <= self._loop.time():
            self._make_ready(item)
        else:
            heapq.heappush(self._later, (item.ready_at, next(self._serials), item))
            self._drop_void(self._later)
            self._set_timer()

    def _make_ready(self, item: Item[K]) -> None:
        heapq.heappush(self._ready, (item.ready_at - item.priority * AGEING, next(self._serials), item))
        self._drop_void(self._ready)
        self._wake()

    def _drop_void(self, heap: list[tuple[float, int, Item[K]]]) -> None:
        """Items that have moved leave their old entries behind: these must not outgrow the items."""
        if len(heap) > 2 * len(self._waiting) + 64:
            heap[:] = [entry for entry in heap if self._waiting.get(entry[2].key) is entry[2]]
            heapq.heapify(heap)

    def _promote(self) -> None:
        now = self._loop.time()
        while self._later and self._later[0][0] <= now:
            _, _, item = heapq.heappop(self._later)
            if self._waiting.get(item.key) is item:
                self._make_ready(item)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            if self._later and self._timer_at <= self._later[0][0]:
                return
            self._timer.cancel()
            self._timer = None
        if self._later:
            # uvloop's handles do not tell when they are due.
            self._timer_at = self._later[0][0]
            self._timer = self._loop.call_at(self._timer_at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._promote()

    def _wake(self) -> None:
        while self._workers:
            waiter = self._workers.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _begin(self, item: Item[K]) -> Item[K]:
        now = self._loop.time()
        del self._waiting[item.key]
        self._working[item.key] = now
        item.waited = now - item.ready_at
        self._metrics.started(item.waited)
        return item


def _merge(known: Item[K], new: Item[K]) -> None:
    known.priority = max(known.priority, new.priority)
    known.ready_at = min(known.ready_at, new.ready_at)
    _add_reasons(known.reasons, new.reasons)


def _merged(known: Item[K], new: Item[K]) -> Item[K]:
    """As a new item, so that what the heaps hold of the old one is void."""
    item = Item(known.key, known.priority, known.ready_at, known.reasons)
    _merge(item, new)
    return item


def _add_reasons(known: list[Reason], new: Sequence[Reason]) -> None:
    for reason in new:
        if len(known) < MAX_REASONS and reason not in known:
            known.append(reason)
