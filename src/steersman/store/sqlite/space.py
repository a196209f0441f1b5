"""How full a database and its disk are, and what is said of it before it hurts."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable

import apsw

log = logging.getLogger("steersman.store.sqlite")
_STEP = 4 << 20
_LEAST = 1 << 16
_DISK_LEAST = 64 << 20
_DISK_SCARCE, _DISK_SHARE = 1 << 30, 20
_WARN, _TIGHT = 0.8, 0.9


class Space:
    """Looks at the sizes when some more has been written: a look costs some 10 us.

    `full` says that no more may be written, `tight` that little may. Without a quota neither comes to be.
    """

    def __init__(self, path: str, usage: Callable[[], tuple[int, int]], quota: int = 0) -> None:
        """`usage` tells the file's bytes, and how many of them are in use; `quota` how many may be (0: any number)."""
        self.quota = quota
        self.full = self.tight = False
        self._path = path
        self._usage = usage
        self._left = 0
        self._warned = self._disk_warned = False
        self.look()

    def grow(self, written: int) -> None:
        """Count bytes that were written."""
        self._left -= written
        if self._left <= 0:
            self.look()

    def look(self) -> None:
        """See how full it is now. What cannot be seen stays as it was."""
        with contextlib.suppress(apsw.Error, OSError):
            self._left = _STEP
            self._look_at_disk()
            if self.quota:
                self._judge(self._usage()[1])

    def refusal(self) -> str:
        """What is said to who wants to write."""
        return (
            f"the store is full: it may hold {_megabytes(self.quota)} (--quota-backend-bytes); delete what is not "
            "needed, or allow more"
        )

    def _judge(self, used: int) -> None:
        was_full, quota = self.full, self.quota
        self.full, self.tight = used >= quota, used >= quota * _TIGHT
        self._left = min(_STEP, max((quota - used) // 4, _LEAST))
        shown = f"{_megabytes(used)} of {_megabytes(quota)}"
        if self.full and not was_full:
            log.error("%s is full (%s): writes are refused, deletions are not", self._path, shown)
        elif was_full and not self.full:
            log.warning("%s takes writes again (%s)", self._path, shown)
        elif used >= quota * _WARN and not self._warned:
            log.warning("%s will soon be full: %s (--quota-backend-bytes)", self._path, shown)
        self._warned = used >= quota * _WARN

    def _look_at_disk(self) -> None:
        left, whole = _disk_space(self._path)
        scarce = left < _DISK_LEAST or (left < _DISK_SCARCE and left < whole // _DISK_SHARE)
        if scarce and not self._disk_warned:
            log.warning("the disk of %s is nearly full: %s are left", self._path, _megabytes(left))
        self._disk_warned = scarce


def sizes_beside(path: str) -> tuple[int, int]:
    """Bytes of a database's log, and those that its disk has left. Raises OSError."""
    return os.path.getsize(f"{path}-wal"), _disk_space(path)[0]


def _disk_space(path: str) -> tuple[int, int]:
    """Bytes that are left on a file's disk, and its size. Raises OSError."""
    found = os.statvfs(os.path.dirname(path))
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB"
