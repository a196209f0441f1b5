"""A disk that can be made to fail, under SQLite."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import apsw
import pytest


class FaultyDisk(apsw.VFS):
    """The platform's VFS, whose write-ahead log fails to be written, synced or read while the flag is set."""

    vfs_name = "steersman-faulty"

    def __init__(self) -> None:
        self.full = False
        self.unsynced = False
        self.unreadable = False
        super().__init__(self.vfs_name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _File(self, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._is_log = (name.filename() if isinstance(name, apsw.URIFilename) else name or "").endswith("-wal")
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._is_log and self._disk.full:
            raise apsw.FullError(f"errno {errno.ENOSPC}")
        super().xWrite(data, offset)

    def xRead(self, amount: int, offset: int) -> bytes:
        if self._is_log and self._disk.unreadable:
            raise apsw.IOError(f"errno {errno.EIO}")
        return super().xRead(amount, offset)

    def xSync(self, flags: int) -> None:
        if self._is_log and self._disk.unsynced:
            error = apsw.IOError(f"errno {errno.EIO}")
            error.result, error.extendedresult = apsw.SQLITE_IOERR, apsw.SQLITE_IOERR_FSYNC
            raise error
        super().xSync(flags)


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    faulty = FaultyDisk()
    yield faulty
    faulty.unregister()
