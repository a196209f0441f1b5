"""Where events go: at once, or through a buffer, and whole or cut.

Source: apiserver `plugin/pkg/audit/{buffered,truncate}`, `pkg/server/options/audit.go`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from steersman.apiserver.audit.events import without_objects

log = logging.getLogger("steersman.apiserver.audit")

BATCH, BLOCKING, BLOCKING_STRICT = "batch", "blocking", "blocking-strict"
MODES = (BATCH, BLOCKING, BLOCKING_STRICT)


class Sink(Protocol):
    """Takes events at once."""

    def send(self, events: Sequence[bytes]) -> bool:
        """False when they are lost; why is logged."""
        ...

    async def close(self) -> None: ...


class RemoteSink(Protocol):
    """Takes events, and has to wait for that."""

    async def deliver(self, events: Sequence[bytes]) -> bool:
        """False when they are lost; why is logged."""
        ...

    async def close(self) -> None: ...


class Backend(Protocol):
    """What a request's events are given to."""

    async def process(self, event: bytes, *, first: bool) -> bool:
        """`first` says that the request has not begun. False refuses it, which is so in strict mode only."""
        ...

    async def close(self) -> None:
        """Give up what is buffered to where it should go."""
        ...


@dataclass(frozen=True, slots=True)
class BatchConfig:
    """`buffer` events wait at most, more are lost; a batch has at most `size`, and waits at most `wait` seconds.

    `rate` batches a second on average, `burst` at once; a rate of 0 limits nothing.
    """

    buffer: int = 10_000
    size: int = 400
    wait: float = 30.0
    rate: float = 10.0
    burst: int = 15


@dataclass(frozen=True, slots=True)
class Truncation:
    """Events of more than `event` bytes lose their objects, or are lost; a batch has at most `batch` bytes."""

    event: int = 100 * 1024
    batch: int = 10 * 1024 * 1024

    def fit(self, event: bytes) -> bytes | None:
        if len(event) <= self.event:
            return event
        cut = without_objects(event)
        if len(cut) <= self.event:
            return cut
        log.error("an audit event is too large even after truncating", extra={"bytes": len(cut)})
        return None

    def split(self, events: Sequence[bytes]) -> list[list[bytes]]:
        batches: list[list[bytes]] = [[]]
        size = 0
        for event in events:
            if batches[-1] and size + len(event) > self.batch:
                batches.append([])
                size = 0
            batches[-1].append(event)
            size += len(event)
        return batches


class Direct:
    """Gives events on as they come (modes blocking and blocking-strict)."""

    def __init__(self, sink: Sink | RemoteSink, *, strict: bool, truncation: Truncation | None = None) -> None:
        self._sink = sink
        self._strict = strict
        self._truncation = truncation

    async def process(self, event: bytes, *, first: bool) -> bool:
        if self._truncation is not None:
            cut = self._truncation.fit(event)
            if cut is None:
                return True
            event = cut
        sink = self._sink
        done = await sink.deliver([event]) if _is_remote(sink) else sink.send([event])  # type: ignore[union-attr]
        return done or not (self._strict and first)

    async def close(self) -> None:
        await self._sink.close()


class Batched:
    """Collects events and gives them on in batches (mode batch). No request waits for it."""

    def __init__(self, sink: Sink | RemoteSink, config: BatchConfig, truncation: Truncation | None = None) -> None:
        self._sink = sink
        self._config = config
        self._truncation = truncation
        self._waiting: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._closing = False
        self._lost = 0
        self._sending: set[asyncio.Task[object]] = set()
        self._tokens = float(config.burst)
        self._refilled = asyncio.get_running_loop().time()
        self._worker = asyncio.ensure_future(self._work())

    async def process(self, event: bytes, *, first: bool) -> bool:
        if self._closing or len(self._waiting) >= self._config.buffer:
            if not self._lost:
                log.error("audit events are lost: the buffer is full", extra={"buffer": self._config.buffer})
            self._lost += 1
            return True
        cut = event if self._truncation is None else self._truncation.fit(event)
        if cut is not None:
            self._waiting.append(cut)
            self._arrived.set()
            if len(self._waiting) >= self._config.size:
                self._full.set()
        return True

    async def close(self) -> None:
        self._closing = True
        self._full.set()
        self._arrived.set()
        await self._worker
        if self._sending:
            await asyncio.wait(self._sending)
        await self._sink.close()

    async def _work(self) -> None:
        while not self._closing or self._waiting:
            await self._arrived.wait()
            await self._fill()
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._config.size))]
            if not self._waiting and not self._closing:
                self._arrived.clear()
            if len(self._waiting) < self._config.size and not self._closing:
                self._full.clear()
            if self._lost:
                log.error("audit events were lost", extra={"events": self._lost})
                self._lost = 0
            for part in self._truncation.split(batch) if self._truncation is not None else [batch]:
                if part:
                    await self._throttle()
                    self._give(part)

    async def _fill(self) -> None:
        """Wait until a batch is full, or has waited long enough."""
        try:
            async with asyncio.timeout(self._config.wait if self._config.size > 1 else 0):
                await self._full.wait()
        except TimeoutError:
            return

    async def _throttle(self) -> None:
        rate = self._config.rate
        if not rate or self._closing:
            return
        now = asyncio.get_running_loop().time()
        self._tokens = min(float(self._config.burst), self._tokens + (now - self._refilled) * rate)
        self._refilled = now
        self._tokens -= 1
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / rate)

    def _give(self, batch: list[bytes]) -> None:
        sink = self._sink
        if not _is_remote(sink):
            sink.send(batch)  # type: ignore[union-attr]
            return
        task: asyncio.Task[object] = asyncio.ensure_future(sink.deliver(batch))  # type: ignore[union-attr]
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)


def _is_remote(sink: Sink | RemoteSink) -> bool:
    return hasattr(sink, "deliver")
