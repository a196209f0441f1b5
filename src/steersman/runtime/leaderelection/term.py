"""One term: the work, the renewals beside it, and an end that leaves nothing running.

Source: client-go `tools/leaderelection/leaderelection.go` (renew), which leaves the end of the work to its user.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from steersman._util.tasks import end
from steersman.runtime.leaderelection.claim import REQUEST_ERRORS, Claim
from steersman.runtime.leaderelection.leadership import Leadership, LeadershipLost
from steersman.runtime.leaderelection.record import Record
from steersman.runtime.leaderelection.timing import Timing
from steersman.runtime.leaderelection.watchdog import Watchdog

logger = logging.getLogger("steersman.runtime.leaderelection")

T = TypeVar("T")

EXIT_STATUS = 1
"""Of a process that ends because its work did not."""

_AGAIN_AFTER = 0.1


class Term(Generic[T]):
    """Runs `work` while the lock is held. Made for one `run`.

    The lock is renewed until the work has ended, also while it ends because `run` was cancelled.
    """

    def __init__(
        self,
        leadership: Leadership,
        record: Record,
        claim: Claim,
        timing: Timing,
        work: Callable[[Leadership], Awaitable[T]],
        on_overrun: Callable[[], None] | None,
        exit_on_overrun: bool,
    ) -> None:
        self._leadership = leadership
        self._record = record
        self._claim = claim
        self._timing = timing
        self._todo = work
        self._on_overrun = on_overrun
        self._exit = exit_on_overrun
        self._watchdog = Watchdog(self._overrun)
        self._cancelled = False
        self._failure = "no renewal was tried"
        self.lost: LeadershipLost | None = None
        """Why the term has ended before the work did."""

    async def run(self) -> T:
        """The work's result, or its error. Raises LeadershipLost when it was cancelled because the lock is lost.

        In every case the work has ended when this returns.
        """
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._work = loop.create_task(self._begin(), name="leader-work")
        self._renewals = loop.create_task(self._renew(), name="leader-renewals")
        if self._exit:
            self._watchdog.arm(self._leadership.stop_by - loop.time())
        try:
            self.lost = await self._lead()
            if self.lost is not None:
                await self._stop_work(str(self.lost))
        finally:
            self._watchdog.disarm()
            await end([self._renewals])
            if not self._renewals.cancelled():
                self._renewals.exception()  # of a loss in the moment in which the work has ended
        return self._outcome()

    async def _begin(self) -> T:
        return await self._todo(self._leadership)

    def _outcome(self) -> T:
        error = None if self._work.cancelled() else self._work.exception()
        if self.lost is not None and not self._cancelled:
            raise self.lost from error
        if error is None and self._cancelled:
            raise asyncio.CancelledError
        return self._work.result()

    async def _lead(self) -> LeadershipLost | None:
        """Returns when the work has ended, or with the reason why it must."""
        while not self._work.done():
            if self._renewals.done():
                return self._lost_to()
            left = self._leadership.remaining
            if left <= 0:
                return LeadershipLost(f"not renewed within {self._timing.renew_deadline} s: {self._failure}")
            await self._wait(self._work, self._renewals, timeout=left)
        return None

    def _lost_to(self) -> LeadershipLost:
        error = None if self._renewals.cancelled() else self._renewals.exception()
        if error is None:
            return LeadershipLost("renewing was cancelled")
        if isinstance(error, LeadershipLost):
            return error
        logger.error("renewing has failed unexpectedly", exc_info=error)
        return LeadershipLost(f"renewing has failed: {error!r}")

    async def _stop_work(self, reason: str) -> None:
        """Cancel the work, and wait for its end."""
        self._leadership.end(reason)
        self._work.cancel()
        while not self._work.done() and (left := self._leadership.stop_by - self._loop.time()) > 0:
            await self._wait(self._work, timeout=left)
        if not self._work.done():
            self._overrun()
        while not self._work.done():
            await self._wait(self._work, timeout=_AGAIN_AFTER)
            self._work.cancel()

    async def _wait(self, *tasks: asyncio.Task[T] | asyncio.Task[None], timeout: float) -> None:
        """Until one of them is done. A cancellation of `run` becomes one of the work."""
        try:
            await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._cancelled = True
            self._work.cancel()

    async def _renew(self) -> None:
        """Renew for ever. Raises LeadershipLost when the lock is another's."""
        next_at = self._loop.time() + self._timing.retry_period
        while True:
            await asyncio.sleep(next_at - self._loop.time())
            next_at = self._loop.time() + self._timing.retry_period
            try:
                self._leadership.renewed(await self._claim.renew(self._record))
            except REQUEST_ERRORS as error:
                self._failure = str(error)
                logger.warning("the lock could not be renewed: %s", error)
            else:
                next_at = self._loop.time() + self._timing.retry_period
                self._watchdog.extend(self._leadership.stop_by - self._loop.time())

    def _overrun(self) -> None:
        """The work runs although another process may lead soon. Called by the event loop or the watchdog's thread."""
        logger.critical(
            "the work has not ended %.3g s after the last renewal, another process may lead after %.3g s%s",
            self._timing.stop_after,
            self._timing.lease_duration,
            ": this one exits" if self._exit else "",
        )
        try:
            if self._on_overrun is not None:
                self._on_overrun()
        except Exception:
            logger.exception("on_overrun has failed")
        finally:
            if self._exit:
                os._exit(EXIT_STATUS)
