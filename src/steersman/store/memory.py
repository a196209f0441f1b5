"""A store in memory: the whole protocol, nothing is kept when the process ends."""

from __future__ import annotations

import time
from collections.abc import Sequence

from steersman.store._checks import check_compact, check_swap, read_revision, watch_position
from steersman.store._keys import ABSENT, KeyIndex, undo
from steersman.store._watching import Deliver, Ended, KeyWatch, Watching
from steersman.store.history import History, HistoryKeeper
from steersman.store.interface import (
    CompareFailed,
    Figures,
    KeyValue,
    Premises,
    Range,
    StoreEvent,
    StoreUnavailable,
    Watch,
)


class MemoryStore:
    """A `Store` that lives as long as the object. `history` says what automatic compaction leaves readable."""

    shared = read_only = False

    def __init__(self, *, history: History | None = None) -> None:
        self._history = history or History()
        self._keeper = HistoryKeeper(self._history)
        self._index = KeyIndex()
        self._versions: dict[int, StoreEvent] = {}
        self._watching = Watching()
        self._revision = 1
        self._compacted = 0
        self._closed = False

    def copy(self) -> MemoryStore:
        """Another store that begins with this one's content, history and revision; the two then go their own ways."""
        twin = MemoryStore(history=self._history)
        twin._index = self._index.copy()
        twin._versions = dict(self._versions)
        twin._revision, twin._compacted = self._revision, self._compacted
        return twin

    def fill(self, events: Sequence[StoreEvent], revision: int) -> None:
        """Begin with writes that were made elsewhere, in the order of their revisions, each the last of its key."""
        for event in events:
            self._versions[event.revision] = event
            self._index.apply(event.key, (event.revision, event.create_revision), deleted=False)
        self._revision = self._compacted = revision

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def compacted(self) -> int:
        return self._compacted

    async def get(self, key: bytes) -> KeyValue | None:
        self._check_open()
        return self._current(key)

    async def range(self, start: bytes, end: bytes, *, limit: int = 0, revision: int = 0) -> Range:
        self._check_open()
        at = read_revision(limit, revision, self._revision, self._compacted)
        since = (self._versions[later] for later in range(at + 1, self._revision + 1))
        undone = undo(
            (event.revision, event.key, event.create_revision, event.previous_revision)
            for event in since
            if start <= event.key < end
        )
        keys, count = self._index.view(start, end, undone, limit)
        items = [self._version((undone.get(key) or self._index.get(key))[0]) for key in keys]
        return Range(items, at, len(items) < count, count)

    async def swap(self, key: bytes, expected: int, value: bytes | None, premises: Premises | None = None) -> int:
        self._check_open()
        check_swap(expected, value)
        modified, created = self._index.get(key)
        if modified != expected:
            raise CompareFailed(key, self._current(key))
        self._revision += 1
        event = StoreEvent(key, value, self._revision, created or self._revision, modified)
        self._versions[event.revision] = event
        self._index.apply(key, (event.revision, event.create_revision), deleted=value is None)
        target = self._keeper.target(self._revision, self._compacted, time.monotonic())
        if target:
            self._compact(target)
        self._watching.deliver((event,))
        return event.revision

    def watch(self, start: bytes, end: bytes, revision: int, deliver: Deliver, ended: Ended | None = None) -> Watch:
        self._check_open()
        position = watch_position(revision, self._revision, self._compacted)
        watch = KeyWatch(self._watching, start, end, position, deliver, ended)
        self._watching.add(watch, live=True)
        past = (self._versions.get(then) for then in range(position, self._revision + 1))
        watch.give([event for event in past if event is not None and start <= event.key < end])
        return watch

    async def settle(self) -> None:
        self._check_open()

    def expire(self, prefix: bytes, seconds: float) -> bool:
        return False

    def trouble(self) -> str | None:
        return "the store is closed" if self._closed else None

    async def figures(self) -> Figures:
        return Figures("memory", keys=len(self._index))

    async def compact(self, revision: int) -> None:
        self._check_open()
        check_compact(revision, self._revision, self._compacted)
        self._compact(revision)

    async def close(self) -> None:
        self._closed = True
        self._watching.end(StoreUnavailable("the store is closed"))

    def _compact(self, revision: int) -> None:
        """Drop what was superseded at `revision` or before, and deletions before it."""
        versions = self._versions
        for then in range(max(self._compacted, 1), revision + 1):
            event = versions.get(then)
            if event is None:
                continue
            if then > self._compacted:
                versions.pop(event.previous_revision, None)
            if event.value is None and then < revision:
                del versions[then]
        self._compacted = revision

    def _current(self, key: bytes) -> KeyValue | None:
        ref = self._index.get(key)
        return None if ref is ABSENT else self._version(ref[0])

    def _version(self, revision: int) -> KeyValue:
        event = self._versions[revision]
        assert event.value is not None
        return KeyValue(event.key, event.value, event.create_revision, revision)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed")
