"""The lock that keeps two servers from sharing one database file."""

from __future__ import annotations

import fcntl
import os

from steersman.store.sqlite.errors import InUse, explain


class FileLock:
    """An exclusive flock on `path` + "-lock", held until `release` or until the process ends, however it ends.

    The lock is on a file of its own because closing any descriptor of the database file itself would drop the
    POSIX locks that SQLite holds on it. The file stays behind: removing it would let two servers lock two files
    of the same name.
    """

    def __init__(self, path: str) -> None:
        """Take the lock. Raises InUse, ReadOnly."""
        lock_path = f"{path}-lock"
        try:
            self._descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise explain(error, lock_path) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            if not isinstance(error, BlockingIOError):
                raise explain(error, lock_path) from error
            by = f"process {holder}" if holder.isdecimal() else "another process"
            raise InUse(f"{path} is in use by {by}; stop that server or choose another path") from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._descriptor)
