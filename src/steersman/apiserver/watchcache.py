"""The server's memory of what is stored: one cache a resource, fed by the store in revision order.

Reads are answered from here. Objects are kept encoded and are never changed in place; what a reader needs besides
(labels, fields) is decoded once, when first asked for.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import orjson

from steersman._util.dataclass import dataclass
from steersman.apimachinery.codec import json as codec
from steersman.apiserver.labelindex import LabelIndex
from steersman.store.interface import KeyValue, StoreEvent

HISTORY = 10_000
HISTORY_BYTES = 8 * 1024 * 1024
LISTED_BYTES = 16 * 1024 * 1024
_QUOTES = 8  # of apiVersion and kind


class Entry:
    """One stored object at one revision. `stored` are its canonical bytes; `key` is its place in the resource.

    `views` has its encoded forms, with the resourceVersion, by view; `forms` those that were not made here, without.
    """

    __slots__ = ("_labels", "_wire", "create_revision", "forms", "key", "revision", "stored", "views")

    def __init__(self, key: str, stored: bytes, revision: int, create_revision: int) -> None:
        self.key = key
        self.stored = stored
        self.revision = revision
        self.create_revision = create_revision
        self._wire: bytes | None = None
        self._labels: dict[str, str] | None = None
        self.views: dict[Any, bytes] | None = None
        self.forms: dict[Any, bytes] | None = None

    def at(self, revision: int) -> Entry:
        """The same object as an event of another revision shows it."""
        entry = Entry(self.key, self.stored, revision, self.create_revision)
        entry.forms = self.forms
        return entry

    @property
    def wire(self) -> bytes:
        """The object as stored, with its resourceVersion."""
        if self._wire is None:
            self._wire = codec.with_resource_version(self.stored, self.revision)
        return self._wire

    def forget_forms(self) -> None:
        """Drop what can be made again: the object is not the newest any more."""
        self._wire = None
        self.views = None

    def decode(self) -> dict[str, Any]:
        """A new tree of the object, with its resourceVersion."""
        obj: dict[str, Any] = codec.decode_stored(self.wire)
        return obj

    @property
    def labels(self) -> dict[str, str]:
        if self._labels is None:
            self._labels = _labels(self.stored)
        return self._labels


def _labels(stored: bytes) -> dict[str, str]:
    """The labels of an encoded object, without decoding it where they are where canonical JSON has them.

    That is in the metadata, which only apiVersion and kind come before, and in these before the name.
    """
    start = stored.find(b'"labels":{')
    if start < 0:
        return {}
    metadata = stored.find(b'"metadata":{', 0, start)
    if start < stored.find(b'"name":"', metadata) and stored.count(b'"', 0, metadata) == _QUOTES:
        with suppress(orjson.JSONDecodeError):
            labels: dict[str, str] = orjson.loads(stored[start + 9 : stored.find(b"}", start) + 1])
            return labels
    return orjson.loads(stored)["metadata"].get("labels") or {}


@dataclass(frozen=True, slots=True)
class Change:
    """One write as watchers see it: `new` is None for a deletion, `old` None for a creation."""

    revision: int
    new: Entry | None
    old: Entry | None

    @property
    def last(self) -> Entry:
        """The object that the event is about; a deletion shows the last state at the deletion's revision."""
        entry = self.new or self.old
        assert entry is not None
        return entry


