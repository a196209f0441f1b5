"""A store whose values are encrypted; what is read of it is not.

Source: apiserver `pkg/storage/etcd3/store.go`, `pkg/server/options/encryptionconfig/config.go`.
"""

from __future__ import annotations

import logging

from steersman.apiserver.encryption.ciphers import Cipher, Identity, Undecipherable
from steersman.apiserver.encryption.configuration import Ciphers, cipher_of
from steersman.apiserver.storage_keys import GroupResource, resource_of
from steersman.apiserver.wrapped_stores import TransformedStore
from steersman.store.interface import Store

log = logging.getLogger("steersman.apiserver.store")
_PLAIN = Identity()


class EncryptedStore(TransformedStore):
    """A store through which values are as they were before they were encrypted.

    `unreadable` has the keys whose values cannot be decrypted now, and why: they are not among what is read.
    """

    def __init__(self, store: Store, ciphers: Ciphers, root: str = "") -> None:
        """`root` is what the store has before its keys: kube-apiserver binds values to the whole."""
        super().__init__(store)
        self._root = root.encode()
        self._ciphers = ciphers
        self._found: dict[GroupResource, Cipher] = {}
        self.unreadable: dict[bytes, str] = {}

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
        return self._cipher(key).encrypt(value, self._root + key)

    def _deleted(self, key: bytes) -> None:
        self.unreadable.pop(key, None)

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
            if key not in self.unreadable:
                shown = key.decode(errors="replace")
                extra = {"key": shown, "revision": revision, "why": str(error)}
                log.error("what is stored cannot be decrypted", extra=extra)
            self.unreadable[key] = str(error)
            return None
        if self.unreadable:
            self.unreadable.pop(key, None)
        return plain
