"""How long a failed item waits. Source: client-go `util/workqueue/default_rate_limiters.go`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

BASE_DELAY = 0.005
MAX_DELAY = 1000.0


class ExponentialBackoff(Generic[K]):
    """Doubles an item's wait with each failure: `base` seconds at first, at most `limit`."""

    def __init__(self, base: float = BASE_DELAY, limit: float = MAX_DELAY) -> None:
        self._base = base
        self._limit = limit
        self._failures: dict[K, int] = {}

    def when(self, item: K) -> float:
        """Counts a failure, and gives the seconds to wait for it."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        # Beyond 2^60 any base has reached any limit.
        return float(min(self._base * (1 << min(failures, 60)), self._limit))

    def forget(self, item: K) -> None:
        """The item has succeeded: it starts at `base` again."""
        self._failures.pop(item, None)

    def failures(self, item: K) -> int:
        """How often the item has failed since it last succeeded."""
        return self._failures.get(item, 0)
