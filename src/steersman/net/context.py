"""What all connections of one server share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import field
from typing import Any, Protocol, TypeVar

from steersman._util.dataclass import dataclass

from .eager import EagerRunner
from .http import AnyHandler
from .wire import date_line

T = TypeVar("T")

log = logging.getLogger("steersman.net")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may ask of a server. Sizes in bytes, times in seconds; 0 connections means no limit.

    The limit of a head is Go's (net/http DefaultMaxHeaderBytes). Times are looked at in steps of `sweep_interval()`.
    """

    max_body: int = 3 * 1024 * 1024
    max_head: int = 1024 * 1024
    max_connections: int = 0
    head_timeout: float = 32.0
    body_timeout: float = 60.0
    idle_timeout: float = 90.0
    write_timeout: float = 60.0  # a client that reads nothing of its answer for so long is cut off; not for streams
    linger_timeout: float = 5.0  # how long the rest of a refused request is read, so that its answer arrives

    def sweep_interval(self) -> float:
        """How often connections are looked at for their time: four times within the shortest limit, or each second."""
        shortest = min(self.head_timeout, self.body_timeout, self.idle_timeout, self.write_timeout, self.linger_timeout)
        return min(1.0, shortest / 4)


class Flushable(Protocol):
    def flush(self) -> None: ...


@dataclass(slots=True, eq=False)
class ServerContext:
    """Shared state. `tick` (the loop's time) and `date` (a header line) are those of the last sweep."""

    loop: asyncio.AbstractEventLoop
    handler: AnyHandler
    limits: Limits
    runner: EagerRunner
    tick: float
    date: bytes = field(default_factory=date_line)
    stopping: bool = False
    connections: set[Any] = field(default_factory=set)
    tasks: set[asyncio.Future[Any]] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _unflushed: list[Flushable] = field(default_factory=list)

    def flush_soon(self, stream: Flushable) -> None:
        """Flushes the stream at the end of this turn of the loop: many small writes become one TLS record."""
        if not self._unflushed:
            self.loop.call_soon(self._flush)
        self._unflushed.append(stream)

    def _flush(self) -> None:
        streams, self._unflushed = self._unflushed, []
        for stream in streams:
            stream.flush()

    def spawn(self, awaitable: Awaitable[T]) -> asyncio.Future[T]:
        """Runs it in a task (a task or future stays what it is) that stop() waits for."""
        task = asyncio.ensure_future(awaitable, loop=self.loop)
        self.tasks.add(task)
        task.add_done_callback(self._forget_task)
        return task

    def _forget_task(self, task: asyncio.Future[Any]) -> None:
        self.tasks.discard(task)
        self.connection_changed()

    def forget(self, connection: object) -> None:
        """The connection has ended."""
        self.connections.discard(connection)
        self.connection_changed()

    def connection_changed(self) -> None:
        """Lets a waiting stop() look again."""
        if self.stopping:
            self.changed.set()
