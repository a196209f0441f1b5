"""The three durations of an election, and what must hold between them."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

JITTER_FACTOR = 1.2
"""A candidate waits for one to 2.2 retry periods between its attempts (client-go's JitterFactor)."""

ENDING_SHARE = 0.8
"""The part of the time between the deadline and the lease's end that work has to come to its end."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations in seconds; the defaults are those of Kubernetes' own components.

    A lock that has not changed for `lease_duration` may be taken over. A leader that could not renew for
    `renew_deadline` has stopped leading; four fifths of what is left until `lease_duration` is the time its work has to
    come to an end, the whole is what makes up for clocks that run at different rates. `retry_period` is how often the
    leader renews.

    Raises ValueError for durations that cannot be kept. Source: client-go `tools/leaderelection/leaderelection.go`
    (NewLeaderElector).
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        for name in ("lease_duration", "renew_deadline", "retry_period"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"{name} must be a number of seconds greater than zero, not {value}")
        if self.lease_duration <= self.renew_deadline:
            raise ValueError(
                f"lease_duration ({self.lease_duration}) must be greater than renew_deadline ({self.renew_deadline}): "
                "what is between them is the time in which the work must end"
            )
        if self.renew_deadline <= JITTER_FACTOR * self.retry_period:
            raise ValueError(
                f"renew_deadline ({self.renew_deadline}) must be greater than {JITTER_FACTOR} times retry_period "
                f"({self.retry_period})"
            )

    @property
    def promised(self) -> int:
        """What the record says, in the whole seconds that it can hold: never less than what is kept."""
        return math.ceil(self.lease_duration)

    @property
    def stop_after(self) -> float:
        """When work that goes on after the deadline is ended by force, after the last renewal: not at the last moment,
        for on a busy machine even a thread wakes up late."""
        return self.renew_deadline + ENDING_SHARE * (self.lease_duration - self.renew_deadline)

    @property
    def request_timeout(self) -> float:
        """For one request: one that hangs leaves time for another before the deadline."""
        return self.renew_deadline / 2

    def candidate_wait(self) -> float:
        """Seconds until a candidate looks again."""
        return self.retry_period * (1 + random.random() * JITTER_FACTOR)  # noqa: S311 -- spreads load, guards nothing
