"""Signals end a process in order, and in any case.

Source: controller-runtime `pkg/manager/signals/signal.go`; `pkg/manager/internal.go` (engageStopProcedure, which gives
up what does not end).
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger("steersman.runtime")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_ONE = 0.1
"""Seconds within which signals count as one: `timeout` sends its own to the process, and to the group."""


@contextmanager
def ended_by_signals(stop: Callable[[], None], patience: float, running: Callable[[], str]) -> Iterator[None]:
    """In the block, the first SIGTERM or SIGINT has the running event loop call `stop`; a second one ends the process
    with status 1, and so does an end that takes longer than `patience` seconds (`math.inf`: as long as it likes), even
    because something holds up the event loop. `running` tells what still runs. To be called in the main thread.
    """
    first: float | None = None
    loop, come, over = asyncio.get_running_loop(), threading.Event(), threading.Event()

    def on_first() -> None:
        logger.info("stopping; a second signal ends the process at once")
        stop()

    # Not the loop's own handlers: they wait until it is free.
    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if first is not None:
            if time.monotonic() - first > _ONE:
                os._exit(1)
            return
        first = time.monotonic()
        come.set()
        loop.call_soon_threadsafe(on_first)

    def watch() -> None:
        come.wait()
        if not over.wait(None if math.isinf(patience) else patience):
            logger.error("the process ends now, for it should have %g s ago: %s", patience, running())
            os._exit(1)

    before = [(number, signal.signal(number, on_signal)) for number in _SIGNALS]
    threading.Thread(target=watch, name="end-watchdog", daemon=True).start()
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        over.set()
        come.set()
