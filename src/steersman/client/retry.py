"""Backoff, and retrying a read-modify-write that lost against another writer.

Source: client-go `util/retry/util.go` (DefaultRetry, DefaultBackoff, RetryOnConflict) and apimachinery
`pkg/util/wait/backoff.go` (Backoff.Step).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from steersman.apimachinery.errors import Conflict

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often to try and how long to wait in between; durations in seconds.

    `steps` attempts are made, with `steps - 1` waits between them. The first wait is `duration`, each further one is
    `factor` times the one before, but at most `cap`; every wait is then lengthened by a random part of up to `jitter`
    times itself. Reaching `cap` does not end the attempts (upstream's does).
    """

    steps: int
    duration: float
    factor: float = 1.0
    jitter: float = 0.0
    cap: float | None = None

    def delays(self, rand: Callable[[], float] = random.random) -> Iterator[float]:
        """The waits between the attempts. `rand` gives a number in [0, 1)."""
        for attempt in range(self.steps - 1):
            yield self.delay(attempt, rand)

    def delay(self, attempt: int, rand: Callable[[], float] = random.random) -> float:
        """The wait after attempt number `attempt` (the first is 0), for loops that never give up."""
        wait = self.duration
        if self.factor > 1.0 and self.cap is not None and wait > 0:
            # Multiplied step by step: factor ** attempt overflows in a loop that has run for days.
            for _ in range(attempt):
                if wait >= self.cap:
                    break
                wait *= self.factor
        else:
            wait *= self.factor**attempt
        if self.cap is not None:
            wait = min(wait, self.cap)
        return wait * (1.0 + rand() * self.jitter)


DEFAULT_RETRY = Backoff(steps=5, duration=0.01, factor=1.0, jitter=0.1)
"""For a conflict with clients that write now and then: five attempts some 10 ms apart."""

DEFAULT_BACKOFF = Backoff(steps=4, duration=0.01, factor=5.0, jitter=0.1)
"""For a conflict with an active controller: four attempts, 10 ms, 50 ms and 250 ms apart."""


async def retry_on_conflict(
    fn: Callable[[], Awaitable[T]],
    backoff: Backoff = DEFAULT_RETRY,
    *,
    on_conflict: Callable[[Conflict, int], None] | None = None,
) -> T:
    """Call `fn` until it does not end in a Conflict, at most `backoff.steps` times.

    `fn` must read the object afresh each time, change it, and write it. Its first success is returned at once; any
    error but Conflict is raised at once; after the last attempt its Conflict is raised.
    `on_conflict(error, attempt)` is called after each Conflict, `attempt` counting from 1.
    AlreadyExists is not a Conflict, though both are HTTP 409.
    """
    delays = backoff.delays()
    attempt = 0
    while True:
        attempt += 1
        try:
            return await fn()
        except Conflict as error:
            if on_conflict is not None:
                on_conflict(error, attempt)
            delay = next(delays, None)
            if delay is None:
                raise
        await asyncio.sleep(delay)
