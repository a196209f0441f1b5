"""The watches of one store: who wants which events."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TypeVar

from steersman.store.interface import StoreError, StoreEvent

Deliver = Callable[[Sequence[StoreEvent]], None]
Ended = Callable[[StoreError], None]
_T = TypeVar("_T")


class KeyWatch:
    """One watch on [start, end). `position` is the lowest revision it has not been given yet."""

    __slots__ = ("_behind", "_deliver", "_ended", "_error", "_watching", "active", "end", "position", "start")

    def __init__(
        self, watching: Watching, start: bytes, end: bytes, position: int, deliver: Deliver, ended: Ended | None
    ) -> None:
        self._watching = watching
        self._deliver = deliver
        self._ended = ended
        self.start = start
        self.end = end
        self.position = position
        self.active = True
        self._behind: asyncio.Future[None] | None = None
        self._error: StoreError | None = None

    def cancel(self) -> None:
        self.active = False
        self._watching.discard(self)
        self.keep_up()

    async def caught_up(self) -> None:
        if self._watching.is_behind(self):
            if self._behind is None:
                self._behind = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._behind)
        if self._error is not None:
            raise self._error

    def keep_up(self) -> None:
        """Nothing is left to wait for."""
        if self._behind is not None and not self._behind.done():
            self._behind.set_result(None)

    def give(self, events: Sequence[StoreEvent]) -> None:
        """Deliver events that are known to be wanted."""
        if self.active and events:
            _call(self._deliver, events)

    def fail(self, error: StoreError) -> None:
        """End the watch on the store's side."""
        if self.active:
            self._error = error
            self.cancel()
            if self._ended is not None:
                _call(self._ended, error)


class Watching:
    """All running watches. A watch is either live, and given every batch, or still being given history."""

    def __init__(self) -> None:
        self._live: dict[KeyWatch, None] = {}
        self._behind: dict[KeyWatch, None] = {}

    def add(self, watch: KeyWatch, *, live: bool) -> None:
        (self._live if live else self._behind)[watch] = None

    def go_live(self, watch: KeyWatch) -> None:
        if self._behind.pop(watch, self) is None:
            self._live[watch] = None
            watch.keep_up()

    def is_behind(self, watch: KeyWatch) -> bool:
        return watch in self._behind

    def discard(self, watch: KeyWatch) -> None:
        self._live.pop(watch, None)
        self._behind.pop(watch, None)

    def oldest_position(self, default: int) -> int:
        """The lowest revision that a watch has yet to read from history; `default` if none has to."""
        return min((watch.position for watch in self._behind), default=default)

    def deliver(self, events: Sequence[StoreEvent]) -> None:
        """Give every live watch what it wants of a batch of new events, in the order of their revisions."""
        if not self._live:
            return
        keys = sorted(event.key for event in events)
        for watch in list(self._live):
            start, end, position = watch.start, watch.end, watch.position
            at = bisect_left(keys, start)
            if at < len(keys) and keys[at] < end:
                watch.give([event for event in events if start <= event.key < end and event.revision >= position])

    def end(self, error: StoreError) -> None:
        """End all watches: the store is closed."""
        for watch in [*self._live, *self._behind]:
            watch.fail(error)


def _call(callback: Callable[[_T], None], argument: _T) -> None:
    """Call a callback whose failure is its owner's, not the store's: the loop's exception handler is told."""
    try:
        callback(argument)
    except Exception as error:
        context = {"message": f"a store's watch callback failed: {callback!r}", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
