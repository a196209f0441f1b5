"""A store whose values are encrypted; what is read of it is not.

Source: apiserver `pkg/storage/etcd3/store.go`, `pkg/server/options/encryptionconfig/config.go`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from steersman.apiserver.encryption.ciphers import ENCRYPTED, Cipher, Identity, Undecipherable
from steersman.apiserver.encryption.configuration import Ciphers, cipher_of
from steersman.apiserver.metrics import Metrics
from steersman.apiserver.storage_keys import GroupResource, resource_of
from steersman.apiserver.wrapped_stores import TransformedStore
from steersman.store.interface import Store

log = logging.getLogger("steersman.apiserver.store")
_PLAIN = Identity()
_VERSION = b":v1:"
"""Ends what tells the provider of an encrypted value."""


class EncryptedStore(TransformedStore):
    """A store through which values are as they were before they were encrypted.

    `unreadable` has the keys whose values cannot be decrypted now, and why: they are not among what is read.
    """

    def __init__(self, store: Store, ciphers: Ciphers, root: str = "", metrics: Metrics | None = None) -> None:
        """`root` is what the store has before its keys: kube-apiserver binds values to the whole. `metrics` count what
        is encrypted and decrypted."""
        super().__init__(store)
        self._metrics = metrics
        self._root = root.encode()
        self._ciphers = ciphers
        self._found: dict[GroupResource, Cipher] = {}
        self._unreadable: dict[bytes, str] = {}
        self._told: dict[bytes, str] | None = None

    @property
    def unreadable(self) -> Mapping[bytes, str]:
        return self._unreadable if self._told is None else self._told

    @contextmanager
    def told_as_before(self) -> Iterator[None]:
        """While all is read anew: what could not be read is told until those who serve it have it."""
        self._told, self._unreadable = self._unreadable, {}
        try:
            yield
        finally:
            self._told = None

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

    def _written(self, key: bytes, value: bytes) -> bytes:
        stored = self._cipher(key).encrypt(value, self._root + key)
        self._count("to_storage", key, stored)
        return stored

    def _deleted(self, key: bytes) -> None:
        self._unreadable.pop(key, None)

    def _cipher(self, key: bytes) -> Cipher:
        resource = resource_of(key)
        cipher = self._found.get(resource)
        if cipher is None:
            cipher = self._found[resource] = cipher_of(self._ciphers, resource) or _PLAIN
        return cipher

    def _read(self, key: bytes, value: bytes, revision: int) -> bytes | None:
        try:
            plain, _ = self._cipher(key).decrypt(value, self._root + key)
        except Undecipherable as error:
            self._count("from_storage", key, value, "Unknown")
            if key not in self.unreadable:
                shown = key.decode(errors="replace")
                extra = {"key": shown, "revision": revision, "why": str(error)}
                log.error("what is stored cannot be decrypted", extra=extra)
            self._unreadable[key] = str(error)
            return None
        self._count("from_storage", key, value)
        if self._unreadable:
            self._unreadable.pop(key, None)
        return plain

    def _count(self, direction: str, key: bytes, stored: bytes, status: str = "OK") -> None:
        if self._metrics is not None:
            group, resource = resource_of(key)
            prefix = stored[: stored.find(_VERSION) + len(_VERSION)] if stored.startswith(ENCRYPTED) else b"identity"
            labels = f"{resource}.{group}" if group else resource, direction, prefix.decode(errors="replace"), status
            self._metrics.transformations.cell(labels)[0] += 1
