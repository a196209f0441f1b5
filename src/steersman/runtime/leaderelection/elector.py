"""The elector: competes for a lock, and runs work while it holds it.

Source: client-go `tools/leaderelection/leaderelection.go`; controller-runtime `pkg/leaderelection/leader_election.go`
(the identity).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

from steersman._util import clock
from steersman.apimachinery.errors import AlreadyExists, Conflict
from steersman.client.client import Client
from steersman.runtime.leaderelection.claim import REQUEST_ERRORS, Claim
from steersman.runtime.leaderelection.hints import Hints
from steersman.runtime.leaderelection.leadership import Leadership, LeadershipLost
from steersman.runtime.leaderelection.locks import Lock
from steersman.runtime.leaderelection.metrics import ElectionMetrics, ElectionMetricsSink
from steersman.runtime.leaderelection.record import UNKNOWN_LEADER, Record
from steersman.runtime.leaderelection.term import Term
from steersman.runtime.leaderelection.timing import Timing

logger = logging.getLogger("steersman.runtime.leaderelection")

T = TypeVar("T")

_HINT_PAUSE = 0.1
"""The part of a retry period that must lie between two looks at a lock that changes all the time."""


class LeaderElector:
    """One of several processes that compete for a lock; at most one of them works at a time.

        elector = LeaderElector(client, LeaseLock("myspace", "my-operator"))
        await elector.run(work)                     # async def work(leadership): ...

    Other electors of the lock may be client-go's. Only this process's monotonic clock counts: a record's age is
    measured from when it was seen to change, a term from before the request that began or renewed it was sent.

    `identity` must be unique: by default host name and a UUID; a record with our identity that this elector has not
    written is another's, and its time has to run out. `name` is the metrics' label, by default the lock's name.
    Durations are in seconds, see `Timing`. `release_on_cancel` gives the lock up when the work has ended, so that
    another process need not wait. `watch` has candidates watch the lock, to notice that at once.

    Callbacks are called by the event loop and must not block: `on_started_leading` before the work begins,
    `on_stopped_leading` after it has ended and before the lock is given up, `on_new_leader` with an identity whenever
    another leader than before is seen, this process among them.

    Work that has not ended when four fifths of the time between renew_deadline and lease_duration are over (14 s after
    the last renewal, by default) is an overrun: it is logged, `on_overrun` is called, and the process exits at once
    (status 1), unless `exit_on_overrun` is false. A thread does that also when the work holds up the event loop, and
    after the whole process was stopped for so long, be it by a debugger: `on_overrun` may be called in another thread.

    Raises ValueError for durations that cannot be kept, or an empty identity.
    """

    def __init__(
        self,
        client: Client,
        lock: Lock,
        *,
        identity: str | None = None,
        name: str | None = None,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        release_on_cancel: bool = True,
        exit_on_overrun: bool = True,
        watch: bool = True,
        on_started_leading: Callable[[Leadership], None] | None = None,
        on_stopped_leading: Callable[[], None] | None = None,
        on_new_leader: Callable[[str], None] | None = None,
        on_overrun: Callable[[], None] | None = None,
        metrics: ElectionMetricsSink | None = None,
        wall_clock: Callable[[], datetime] = clock.utc_now,
    ) -> None:
        self.timing = Timing(lease_duration, renew_deadline, retry_period)
        self.identity = default_identity() if identity is None else identity
        if not self.identity:
            raise ValueError("an elector needs an identity")
        self.lock = lock
        self.metrics = metrics or ElectionMetrics()
        self.leadership: Leadership | None = None
        """The term that is under way; None when this process does not lead."""
        self._client = client
        self._labels = (name or lock.name,)
        self._release_on_cancel = release_on_cancel
        self._exit_on_overrun = exit_on_overrun
        self._watch = watch
        self._on_started = on_started_leading
        self._on_stopped = on_stopped_leading
        self._on_new_leader = on_new_leader
        self._on_overrun = on_overrun
        self._told: str | None = None
        self._said = ""
        self._running = False
        self._claim = Claim(client, lock, self.identity, self.timing, wall_clock, self._slow_path)
        self.metrics.master.set(0, self._labels)
        self.metrics.slow_path.cell(self._labels)

    @property
    def is_leader(self) -> bool:
        """Whether this process leads for certain."""
        return self.leadership is not None and self.leadership.valid

    @property
    def leader(self) -> str | None:
        """The identity of the last leader that was seen, for people; None when there was none."""
        return self._claim.record.holder or None

    def check(self, seconds: float = 0.0) -> Leadership:
        """The term under way; raises LeadershipLost as `Leadership.check` does, and when there is none."""
        if self.leadership is None:
            raise LeadershipLost("this process does not lead")
        self.leadership.check(seconds)
        return self.leadership

    def healthy(self, tolerance: float = 0.0) -> bool:
        """False when a term has expired for more than so many seconds and its work still runs: the process is stuck.

        Source: client-go `tools/leaderelection/healthzadaptor.go`.
        """
        leadership = self.leadership
        return leadership is None or asyncio.get_running_loop().time() <= leadership.expires + tolerance

    async def run(self, work: Callable[[Leadership], Awaitable[T]]) -> T:
        """Wait until this process leads, run `work` once, and give its result or raise its error.

        When the lock is lost meanwhile, the work is cancelled, and LeadershipLost raised once it has ended. When this
        is cancelled, so is the work; the lock is kept until it has ended. May be called again afterwards. Errors of
        requests are retried for ever.
        """
        if self._running:
            raise RuntimeError("this elector is running already")
        self._running = True
        try:
            leadership, record = await self._acquire()
            return await self._lead(leadership, record, work)
        finally:
            self._running = False

    async def _acquire(self) -> tuple[Leadership, Record]:
        logger.info("waiting for the lock %s as %s", self.lock, self.identity)
        loop = asyncio.get_running_loop()
        try:
            async with Hints(self._client, self.lock, self._watch) as hints:
                while True:
                    looked = loop.time()
                    if (won := await self._attempt()) is not None:
                        return won
                    wait, left = self.timing.candidate_wait(), self._claim.free_at() - loop.time()
                    await hints.wait(min(wait, left) if left > 0 else wait)
                    await asyncio.sleep(looked + _HINT_PAUSE * self.timing.retry_period - loop.time())
        except asyncio.CancelledError:
            # The lock may have become ours a moment ago, with nobody to use it.
            if self._release_on_cancel and (self._claim.uncertain or self._claim.ours):
                await self._release(self.timing.request_timeout)
            raise

    async def _attempt(self) -> tuple[Leadership, Record] | None:
        """Look at the lock, and take it if it is free."""
        now = asyncio.get_running_loop().time
        try:
            await self._claim.read()
            self._tell()
            if now() < self._claim.free_at():
                return None
            record, started = await self._claim.take()
        except (Conflict, AlreadyExists) as error:
            logger.debug("another candidate was faster: %s", error)
            return None
        except REQUEST_ERRORS as error:
            self._say(logging.WARNING, f"the lock {self.lock} cannot be read or taken: {error}")
            return None
        leadership = Leadership(self.identity, record.transitions, started, self.timing, now)
        return (leadership, record) if leadership.valid else None

    async def _lead(self, leadership: Leadership, record: Record, work: Callable[[Leadership], Awaitable[T]]) -> T:
        term = Term(leadership, record, self._claim, self.timing, work, self._on_overrun, self._exit_on_overrun)
        logger.info("leading with the lock %s as %s, term %d", self.lock, self.identity, leadership.fencing_token)
        self.leadership = leadership
        self.metrics.master.set(1, self._labels)
        self._tell()
        _call(self._on_started, leadership)
        try:
            return await term.run()
        finally:
            leadership.end("the work has ended")
            self.leadership = None
            self.metrics.master.set(0, self._labels)
            logger.info("not leading any more: %s", term.lost or "the work has ended")
            _call(self._on_stopped)
            if self._release_on_cancel:
                # Of a lock that was lost to a silent server: nobody waits for the answer longer than for a renewal.
                await self._release(self.timing.retry_period if term.lost else self.timing.request_timeout)

    async def _release(self, seconds: float) -> None:
        """Give the lock up if it is ours; if that fails, it runs out by itself."""
        try:
            async with asyncio.timeout(seconds):
                if self._claim.uncertain:
                    await self._claim.read()
                if await self._claim.release():
                    logger.info("the lock %s is given up", self.lock)
        except (*REQUEST_ERRORS, TimeoutError) as error:
            logger.warning("the lock %s could not be given up, it runs out by itself: %s", self.lock, error)

    def _tell(self) -> None:
        holder = self._claim.record.holder
        if self._claim.namesake:
            self._say(logging.WARNING, f"the lock {self.lock} is held by another process of our identity, {holder}")
        if holder and holder not in (self._told, UNKNOWN_LEADER):
            self._told = holder
            _call(self._on_new_leader, holder)

    def _say(self, level: int, message: str) -> None:
        """Log something that is found anew by each look, but say it once."""
        logger.log(level if message != self._said else logging.DEBUG, message)
        self._said = message

    def _slow_path(self) -> None:
        self.metrics.slow_path.inc(*self._labels)


def default_identity() -> str:
    """The host's name, which people know, with a UUID, which makes it unique."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _call(callback: Callable[..., None] | None, *arguments: Any) -> None:
    if callback is not None:
        try:
            callback(*arguments)
        except Exception:
            logger.exception("a callback of the leader election has failed")
