"""How single values are encrypted: the same bytes as kube-apiserver's.

Source: apiserver `pkg/storage/value/{transformer.go,encrypt/{aes,identity,secretbox}}`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

ENCRYPTED = b"k8s:enc:"
"""What every encrypted value begins with, and no other."""
_BLOCK = 16
_GCM_NONCE = 12
_BOX_NONCE, _BOX_OVERHEAD = 24, 16
_SHORT = "the stored data was shorter than the required size"


class Undecipherable(Exception):
    """A stored value cannot be decrypted; the message says why, in upstream's words."""


class Cipher(Protocol):
    """Encrypts and decrypts values. `place` is where a value is stored: some bind what they encrypt to it."""

    def encrypt(self, value: bytes, place: bytes) -> bytes: ...

    def decrypt(self, data: bytes, place: bytes) -> tuple[bytes, bool]:
        """The value, and whether it should be written anew, with the key of today. Raises Undecipherable."""
        ...


class Identity:
    """Leaves values as they are."""

    def encrypt(self, value: bytes, place: bytes) -> bytes:
        return value

    def decrypt(self, data: bytes, place: bytes) -> tuple[bytes, bool]:
        if data.startswith(ENCRYPTED):
            raise Undecipherable("identity transformer tried to read encrypted data")
        return data, False


class AESGCM:
    """AES-GCM with a random nonce. A key must not encrypt more than 2^32 values: change it long before."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import aead

        self._aead = aead.AESGCM(key)

    def encrypt(self, value: bytes, place: bytes) -> bytes:
        nonce = os.urandom(_GCM_NONCE)
        return nonce + self._aead.encrypt(nonce, value, place)

    def decrypt(self, data: bytes, place: bytes) -> tuple[bytes, bool]:
        from cryptography.exceptions import InvalidTag

        if len(data) < _GCM_NONCE:
            raise Undecipherable(_SHORT)
        try:
            return self._aead.decrypt(data[:_GCM_NONCE], data[_GCM_NONCE:], place), False
        except InvalidTag:
            raise Undecipherable("cipher: message authentication failed") from None


class AESCBC:
    """AES-CBC with PKCS #7 padding; it does not notice every change of what is stored."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.algorithms import AES

        self._algorithm = AES(key)

    def encrypt(self, value: bytes, place: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher as Cryptor
        from cryptography.hazmat.primitives.ciphers.modes import CBC

        initial = os.urandom(_BLOCK)
        padding = _BLOCK - len(value) % _BLOCK
        cryptor = Cryptor(self._algorithm, CBC(initial)).encryptor()
        return initial + cryptor.update(value + bytes((padding,)) * padding) + cryptor.finalize()

    def decrypt(self, data: bytes, place: bytes) -> tuple[bytes, bool]:
        from cryptography.hazmat.primitives.ciphers import Cipher as Cryptor
        from cryptography.hazmat.primitives.ciphers.modes import CBC

        if len(data) < _BLOCK:
            raise Undecipherable(_SHORT)
        if len(data) % _BLOCK:
            raise Undecipherable("the stored data is not a multiple of the block size")
        cryptor = Cryptor(self._algorithm, CBC(data[:_BLOCK])).decryptor()
        padded = cryptor.update(data[_BLOCK:]) + cryptor.finalize()
        padding = padded[-1] if padded else 0
        if not 0 < padding <= len(padded):
            raise Undecipherable("invalid PKCS7 data (empty or not padded)")
        if padded[-padding:] != bytes((padding,)) * padding:
            raise Undecipherable("invalid padding on input")
        return padded[:-padding], False


class Secretbox:
    """XSalsa20 and Poly1305, as NaCl has them; needs the extra `secretbox`."""

    def __init__(self, key: bytes) -> None:
        """Raises ImportError."""
        from nacl.secret import SecretBox

        self._box = SecretBox(key)

    def encrypt(self, value: bytes, place: bytes) -> bytes:
        return bytes(self._box.encrypt(value))

    def decrypt(self, data: bytes, place: bytes) -> tuple[bytes, bool]:
        from nacl.exceptions import CryptoError

        if len(data) < _BOX_NONCE + _BOX_OVERHEAD:
            raise Undecipherable(_SHORT)
        try:
            return self._box.decrypt(data), False
        except CryptoError:
            raise Undecipherable("output array was not large enough for encryption") from None


class FirstOf:
    """Several ciphers, each known by what its values begin with: the first encrypts, any may decrypt."""

    def __init__(self, ciphers: Sequence[tuple[bytes, Cipher]], unknown: str) -> None:
        """`unknown` is said of values that begin like none."""
        self._ciphers = ciphers
        self._unknown = unknown

    def encrypt(self, value: bytes, place: bytes) -> bytes:
        prefix, cipher = self._ciphers[0]
        return prefix + cipher.encrypt(value, place)

    def decrypt(self, data: bytes, place: bytes) -> tuple[bytes, bool]:
        """One that begins like several is tried with each: a provider may be named twice, with other keys."""
        reasons: dict[str, None] = {}
        for number, (prefix, cipher) in enumerate(self._ciphers):
            if not data.startswith(prefix):
                continue
            try:
                value, stale = cipher.decrypt(data[len(prefix) :], place)
            except Undecipherable as error:
                if prefix:
                    reasons[str(error)] = None
                continue
            return value, stale or number > 0
        if len(reasons) > 1:
            raise Undecipherable(f"[{', '.join(reasons)}]")
        raise Undecipherable(next(iter(reasons), self._unknown))
