"""One process's view of a lock, and the requests that take it, renew it and give it up.

Source: client-go `tools/leaderelection/leaderelection.go` (tryAcquireOrRenew, tryRelease). What differs from it keeps
two leaders apart: a lock that vanishes is not free before its last record has run out; a record that names us, but was
not written by this elector, is another's; each term has a number of its own.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from steersman.apimachinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.client.client import Client
from steersman.client.errors import ClientError
from steersman.client.transport import TransportTimeout
from steersman.runtime.leaderelection.leadership import LeadershipLost
from steersman.runtime.leaderelection.locks import Lock, Observation
from steersman.runtime.leaderelection.record import Record
from steersman.runtime.leaderelection.timing import Timing

T = TypeVar("T")

REQUEST_ERRORS = (ApiError, ClientError)
"""What a request may fail with, a timeout among them."""

_CHANGED = (AlreadyExists, Conflict, NotFound)
"""What a write fails with when something else is stored than was seen."""

_KEPT_CLAIMS = 16


class Claim:
    """Times are the event loop's. The age of a record is counted from when it was seen to change."""

    def __init__(
        self,
        client: Client,
        lock: Lock,
        identity: str,
        timing: Timing,
        wall_clock: Callable[[], datetime],
        on_slow_path: Callable[[], None],
    ) -> None:
        self._client = client
        self._lock = lock
        self._identity = identity
        self._timing = timing
        self._wall_clock = wall_clock
        self._on_slow_path = on_slow_path
        self._there: Observation | None = None
        self._raw: bytes | None = None
        self._changed = 0.0
        self._terms: int | None = None  # the highest number of a term that was seen
        self._stamped: datetime | None = None
        self._claims: deque[datetime | None] = deque(maxlen=_KEPT_CLAIMS)
        self.record = Record()
        """The last record that was seen, also when the lock has vanished since."""
        self.uncertain = False
        """Whether a request to take the lock was sent whose outcome is not known."""

    @property
    def ours(self) -> bool:
        """Whether the record was written by this elector."""
        return self.record.holder == self._identity and self.record.acquired in self._claims

    @property
    def namesake(self) -> bool:
        """Whether another process leads under our identity."""
        return self.record.holder == self._identity and not self.ours

    def free_at(self) -> float:
        """From when on the lock may be taken, if it does not change."""
        if not self.record.holder or self.ours:
            return -math.inf
        promised = self.record.duration if self.record.duration > 0 else self._timing.lease_duration
        return self._changed + promised

    async def read(self) -> None:
        """Read the lock. Raises ApiError and ClientError, as all that follows."""
        self._observe(await self._timed(self._lock.read(self._client)))

    async def take(self) -> tuple[Record, float]:
        """Begin a new term: its record, and when the request was sent."""
        time = self._stamp()
        number = 0 if self._terms is None else self._terms + 1
        record = Record(self._identity, self._timing.promised, time, time, number)
        started = _now()
        self._claims.append(time)
        self.uncertain = True
        try:
            await self._write(record)
        except ApiError as error:
            self.uncertain = error.code >= 500
            raise
        self.uncertain = False
        return record, started

    async def renew(self, term: Record) -> float:
        """Renew a term; when the request was sent. Raises LeadershipLost when the lock is another's by now."""
        started = _now()
        record = replace(term, renewed=self._stamp())
        try:
            await self._write(record)
        except _CHANGED:
            # It may be a label that was changed, or our own write whose answer was lost: the record tells whose it is.
            self._on_slow_path()
            await self.read()
            if self._there is not None and not self.ours:
                raise LeadershipLost(f"the lock has been taken by {self.record.holder or 'nobody'}") from None
            await self._write(record)
        return started

    async def release(self) -> bool:
        """Give the lock up if it is ours, so that others need not wait; whether that was done."""
        while self.ours and self._there is not None:
            time = self._stamp()
            try:
                await self._write(Record("", 1, time, time, self.record.transitions))
            except NotFound:
                return False
            except Conflict:
                await self.read()  # perhaps a renewal whose answer was not waited for
            else:
                return True
        return False

    async def _write(self, record: Record) -> None:
        self._observe(await self._timed(self._lock.write(self._client, record, self._there)))

    async def _timed(self, request: Awaitable[T]) -> T:
        limit = self._timing.request_timeout
        try:
            async with asyncio.timeout(limit):
                return await request
        except TimeoutError as error:
            raise TransportTimeout(f"no answer within {limit} seconds") from error

    def _observe(self, seen: Observation | None) -> None:
        self._there = seen
        if seen is not None and seen.raw != self._raw:
            self._raw, self.record, self._changed = seen.raw, seen.record, _now()
            self._terms = max(self._terms or 0, seen.record.transitions)

    def _stamp(self) -> datetime:
        """The wall clock's time, but later than the one before: two records that we write are never the same."""
        time = self._wall_clock()
        step = self._lock.resolution
        if step.microseconds == 0:
            time = time.replace(microsecond=0)
        if self._stamped is not None and time <= self._stamped:
            time = self._stamped + step
        self._stamped = time
        return time


def _now() -> float:
    return asyncio.get_running_loop().time()
