"""What is read from the file: the changes of a span of revisions, and values by revision.

As for writing, each step of a statement costs the GIL. So a statement here returns one row: changes as one JSON text,
values joined into one, with their lengths. (SQLite joins blobs as text without looking at the bytes.)
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Sequence
from itertools import islice
from typing import Any

import apsw
import orjson

from steersman.store._keys import Change
from steersman.store.interface import KeyValue, StoreEvent
from steersman.store.sqlite.errors import Damaged

HISTORY_CHUNK = 64

_VALUES_CHUNK = 128
_USAGE = "SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
_VALUE = "SELECT value FROM versions WHERE revision = ?"
_VALUES = (
    "SELECT CAST(group_concat(versions.value, '') AS BLOB), group_concat(coalesce(length(versions.value), -1))"
    " FROM carray(?) AS wanted LEFT JOIN versions ON versions.revision = wanted.value"
)
_CHANGES = (
    "SELECT json_group_array(json_array(revision, hex(key), create_revision, previous_revision, deleted))"
    " FROM (SELECT * FROM versions INDEXED BY changes"
    " WHERE revision > ? AND revision <= ? AND key >= ? AND key < ? ORDER BY revision LIMIT ?)"
)
_UNDO = (
    "SELECT json_group_array(json_array(revision, hex(key), create_revision, previous_revision))"
    " FROM (SELECT min(revision) AS revision, key, create_revision, previous_revision"
    " FROM versions INDEXED BY changes"
    " WHERE revision > ? AND revision <= ? AND key >= ? AND key < ? GROUP BY key)"
)

Wanted = tuple[bytes, int, int]
"""(key, mod_revision, create_revision) of a version to read."""


class Reader:
    """Reads through a connection of its own; used by one thread at a time."""

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        connection.execute("PRAGMA query_only = ON")

    def value(self, key: bytes, revision: int, created: int) -> KeyValue:
        """One version that is known to be kept."""
        return self.values(((key, revision, created),))[0]

    def values(self, wanted: Sequence[Wanted]) -> list[KeyValue]:
        """Versions that are known to be kept and not deletions, in the order wanted. Raises Damaged, apsw.Error."""
        if len(wanted) == 1:
            ((key, revision, created),) = wanted
            row = self._connection.execute(_VALUE, (revision,)).fetchone()
            if row is None or row[0] is None:
                raise self._missing(revision)
            return [KeyValue(key, row[0], created, revision)]
        found: list[KeyValue] = []
        rest = iter(wanted)
        while chunk := list(islice(rest, _VALUES_CHUNK)):
            revisions = array("q", [revision for _, revision, _ in chunk])
            joined, lengths = self._row(_VALUES, (apsw.carray(revisions),))
            at = 0
            for (key, revision, created), length in zip(chunk, map(int, lengths.split(",")), strict=True):
                if length < 0:
                    raise self._missing(revision)
                found.append(KeyValue(key, joined[at : at + length], created, revision))
                at += length
        return found

    def usage(self) -> tuple[int, int]:
        """The bytes of the file, and how many of them are in use. Raises apsw.Error."""
        pages, free, size = self._row(_USAGE, ())
        return pages * size, (pages - free) * size

    def undo(self, after: int, to: int, start: bytes, end: bytes) -> list[Change]:
        """The first change in (after, to] of each key in [start, end) that was changed in it, in no order."""
        return [
            (revision, bytes.fromhex(key), created, previous)
            for revision, key, created, previous in orjson.loads(self._row(_UNDO, (after, to, start, end))[0])
        ]

    def history(self, after: int, to: int, start: bytes, end: bytes) -> list[StoreEvent]:
        """The first events in (after, to] on keys in [start, end), at most HISTORY_CHUNK of them."""
        rows = orjson.loads(self._row(_CHANGES, (after, to, start, end, HISTORY_CHUNK))[0])
        changes = [(revision, bytes.fromhex(key), *rest) for revision, key, *rest in rows]
        wanted = [(key, revision, created) for revision, key, created, _, deleted in changes if not deleted]
        values = {item.mod_revision: item.value for item in self.values(wanted)}
        return [
            StoreEvent(key, values.get(revision), revision, created, previous)
            for revision, key, created, previous, _ in changes
        ]

    def close(self) -> None:
        with contextlib.suppress(apsw.Error):
            self._connection.close()

    def _missing(self, revision: int) -> Damaged:
        return Damaged(f"{self._path} is damaged (revision {revision} is missing); restore a backup")

    def _row(self, sql: str, parameters: Sequence[Any]) -> tuple[Any, ...]:
        rows: list[tuple[Any, ...]] = self._connection.execute(sql, parameters).fetchall()
        return rows[0]
