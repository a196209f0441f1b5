"""The file: its tables, how it is opened, and what is checked before it is trusted.

`versions` has one row for each revision since the last compaction, and the current row of every key that was last
written before. Rows are only ever added at the end and removed by compaction. The index `changes` repeats all but the
values, so that following the history does not read them.
"""

from __future__ import annotations

import errno
import os

import apsw

from steersman._util.dataclass import dataclass
from steersman.store._keys import ABSENT, KeyIndex, Ref
from steersman.store.sqlite.errors import Damaged, ForeignFile, NewerFormat, OlderFormat, ReadOnly, explain
from steersman.store.sqlite.upgrade import upgrade

APPLICATION_ID = 0x53746565  # "Stee"
FORMAT = 1

_TABLES = """
CREATE TABLE versions (
  revision INTEGER PRIMARY KEY,
  key BLOB NOT NULL,
  create_revision INTEGER NOT NULL,
  previous_revision INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  value BLOB
) STRICT;
CREATE UNIQUE INDEX changes ON versions (revision, key, create_revision, previous_revision, deleted);
CREATE TABLE compaction (
  compacted INTEGER NOT NULL,
  swept INTEGER NOT NULL
) STRICT;
INSERT INTO compaction VALUES (0, 0);
"""

_CHECKED_BYTES = 64 << 20
_BUSY_MILLISECONDS = 5000


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the file held when it was opened. Revisions up to `swept` have been compacted physically."""

    index: KeyIndex
    revision: int
    compacted: int
    swept: int


def prepare_file(path: str) -> None:
    """Create the file, readable by its owner only, if it is not there; check that it can be used at all."""
    directory = os.path.dirname(path)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise ReadOnly(f"cannot create {path}: the directory {directory} does not exist; create it") from error
        if error.errno == errno.EROFS:
            raise ReadOnly(f"cannot write to {path}: its file system is mounted read-only") from error
        if error.errno == errno.EISDIR:
            raise ForeignFile(f"{path} is a directory; name a file in it") from error
        raise explain(error, path) from error


def connect(path: str, *, vfs: str | None = None, fsync: bool = True) -> apsw.Connection:
    """A connection with the settings that every connection to the file needs.

    Without `fsync` commits do not wait for the disk: they outlive the process, but not the machine.
    """
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    connection.setbusytimeout(_BUSY_MILLISECONDS)
    durability = f"synchronous = {'FULL' if fsync else 'OFF'}"
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", durability, "fullfsync = ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def initialise(connection: apsw.Connection, path: str) -> None:
    """Make sure that the file is ours: create the tables in an empty one, bring one of an earlier format to today's,
    refuse any other.

    Raises ForeignFile, NewerFormat, OlderFormat, Damaged, ReadOnly.
    """
    application, version = _identity(connection, path)
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if application != APPLICATION_ID and (application or version or tables):
        raise ForeignFile(f"{path} is a SQLite database of another application; choose another path")
    if connection.readonly("main"):
        raise ReadOnly(f"cannot write to {path}: the file is read-only; give this user write access to it")
    if os.path.getsize(path) <= _CHECKED_BYTES:
        problem = connection.execute("PRAGMA quick_check(1)").get
        if problem != "ok":
            raise Damaged(f"{path} is damaged ({problem.splitlines()[-1]}); restore a backup")
    if connection.pragma("journal_mode", "wal") != "wal":
        raise ForeignFile(f"{path} cannot be used in WAL mode; choose a path on a local file system")
    if application == APPLICATION_ID and version < FORMAT:
        upgrade(connection, path, version, FORMAT)
    elif application != APPLICATION_ID:
        with connection:
            connection.execute(_TABLES)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}")


def check_readable(connection: apsw.Connection, path: str) -> None:
    """Make sure that the file has our tables, as they are today. Raises ForeignFile, NewerFormat, OlderFormat."""
    application, version = _identity(connection, path)
    if application != APPLICATION_ID:
        raise ForeignFile(f"{path} is no database of a server; choose another path")
    if version < FORMAT:
        raise OlderFormat(f"{path} has format {version}, not {FORMAT}; a server that opens it brings it there")


def last_revision(connection: apsw.Connection) -> int:
    """The revision that the file is at."""
    sql = "SELECT max(coalesce(max(revision), 1), (SELECT compacted FROM compaction)) FROM versions"
    last: int = connection.execute(sql).get
    return last


def _identity(connection: apsw.Connection, path: str) -> tuple[int, int]:
    """Whose file it is, and of which format. Raises NewerFormat."""
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    if application == APPLICATION_ID and version > FORMAT:
        raise NewerFormat(
            f"{path} has format {version}, this version knows up to {FORMAT}; use the version that wrote it or a later"
        )
    return application, version


def load(connection: apsw.Connection, path: str) -> Loaded:
    """Read which keys exist, in one scan that also checks that no revision is missing."""
    compacted, swept = connection.execute("SELECT compacted, swept FROM compaction").get
    refs: dict[bytes, Ref] = {}
    last = 1
    rows = connection.execute(
        "SELECT revision, key, create_revision, previous_revision, deleted"
        " FROM versions INDEXED BY changes ORDER BY revision"
    )
    for revision, key, created, previous, deleted in rows:
        if revision > swept and (revision != last + 1 or previous != refs.get(key, ABSENT)[0]):
            raise Damaged(f"{path} is damaged (revision {last + 1} is missing); restore a backup")
        if deleted:
            refs.pop(key, None)
        else:
            refs[key] = (revision, created)
        last = revision
    if last < compacted:
        raise Damaged(f"{path} is damaged (revision {compacted} is missing); restore a backup")
    return Loaded(KeyIndex(refs), last, compacted, swept)
