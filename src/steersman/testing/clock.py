"""Time that passes when a test says so."""

from __future__ import annotations

import asyncio
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable

from steersman._util.clock import move

LONGEST = 100 * 365 * 86400.0
"""Seconds that may pass at once: years beyond it could not be written as dates."""
_STEP = 1.0
_MOST_STEPS = 200
_REAL = 0.005


def check_seconds(what: str, seconds: object) -> None:
    """Refuse what is no length of time. Raises TypeError, ValueError."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{what} takes a number of seconds, not {seconds!r}")
    if not 0 <= seconds <= LONGEST:
        raise ValueError(f"{what} takes from 0 to {LONGEST:.0f} seconds (a hundred years), not {seconds!r}")


class _Clock:
    """A loop's time, as far ahead of the real one as it was moved."""

    def __init__(self, real: Callable[[], float]) -> None:
        self._real = real
        self.ahead = 0.0

    def __call__(self) -> float:
        return self._real() + self.ahead


async def advance(seconds: float, *, wall: bool = False) -> None:
    """Let time pass on this event loop: what waits for a timeout, a delay, a lease or a retry goes on, without waiting.

    All of an operator's times are those of its event loop: requeues, backoff, leases, timeouts, silence on watches. A
    server's are those of its own: `apiserver.advance` moves them. With `wall` the clock goes on, too, by which this
    process dates what it writes, and by which tokens expire; it stays so.

    Time moves on by a second after the other, in longer steps if there would be more than 200, with some real
    milliseconds after each for what takes real time, as requests do. Raises TypeError or ValueError for what is no
    time (`seconds` is 0 or more, a hundred years at most). Not moved are certificates (TLS looks at the real
    clock), the guard of a leader's last seconds (`exit_on_overrun`), and clocks that a test reads itself. Raises
    RuntimeError for a loop of another kind than asyncio's own, as uvloop's.
    """
    check_seconds("advance", seconds)
    loop = asyncio.get_running_loop()
    if not isinstance(loop, BaseEventLoop):
        raise RuntimeError(f"the time of a {type(loop).__module__} loop cannot be moved: use asyncio's own")
    clock = loop.time
    if not isinstance(clock, _Clock):
        clock = _Clock(clock)
        loop.time = clock  # type: ignore[method-assign]
    step, left = max(_STEP, seconds / _MOST_STEPS), seconds
    while left > 0:
        clock.ahead += min(left, step)
        if wall:
            move(min(left, step))
        left -= step
        await asyncio.sleep(_REAL)
