"""Which of the waiting swaps become one commit."""

from __future__ import annotations

import asyncio

from steersman._util.dataclass import dataclass
from steersman.store._keys import ABSENT, Ref
from steersman.store.interface import CompareFailed, KeyValue, StoreEvent

BATCH_BYTES = 4 << 20


@dataclass(slots=True, eq=False)
class Swap:
    """One call of `swap` that waits for its answer."""

    key: bytes
    expected: int
    value: bytes | None
    future: asyncio.Future[int]

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Batch:
    """Swaps that are committed together, compared with what those before them in the batch leave behind."""

    def __init__(self, revision: int, limit: int) -> None:
        """Start after `revision`, with room for `limit` writes."""
        self.swaps: list[Swap] = []
        self.events: list[StoreEvent] = []
        self._accepted: list[Swap] = []
        self._refused: list[Swap] = []
        self._latest: dict[bytes, StoreEvent] = {}
        self._revision = revision
        self._limit = limit
        self._bytes = 0

    @property
    def has_room(self) -> bool:
        return len(self.events) < self._limit and self._bytes < BATCH_BYTES

    @property
    def bytes(self) -> int:
        """How much is written."""
        return self._bytes

    def add(self, swap: Swap, committed: Ref) -> bool:
        """Take a swap in; False if it fails against what is committed, and so does not depend on this batch."""
        latest = self._latest.get(swap.key)
        modified, created = committed if latest is None else _ref(latest)
        if modified != swap.expected:
            if latest is None:
                return False
            self._refused.append(swap)
        else:
            self._write(swap, modified, created)
        self.swaps.append(swap)
        return True

    def answer(self) -> None:
        """Tell the callers what became of their swaps, once the batch is durable."""
        for swap, event in zip(self._accepted, self.events, strict=True):
            if not swap.future.done():
                swap.future.set_result(event.revision)
        for swap in self._refused:
            event = self._latest[swap.key]
            current = None
            if event.value is not None:
                current = KeyValue(event.key, event.value, event.create_revision, event.revision)
            swap.fail(CompareFailed(swap.key, current))

    def _write(self, swap: Swap, modified: int, created: int) -> None:
        self._revision += 1
        event = StoreEvent(swap.key, swap.value, self._revision, created or self._revision, modified)
        self._latest[swap.key] = event
        self._accepted.append(swap)
        self.events.append(event)
        self._bytes += len(swap.key) + len(swap.value or b"")


def _ref(event: StoreEvent) -> Ref:
    return ABSENT if event.value is None else (event.revision, event.create_revision)
