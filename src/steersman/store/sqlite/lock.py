"""The lock that keeps two servers from sharing one database file."""

from __future__ import annotations

import os
import sys

from steersman.store.sqlite.errors import InUse, explain

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30

    def _lock(descriptor: int) -> None:
        """Lock a byte that nobody writes: what is locked cannot be read there."""
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from None

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """An exclusive lock on `path` + "-lock", held until `release` or until the process ends, however it ends.

    The lock is on a file of its own because closing any descriptor of the database file itself would drop the
    POSIX locks that SQLite holds on it. The file stays behind: removing it would let two servers lock two files
    of the same name.
    """

    def __init__(self, path: str) -> None:
        """Take the lock. Raises InUse, ReadOnly."""
        lock_path = f"{path}-lock"
        try:
            self._descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise explain(error, lock_path) from error
        try:
            _lock(self._descriptor)
        except OSError as error:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip()
            os.close(self._descriptor)
            if not isinstance(error, BlockingIOError):
                raise explain(error, lock_path) from error
            by = f"process {holder}" if holder.isdecimal() else "another process"
            raise InUse(f"{path} is in use by {by}; stop that server or choose another path") from None
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        os.close(self._descriptor)
