"""Whole databases: what one holds at a revision, read while a server runs; and a new one made of that.

A new database is made beside its place and takes it in one step.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw

from steersman._util.durable import open_beside, remove_unfinished, sync_directory
from steersman.store.interface import KeyValue, StoreError, StoreUnavailable
from steersman.store.sqlite import schema
from steersman.store.sqlite.errors import Damaged, explain
from steersman.store.sqlite.lock import FileLock

_CHUNK = 256
_MARK = b"/steersman.dev/mark"
_INSERT = "INSERT INTO versions VALUES (?, ?, ?, 0, 0, ?)"


class Snapshot:
    """The keys in a database at one revision, whatever is written meanwhile; a context manager."""

    def __init__(self, path: str, *, alone: bool = False) -> None:
        """Begin to read the file at `path`. With `alone`, no server may have it, and none can open it meanwhile.

        Raises StoreUnavailable.
        """
        self._path = os.path.realpath(path)
        with contextlib.ExitStack() as undo:
            if not os.path.exists(self._path):
                raise StoreUnavailable(f"{path} does not exist; name a database that a server has made")
            if alone:
                undo.callback(FileLock(self._path).release)
            try:
                self._connection = schema.connect(self._path)
                undo.callback(self._connection.close)
                self._begin()
            except apsw.Error as error:
                raise explain(error, self._path) from error
            self._closing = undo.pop_all()

    def _begin(self) -> None:
        schema.check_readable(self._connection, self._path)
        self._connection.execute("PRAGMA query_only = ON; BEGIN")
        compacted = self._connection.execute("SELECT compacted FROM compaction").get
        live: dict[bytes, int] = {}
        self.revision = max(compacted, 1)
        rows = "SELECT revision, key, deleted FROM versions INDEXED BY changes ORDER BY revision"
        for revision, key, deleted in self._connection.execute(rows):
            self.revision = revision
            if deleted:
                live.pop(key, None)
            else:
                live[key] = revision
        self._revisions = sorted(live.values())

    def items(self) -> Iterator[KeyValue]:
        """The keys in the order in which they were last written. Raises StoreUnavailable."""
        wanted = "SELECT key, value, create_revision, revision FROM versions WHERE revision IN carray(?) ORDER BY 4"
        try:
            for start in range(0, len(self._revisions), _CHUNK):
                chunk = array("q", self._revisions[start : start + _CHUNK])
                rows: list[Any] = self._connection.execute(wanted, (apsw.carray(chunk),)).fetchall()
                if len(rows) != len(chunk) or any(value is None for _, value, _, _ in rows):
                    raise Damaged(f"{self._path} is damaged (values are missing); restore a backup")
                yield from (KeyValue(*row) for row in rows)
        except apsw.Error as error:
            raise explain(error, self._path) from error

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._closing.close()


class Target:
    """A database that is about to be replaced, or made: nobody else can open it meanwhile; a context manager."""

    def __init__(self, path: str) -> None:
        """Raises StoreUnavailable, also while a server has the file."""
        self.path = os.path.realpath(path)
        if not os.path.isdir(os.path.dirname(self.path)):
            raise StoreUnavailable(f"cannot create {path}: its directory does not exist; create it")
        if os.path.isdir(self.path):
            raise StoreUnavailable(f"{path} is a directory; name a file in it")
        self._lock = FileLock(self.path)

    @property
    def exists(self) -> bool:
        return os.path.exists(self.path) and os.path.getsize(self.path) > 0

    def revision(self) -> int:
        """The revision of what is there now; 0 where it cannot be read. Its log is written back into the file."""
        if not self.exists:
            return 0
        try:
            connection = schema.connect(self.path)
            try:
                schema.check_readable(connection, self.path)
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                return schema.last_revision(connection)
            finally:
                connection.close()
        except (apsw.Error, StoreError):
            return 0

    def fill(self, items: Iterable[KeyValue], revision: int) -> Path | None:
        """Have the file hold `items`, which come in the order of their revisions, below `revision`; it becomes the
        current revision, before which nothing can be read.

        Returns where the file that was there before is now. When this returns, all is durable. Raises StoreUnavailable.
        """
        directory = Path(self.path).parent
        try:
            remove_unfinished(Path(self.path))
            descriptor, made = open_beside(Path(self.path))
            os.close(descriptor)
            try:
                _make(made, items, revision)
                kept = self._put_aside(directory) if self.exists else None
                os.replace(made, self.path)
                sync_directory(directory)
            finally:
                for name in (made, f"{made}-wal", f"{made}-shm"):
                    Path(name).unlink(missing_ok=True)
        except (apsw.Error, OSError) as error:
            raise explain(error, self.path) from error
        return kept

    def _put_aside(self, directory: Path) -> Path:
        """Keep what is there under another name: the name itself stays in use until the new file takes it.

        The log that belongs to it must not be found beside the new file.
        """
        kept = Path(f"{self.path}.replaced")
        kept.unlink(missing_ok=True)
        os.link(self.path, kept)
        Path(f"{self.path}-shm").unlink(missing_ok=True)
        Path(f"{kept}-wal").unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{self.path}-wal", f"{kept}-wal")
        sync_directory(directory)
        return kept

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._lock.release()


def shrink(path: str) -> tuple[int, int]:
    """Give a database's free space back to the disk; no server may have it. Returns its bytes before and after.

    It is rewritten in one transaction, for which the disk needs twice the room of what it holds. Raises
    StoreUnavailable.
    """
    if not os.path.exists(path):
        raise StoreUnavailable(f"{path} does not exist; name a database that a server has made")
    path = os.path.realpath(path)
    lock = FileLock(path)
    try:
        connection = schema.connect(path)
        try:
            schema.check_readable(connection, path)
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            before = os.path.getsize(path)
            connection.execute("VACUUM")
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            return before, os.path.getsize(path)
        finally:
            connection.close()
    except apsw.Error as error:
        raise explain(error, path) from error
    finally:
        lock.release()


def _make(path: str, items: Iterable[KeyValue], revision: int) -> None:
    """A new database at `path`, durable, with nothing beside it."""
    connection = schema.connect(path)
    try:
        schema.initialise(connection, path)
        with connection:
            rows = ((item.mod_revision, item.key, item.create_revision, item.value) for item in items)
            connection.executemany(_INSERT, rows)
            # A deletion of nothing holds the revision.
            connection.execute("INSERT INTO versions VALUES (?, ?, ?, 0, 1, NULL)", (revision, _MARK, revision))
            connection.execute("UPDATE compaction SET compacted = ?, swept = ?", (revision, revision))
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()
    with open(path, "rb") as file:
        os.fsync(file.fileno())
