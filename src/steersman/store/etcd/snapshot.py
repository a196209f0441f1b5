"""A snapshot of an etcd (`etcdctl snapshot save`, or a stopped member's `member/snap/db`), as a store to be looked at.

Source: etcd `server/storage/{mvcc/revision.go,schema/bucket.go}`.
"""

from __future__ import annotations

import asyncio
import os
from typing import Self

from google.protobuf.message import DecodeError

from steersman.store.etcd import messages as pb
from steersman.store.etcd.bolt import BoltError, BoltFile
from steersman.store.interface import Premises, ReadOnlyStore, StoreEvent, StoreUnavailable
from steersman.store.memory import MemoryStore

_TOMBSTONE = b"t"
_REVISION = 17  # bytes: the revision, an underscore, the number of the write within it


class SnapshotStore(MemoryStore):
    """The newest state that a snapshot holds; what was before is forgotten, and nothing can be written."""

    read_only = True

    @classmethod
    async def open(cls, path: str | os.PathLike[str]) -> Self:
        """Read the file, all into memory. Raises StoreUnavailable, which says what is wrong with it."""
        try:
            events, revision = await asyncio.get_running_loop().run_in_executor(None, _read, path)
        except OSError as error:
            raise StoreUnavailable(f"{os.fspath(path)} cannot be read: {error.strerror}") from None
        except (BoltError, DecodeError) as error:
            raise StoreUnavailable(f"{os.fspath(path)} is no snapshot of an etcd: {error}") from None
        store = cls()
        store.fill(events, revision)
        return store

    async def swap(self, key: bytes, expected: int, value: bytes | None, premises: Premises | None = None) -> int:
        raise ReadOnlyStore


def _read(path: str | os.PathLike[str]) -> tuple[list[StoreEvent], int]:
    """The last write of each key that exists, in the order of their revisions, and the last revision."""
    held: dict[bytes, StoreEvent] = {}
    revision = 1
    file = BoltFile(path)
    try:
        file.check_sum()
        for name, value in file.bucket(b"key"):
            found = pb.KeyValue.FromString(value)
            revision = int.from_bytes(name[:8], "big")
            if name[_REVISION:] == _TOMBSTONE:
                held.pop(found.key, None)
            else:
                held[found.key] = StoreEvent(found.key, found.value, revision, found.create_revision, 0)
    finally:
        file.close()
    return sorted(held.values(), key=lambda event: event.revision), revision
