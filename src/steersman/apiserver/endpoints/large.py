"""Large requests are read in a thread, so that they do not hold up the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from steersman.apiserver.exchange import Exchange

P = ParamSpec("P")
T = TypeVar("T")
_LARGE: Final = 64 * 1024
"""Bytes of a body, or characters of a query, that take some tens of milliseconds at worst."""
_threads: Final = ThreadPoolExecutor(2, "large-requests")


async def read(x: Exchange, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` makes of a request. It must read nothing that changes, and nobody else may use `x` meanwhile."""
    if len(x.request.body) <= _LARGE and len(x.request.query) <= _LARGE:
        return work(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads, lambda: work(*args, **kwargs))
