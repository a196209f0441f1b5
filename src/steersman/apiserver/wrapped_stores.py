"""Stores that stand before another one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

from steersman.store.interface import CompareFailed, KeyValue, Premises, Range, Store, StoreError, StoreEvent, Watch


class WrappedStore:
    """The same store; what is different, a subclass says."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.shared = store.shared
        self.read_only = store.read_only
        self.get = store.get
        self.range = store.range
        self.swap = store.swap
        self.watch = store.watch
        self.settle = store.settle
        self.expire = store.expire
        self.trouble = store.trouble
        self.figures = store.figures
        self.compact = store.compact
        self.close = store.close

    @property
    def revision(self) -> int:
        return self._store.revision

    @property
    def compacted(self) -> int:
        return self._store.compacted


class TransformedStore(WrappedStore, ABC):
    """A store whose values are kept in another form than they are read and written in here."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.get = self._get
        self.range = self._range
        self.swap = self._swap
        self.watch = self._watch

    @abstractmethod
    def _read(self, key: bytes, value: bytes, revision: int) -> bytes | None:
        """A value as it is here; None where it cannot be read: then it is not there."""

    def _written(self, key: bytes, value: bytes) -> bytes:
        """A value as it is kept."""
        return value

    def _deleted(self, key: bytes) -> None:
        """A key has gone."""

    async def _get(self, key: bytes) -> KeyValue | None:
        return self._item(await self._store.get(key))

    async def _range(self, start: bytes, end: bytes, *, limit: int = 0, revision: int = 0) -> Range:
        found = await self._store.range(start, end, limit=limit, revision=revision)
        items = [item for item in map(self._item, found.items) if item is not None]
        return Range(items, found.revision, found.more, found.count)

    async def _swap(self, key: bytes, expected: int, value: bytes | None, premises: Premises | None = None) -> int:
        kept = None if value is None else self._written(key, value)
        try:
            return await self._store.swap(key, expected, kept, premises)
        except CompareFailed as error:
            raise CompareFailed(key, self._item(error.current)) from None

    def _watch(
        self,
        start: bytes,
        end: bytes,
        revision: int,
        deliver: Callable[[Sequence[StoreEvent]], None],
        ended: Callable[[StoreError], None] | None = None,
    ) -> Watch:
        return self._store.watch(start, end, revision, lambda events: deliver(list(self._events(events))), ended)

    def _item(self, item: KeyValue | None) -> KeyValue | None:
        if item is None:
            return None
        value = self._read(item.key, item.value, item.mod_revision)
        if value is None or value is item.value:
            return None if value is None else item
        return KeyValue(item.key, value, item.create_revision, item.mod_revision)

    def _events(self, events: Iterable[StoreEvent]) -> Iterator[StoreEvent]:
        for event in events:
            if event.value is None:
                self._deleted(event.key)
                yield event
                continue
            value = self._read(event.key, event.value, event.revision)
            if value is event.value:
                yield event
            else:
                yield StoreEvent(event.key, value, event.revision, event.create_revision, event.previous_revision)
