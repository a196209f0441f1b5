"""The wall clock, and a steady one: all read them here, so that a test can move or replace them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime


class _Clock:
    wall: Callable[[], float] = staticmethod(time.time)
    steady: Callable[[], float] = staticmethod(time.monotonic)
    ahead = 0.0


def now() -> float:
    """Seconds since 1970."""
    return _Clock.wall() + _Clock.ahead


def utc_now() -> datetime:
    """The same as a datetime in UTC."""
    return datetime.fromtimestamp(_Clock.wall() + _Clock.ahead, UTC)


def steady() -> float:
    """Seconds since some moment, never going back."""
    return _Clock.steady() + _Clock.ahead


def move(seconds: float) -> None:
    """Move both clocks of this process on, or back what they were moved on."""
    _Clock.ahead += seconds


@contextmanager
def replaced(wall: Callable[[], float], steady: Callable[[], float]) -> Iterator[None]:
    """Have both clocks of this process read elsewhere while the block runs."""
    before = _Clock.wall, _Clock.steady, _Clock.ahead
    _Clock.wall, _Clock.steady, _Clock.ahead = staticmethod(wall), staticmethod(steady), 0.0
    try:
        yield
    finally:
        _Clock.wall, _Clock.steady, _Clock.ahead = before