class ResourceCache:
    """All objects of one resource, ordered by key (`NAMESPACE/NAME` or `NAME`), and their recent changes.

    Changes after `floor` are in memory; older ones, back to the resource's `birth`, may still be in the store.
    Nothing has changed after `revision`: it is that of the last change, or of the snapshot that the cache began with,
    which does not show what was deleted before. `listed` remembers encoded lists until the next change.
    """

    def __init__(self, prefix: bytes, floor: int, birth: int) -> None:
        self.prefix = prefix
        self.entries: dict[str, Entry] = {}
        self.keys: list[str] = []
        self.labels = LabelIndex(self.entries)
        self.history: deque[Change] = deque()
        self.history_bytes = 0
        self.listed: dict[object, bytes] = {}
        self.floor = floor
        self.birth = birth
        self.revision = floor
        self.watchers: list[Callable[[Change], None]] = []

    def entry(self, key: bytes, value: bytes, revision: int, create_revision: int) -> Entry:
        return Entry(key[len(self.prefix) :].decode(), value, revision, create_revision)

    def load(self, item: KeyValue) -> None:
        entry = self.entry(item.key, item.value, item.mod_revision, item.create_revision)
        self.entries[entry.key] = entry
        self.keys.append(entry.key)

    def change(self, event: StoreEvent, state: dict[bytes, Entry]) -> Change | None:
        """One event of the store as a change of a state, which is brought up to date; None for what was not there."""
        old = state.pop(event.key, None)
        if event.value is None:
            if old is None:
                return None
            return Change(event.revision, None, old.at(event.revision))
        entry = self.entry(event.key, event.value, event.revision, event.create_revision)
        state[event.key] = entry
        return Change(event.revision, entry, old)

    def apply(self, event: StoreEvent) -> None:
        """Take one event of the store in, and tell the watchers."""
        key = event.key[len(self.prefix) :].decode()
        old = self.entries.get(key)
        change = self.change(event, {event.key: old} if old else {})
        self.revision = event.revision
        if change is None:
            return
        if change.new is None:
            del self.entries[key]
            del self.keys[bisect_left(self.keys, key)]
        else:
            self.entries[key] = change.new
            if old is None:
                insort(self.keys, key)
        self.labels.changed(key, change.old, change.new)
        self._remember(change)
        self.listed.clear()
        for notify in tuple(self.watchers):
            notify(change)

    def _remember(self, change: Change) -> None:
        if change.old is not None:
            change.old.forget_forms()
        self.history.append(change)
        self.history_bytes += len(change.last.stored)
        while len(self.history) > HISTORY or (self.history_bytes > HISTORY_BYTES and len(self.history) > 1):
            oldest = self.history.popleft()
            self.history_bytes -= len(oldest.last.stored)
            self.floor = oldest.revision

    def forget_history(self, revision: int) -> None:
        """Nothing before a revision can be told of."""
        self.history.clear()
        self.history_bytes = 0
        self.floor = max(self.floor, revision)
        self.revision = max(self.revision, revision)

    def remember_list(self, key: object, items: bytes) -> None:
        """Keep an encoded list, if it is not too large, for those who ask for the same before the next change."""
        if len(items) <= LISTED_BYTES:
            self.listed[key] = items

    def get(self, key: str) -> Entry | None:
        return self.entries.get(key)

    def select(self, namespace: str) -> Sequence[str]:
        """Keys in order; only those of a namespace when one is given."""
        return self.keys[self.span(namespace)] if namespace else self.keys

    def span(self, namespace: str, first: str = "") -> slice:
        """Where in `keys` those of a namespace, or all, are, from the key `first` on."""
        start = bisect_left(self.keys, max(first, f"{namespace}/" if namespace else ""))
        return slice(start, bisect_left(self.keys, f"{namespace}0", start) if namespace else len(self.keys))

    def since(self, revision: int) -> Iterator[Change]:
        """The changes after a revision, oldest first; the caller has checked `floor`."""
        recent: list[Change] = []
        for change in reversed(self.history):
            if change.revision <= revision:
                break
            recent.append(change)
        return reversed(recent)


