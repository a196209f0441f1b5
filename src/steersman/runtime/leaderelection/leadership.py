"""The right to act as the leader, as the work sees it."""

from __future__ import annotations

from collections.abc import Callable

from steersman.runtime.leaderelection.timing import Timing
from steersman.runtime.requests import LeadershipLost as LeadershipLost


class Leadership:
    """One term: from taking the lock to losing it or giving it up. Times are the event loop's, in seconds.

    `check` and the properties may be used from any thread.

    What it promises: until `deadline` no other elector leads, whatever the network and the clocks' settings do; only
    clocks that run at rates that differ by more than lease_duration : renew_deadline could break this. What nothing on
    this side can promise: that something which was begun before the deadline also arrives before it. A process may be
    stopped for an hour between `check()` and the write after it, and a request may lie in a queue. Where that matters,
    send `fencing_token` along, and let the other side refuse a token that is lower than one it has seen.
    """

    def __init__(self, identity: str, fencing_token: int, started: float, timing: Timing, now: Callable[[], float]):
        self.identity = identity
        self.fencing_token = fencing_token
        """The number of this term: greater than that of every term of this lock before it (leaseTransitions)."""
        self._timing = timing
        self._now = now
        self._renewed = started
        self._ended: str | None = None

    def __repr__(self) -> str:
        state = self._ended or f"{self.remaining:.3f} s remain"
        return f"<Leadership of {self.identity}, term {self.fencing_token}: {state}>"

    @property
    def deadline(self) -> float:
        """Until when this process certainly leads, if it is not renewed; each renewal moves it."""
        return self._renewed + self._timing.renew_deadline

    @property
    def expires(self) -> float:
        """From when on another process may lead, if it is not renewed."""
        return self._renewed + self._timing.lease_duration

    @property
    def stop_by(self) -> float:
        """Until when work must have ended if it is not renewed, a while before another process may lead."""
        return self._renewed + self._timing.stop_after

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, 0 if it has passed or the term has ended."""
        return max(0.0, self.deadline - self._now()) if self._ended is None else 0.0

    @property
    def valid(self) -> bool:
        """Whether this process certainly leads."""
        return self.remaining > 0

    def check(self, seconds: float = 0.0) -> None:
        """Raises LeadershipLost unless this process certainly leads, now and for so many seconds more.

        To be called before each thing that only a leader may do.
        """
        remaining = self.remaining
        if remaining > 0 and remaining >= seconds:
            return
        if self._ended is None and remaining > 0:
            raise LeadershipLost(f"only {remaining:.3f} s of leadership are certain, {seconds} s are needed")
        raise LeadershipLost(self._ended or f"not renewed for {self._now() - self._renewed:.3f} s")

    def renewed(self, started: float) -> None:
        """The elector's: the lock was renewed by a request that was sent at `started`. What has ended stays ended."""
        if self.valid:
            self._renewed = max(self._renewed, started)

    def end(self, reason: str) -> None:
        """The elector's: the term is over."""
        if self._ended is None:
            self._ended = reason
