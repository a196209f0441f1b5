"""The event loop: uvloop where it is installed, asyncio's own elsewhere."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import FrameType


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A new loop, for asyncio.Runner(loop_factory=...). uvloop needs a ninth of asyncio's memory per TLS connection."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def on_signals(*names: str, call: Callable[[], object]) -> None:
    """Have the running loop call something when a signal comes. Those that a system lacks are passed over."""
    loop = asyncio.get_running_loop()

    def late(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(call)

    for name in names:
        number: signal.Signals | None = getattr(signal, name, None)
        if number is None:
            continue
        try:
            loop.add_signal_handler(number, call)
        except NotImplementedError:  # on Windows loops have no signals
            signal.signal(number, late)