class WatchCache:
    """The caches of all resources, and the single subscription to the store that feeds them.

    `followers` are told of each cache that is made from now on.
    """

    def __init__(self) -> None:
        self.caches: dict[bytes, ResourceCache] = {}
        self.revision = 0
        self.followers: list[Callable[[ResourceCache], None]] = []
        self._unclaimed: list[KeyValue] = []

    @property
    def complete(self) -> bool:
        """Whether everything that is stored is in the cache of some resource."""
        return not self._unclaimed

    @property
    def empty(self) -> bool:
        """Whether nothing is stored."""
        return self.complete and not any(cache.entries for cache in self.caches.values())

    def load(self, items: Sequence[KeyValue], revision: int) -> None:
        """Start from a snapshot of the whole store, in the order of keys."""
        self.revision = revision
        self._unclaimed = list(items)

    def resource(self, prefix: bytes, birth: int = 0) -> ResourceCache:
        """The cache of the resource under a prefix; made on first use from what the store holds there."""
        cache = self.caches.get(prefix)
        if cache is None:
            cache = self.caches[prefix] = ResourceCache(prefix, max(birth, self.revision), birth)
            start = bisect_left(self._unclaimed, prefix, key=_key)
            end = bisect_left(self._unclaimed, prefix[:-1] + b"0", key=_key)
            for item in self._unclaimed[start:end]:
                cache.load(item)
            del self._unclaimed[start:end]
            for follow in tuple(self.followers):
                follow(cache)
        return cache

    def drop(self, prefix: bytes) -> None:
        """Forget a resource that is served no more and holds no objects."""
        self.caches.pop(prefix, None)

    def forget_history(self, revision: int) -> None:
        """Forget the changes up to a revision."""
        for cache in self.caches.values():
            while cache.history and cache.history[0].revision <= revision:
                cache.history_bytes -= len(cache.history.popleft().last.stored)
            cache.floor = max(cache.floor, revision)

    def apply(self, events: Sequence[StoreEvent]) -> None:
        """The store's callback: events in revision order."""
        for event in events:
            self.revision = event.revision
            cache = self._cache_of(event.key)
            if cache is not None:
                cache.apply(event)
            else:
                self._apply_unclaimed(event)

    def reload(self, items: Sequence[KeyValue], revision: int) -> None:
        """Go on from a later snapshot, in the order of keys; what happened in between is not known."""
        found = {item.key: item for item in items}
        events = [
            event
            for cache in self.caches.values()
            for entry in cache.entries.values()
            for event in _difference(cache.prefix + entry.key.encode(), entry, found, revision)
        ]
        events += [
            StoreEvent(item.key, item.value, item.mod_revision, item.create_revision, 0)
            for item in items
            if (cache := self._cache_of(item.key)) is not None
            and item.key[len(cache.prefix) :].decode() not in cache.entries
        ]
        self.apply(sorted(events, key=lambda event: event.revision))
        self._unclaimed = [item for item in items if self._cache_of(item.key) is None]
        self.revision = revision
        for cache in self.caches.values():
            cache.forget_history(revision)

    def _cache_of(self, key: bytes) -> ResourceCache | None:
        """By `/registry/GROUP/PLURAL/`, or by `/registry/PLURAL/`."""
        first = key.find(b"/", 10)
        second = key.find(b"/", first + 1)
        return self.caches.get(key[: second + 1]) or self.caches.get(key[: first + 1])

    def _apply_unclaimed(self, event: StoreEvent) -> None:
        at = bisect_left(self._unclaimed, event.key, key=_key)
        if at < len(self._unclaimed) and self._unclaimed[at].key == event.key:
            del self._unclaimed[at]
        if event.value is not None:
            self._unclaimed.insert(at, KeyValue(event.key, event.value, event.create_revision, event.revision))


def _difference(key: bytes, entry: Entry, found: dict[bytes, KeyValue], revision: int) -> Iterator[StoreEvent]:
    """What must have happened to an entry until a later snapshot."""
    item = found.get(key)
    if item is None or item.create_revision != entry.create_revision:
        gone = revision if item is None else item.create_revision
        yield StoreEvent(key, None, gone, entry.create_revision, entry.revision)
    if item is not None and item.mod_revision != entry.revision:
        yield StoreEvent(key, item.value, item.mod_revision, item.create_revision, entry.revision)


def _key(item: KeyValue) -> bytes:
    return item.key


def custom_prefix(group: str, plural: str) -> bytes:
    """Where a custom resource is stored."""
    return f"/registry/{group}/{plural}/".encode()
