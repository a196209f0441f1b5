"""What else differs from run to run, held still: random numbers, clocks, garbage collection."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from steersman._util import clock
from steersman.testing.explore.loop import BEGIN

EPOCH = 1_767_225_600.0
"""What the wall clock shows when a run begins: the 1st of January 2026."""


class Seal:
    """Random numbers that are the same in each run, and clocks that follow `steady`, a loop's time in seconds."""

    def __init__(self, seed: str, steady: Callable[[], float]) -> None:
        self._source = random.Random(seed)  # noqa: S311 -- to be repeated, not to be secret
        self._steady = steady
        self._state = self._source.getstate()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have this process use them while the block runs."""
        state, collects = random.getstate(), gc.isenabled()
        real = os.urandom, random._urandom  # type: ignore[attr-defined]
        os.urandom = random._urandom = self._source.randbytes  # type: ignore[attr-defined]
        random.setstate(self._state)
        gc.disable()
        try:
            with clock.replaced(lambda: EPOCH - BEGIN + self._steady(), self._steady):
                yield
        finally:
            self._state = random.getstate()
            random.setstate(state)
            os.urandom, random._urandom = real  # type: ignore[attr-defined]
            if collects:
                gc.enable()
