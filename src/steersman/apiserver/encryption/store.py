"""A store whose values are encrypted; what is read of it is not.

Source: apiserver `pkg/storage/etcd3/store.go`, `pkg/server/options/encryptionconfig/config.go`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from steersman.apiserver.encryption.ciphers import Cipher, Identity, Undecipherable
from steersman.apiserver.encryption.configuration import Ciphers, cipher_of
from steersman.apiserver.storage_keys import GroupResource, resource_of
from steersman.store.interface import CompareFailed, KeyValue, Range, Store, StoreError, StoreEvent, Watch

log = logging.getLogger("steersman.apiserver.store")
_PLAIN = Identity()


class EncryptedStore:
    """A store through which values are as they were before they were encrypted.

    `unreadable` has the keys whose values cannot be decrypted now, and why: they are not among what is read.
    """

    def __init__(self, store: Store, ciphers: Ciphers, root: str = "") -> None:
        """`root` is what the store has before its keys: kube-apiserver binds values to the whole."""
        self._store = store
        self._root = root.encode()
        self._ciphers = ciphers
        self._found: dict[GroupResource, Cipher] = {}
        self.unreadable: dict[bytes, str] = {}
        self.shared = store.shared
        self.read_only = store.read_only
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

    def use(self, ciphers: Ciphers) -> None:
        """Encrypt and decrypt in another way from now on."""
        self._ciphers = ciphers
        self._found.clear()

    async def is_stale(self, key: bytes) -> bool:
        """Whether a value is not encrypted as one that is written now. Raises StoreUnavailable."""
        found = await self._store.get(key)
        if found is None:
            return False
        try:
            return self._cipher(key).decrypt(found.value, self._root + key)[1]
        except Undecipherable:
            return True

    async def get(self, key: bytes) -> KeyValue | None:
        found = await self._store.get(key)
        return None if found is None else self._item(found)

    async def range(self, start: bytes, end: bytes, *, limit: int = 0, revision: int = 0) -> Range:
        found = await self._store.range(start, end, limit=limit, revision=revision)
        items = [item for item in map(self._item, found.items) if item is not None]
        return Range(items, found.revision, found.more, found.count)

    async def swap(self, key: bytes, expected: int, value: bytes | None) -> int:
        encrypted = None if value is None else self._cipher(key).encrypt(value, self._root + key)
        try:
            return await self._store.swap(key, expected, encrypted)
        except CompareFailed as error:
            raise CompareFailed(key, None if error.current is None else self._item(error.current)) from None

    def watch(
        self,
        start: bytes,
        end: bytes,
        revision: int,
        deliver: Callable[[Sequence[StoreEvent]], None],
        ended: Callable[[StoreError], None] | None = None,
    ) -> Watch:
        return self._store.watch(start, end, revision, lambda events: deliver(list(self._events(events))), ended)

    def _cipher(self, key: bytes) -> Cipher:
        resource = resource_of(key)
        cipher = self._found.get(resource)
        if cipher is None:
            cipher = self._found[resource] = cipher_of(self._ciphers, resource) or _PLAIN
        return cipher

    def _item(self, item: KeyValue) -> KeyValue | None:
        value = self._decrypted(item.key, item.value, item.mod_revision)
        if value is None or value is item.value:
            return None if value is None else item
        return KeyValue(item.key, value, item.create_revision, item.mod_revision)

    def _events(self, events: Sequence[StoreEvent]) -> Iterator[StoreEvent]:
        for event in events:
            if event.value is None:
                self.unreadable.pop(event.key, None)
                yield event
                continue
            value = self._decrypted(event.key, event.value, event.revision)
            if value is event.value:
                yield event
            else:
                yield StoreEvent(event.key, value, event.revision, event.create_revision, event.previous_revision)

    def _decrypted(self, key: bytes, value: bytes, revision: int) -> bytes | None:
        try:
            plain, _ = self._cipher(key).decrypt(value, self._root + key)
        except Undecipherable as error:
            if key not in self.unreadable:
                shown = key.decode(errors="replace")
                extra = {"key": shown, "revision": revision, "why": str(error)}
                log.error("what is stored cannot be decrypted", extra=extra)
            self.unreadable[key] = str(error)
            return None
        if self.unreadable:
            self.unreadable.pop(key, None)
        return plain
