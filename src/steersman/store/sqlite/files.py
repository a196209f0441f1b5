"""Everything a SQLite store holds open."""

from __future__ import annotations

import contextlib
import os

from steersman._util.dataclass import dataclass
from steersman.store.sqlite import schema
from steersman.store.sqlite.errors import explain
from steersman.store.sqlite.lock import FileLock
from steersman.store.sqlite.reader import Reader
from steersman.store.sqlite.writer import Writer


@dataclass(frozen=True, slots=True)
class Files:
    """The lock and the connections: one for writing, one to read on a thread, one to read on the event loop."""

    path: str
    lock: FileLock
    writer: Writer
    reader: Reader
    local: Reader
    loaded: schema.Loaded

    def close(self) -> None:
        self.reader.close()
        self.local.close()
        self.writer.close()
        self.lock.release()


def open_files(path: str | os.PathLike[str], vfs: str | None, fsync: bool = True) -> Files:
    """Lock, open and check the file at `path`, creating it if needed. Raises StoreUnavailable."""
    path = os.path.realpath(path)
    with contextlib.ExitStack() as undo:
        try:
            schema.prepare_file(path)
            lock = FileLock(path)
            undo.callback(lock.release)
            connection = schema.connect(path, vfs=vfs, fsync=fsync)
            undo.callback(connection.close)
            schema.initialise(connection, path)
            loaded = schema.load(connection, path)
            reader = Reader(schema.connect(path, vfs=vfs), path)
            undo.callback(reader.close)
            local = Reader(schema.connect(path, vfs=vfs), path)
            undo.callback(local.close)
            files = Files(path, lock, Writer(connection), reader, local, loaded)
        except Exception as error:
            raise explain(error, path) from error
        undo.pop_all()
        return files
