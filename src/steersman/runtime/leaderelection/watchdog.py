"""Ends the process when work has not ended in time, also when that work holds up the event loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Watchdog:
    """A thread that calls `expired` unless it is extended or disarmed in time. Nothing is started before `arm`."""

    def __init__(self, expired: Callable[[], None]) -> None:
        self._expired = expired
        self._end = 0.0
        self._armed = False
        self._changed = threading.Condition()

    def arm(self, seconds: float) -> None:
        """Start it. `seconds` from now are of real time, as in `extend`: it is there for an event loop that hangs."""
        self._end = time.monotonic() + seconds
        self._armed = True
        threading.Thread(target=self._run, name="leader-election-watchdog", daemon=True).start()

    def extend(self, seconds: float) -> None:
        """Begin to count anew."""
        self._end = time.monotonic() + seconds

    def disarm(self) -> None:
        """End it; after this `expired` is not called any more. It may be called twice, or without `arm`."""
        with self._changed:
            self._armed = False
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while self._armed and (left := self._end - time.monotonic()) > 0:
                self._changed.wait(left)
            if self._armed:
                self._expired()
