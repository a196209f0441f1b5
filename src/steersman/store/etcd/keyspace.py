"""Where the store's keys lie in etcd."""

from __future__ import annotations

from typing import Any

from steersman.store.interface import KeyValue, StoreEvent

_EVERYTHING = (b"\0", b"\0")
"""etcd's way to say: all keys from the first on."""


class Keyspace:
    """The keys under `root`; all of etcd's when it is empty."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._skip = len(root)
        self.all = (root + b"/", root + b"0") if root else _EVERYTHING
        self.whole = not root

    def inner(self, key: bytes) -> bytes:
        """A key as etcd has it."""
        return self._root + key

    def bounds(self, start: bytes, end: bytes) -> tuple[bytes, bytes]:
        """A range as etcd has it: its first key cannot be empty."""
        return (self._root + start or b"\0", self._root + end)

    def item(self, found: Any) -> KeyValue:
        return KeyValue(found.key[self._skip :], found.value, found.create_revision, found.mod_revision)

    def event(self, event: StoreEvent) -> StoreEvent:
        """An event with the store's key in place of etcd's."""
        if not self._skip:
            return event
        key = event.key[self._skip :]
        return StoreEvent(key, event.value, event.revision, event.create_revision, event.previous_revision)
