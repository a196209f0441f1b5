"""What SQLite reports, as the store's errors: one line that says what is wrong and what to do."""

from __future__ import annotations

import apsw

from steersman.store.interface import StoreError, StoreUnavailable


class DiskFull(StoreUnavailable):
    """There is no room for the write. Nothing acknowledged is lost; writes work again when there is room."""


class TooLarge(StoreUnavailable):
    """SQLite cannot hold a value of this size (some 1 GB)."""


class ReadOnly(StoreUnavailable):
    """The file or its directory cannot be written by this user."""


class Damaged(StoreUnavailable):
    """The file is not a database, or its content contradicts itself. The store stays unusable until reopened."""


class ForeignFile(StoreUnavailable):
    """The file is a SQLite database of another application."""


class NewerFormat(StoreUnavailable):
    """The file was written by a later version of this store."""


class OlderFormat(StoreUnavailable):
    """The file was written by an earlier version of this store, and has not been brought to today's format."""


class InUse(StoreUnavailable):
    """Another server has the file open."""


class SyncFailed(StoreUnavailable):
    """The disk did not confirm a write; what it holds is only known after reopening the file."""


_SYNC_FAILED = {
    apsw.SQLITE_IOERR_FSYNC,
    apsw.SQLITE_IOERR_DIR_FSYNC,
}


def explain(error: BaseException, path: str) -> StoreError:
    """The store's error for what apsw (or the system) raised while working on the file at `path`."""
    match error:
        case StoreError():
            return error
        case apsw.FullError():
            return DiskFull(f"the disk is full: cannot write to {path}; free some space, then writes work again")
        case apsw.TooBigError():
            return TooLarge(f"a value is too large for {path}: SQLite holds up to 1 GB; make it smaller")
        case apsw.ReadOnlyError():
            return ReadOnly(f"cannot write to {path}: the file is read-only; give this user write access to it")
        case apsw.NotADBError():
            return Damaged(f"{path} is not a SQLite database; choose another path or restore a backup")
        case apsw.CorruptError():
            return Damaged(f"{path} is damaged ({error}); stop the server and restore a backup")
        case apsw.IOError() if getattr(error, "extendedresult", 0) in _SYNC_FAILED:
            return SyncFailed(f"the disk did not confirm a write to {path}; check the disk, then restart the server")
        case apsw.IOError():
            return StoreUnavailable(f"the disk failed while using {path} ({error}); check the disk")
        case apsw.BusyError() | apsw.LockedError():
            return StoreUnavailable(f"another program keeps {path} locked; close it, then try again")
        case apsw.CantOpenError():
            return StoreUnavailable(f"cannot open {path} or a file next to it; check the path and its permissions")
        case PermissionError():
            return ReadOnly(f"cannot open {path}: permission denied; give this user write access to it")
        case _:
            return StoreUnavailable(f"cannot use {path}: {error or type(error).__name__}")


def depends_on_size(error: StoreError) -> bool:
    """Whether a smaller transaction may work where this error was raised."""
    return isinstance(error, DiskFull | TooLarge)


def is_final(error: StoreError) -> bool:
    """Whether the store must not write any more after this error until it is opened again."""
    return isinstance(error, Damaged | SyncFailed)
