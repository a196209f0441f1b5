"""One lock a key, for coroutines on one event loop; a key that nobody holds costs nothing."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from types import TracebackType


class KeyLocks:
    """`async with locks.hold(key)`: waiters of one key go on in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    def hold(self, key: Hashable) -> _Hold:
        return _Hold(self._waiting, key)


class _Hold:
    __slots__ = ("_key", "_waiting")

    def __init__(self, waiting: dict[Hashable, deque[asyncio.Future[None]]], key: Hashable) -> None:
        self._waiting = waiting
        self._key = key

    async def __aenter__(self) -> None:
        queue = self._waiting.get(self._key)
        if queue is None:
            self._waiting[self._key] = deque()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        queue = self._waiting[self._key]
        while queue:
            turn = queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[self._key]
