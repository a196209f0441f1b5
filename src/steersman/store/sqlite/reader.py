"""What is read from the file: the changes of a span of revisions, and values by revision.

As for writing, each step of a statement costs the GIL. So a statement here returns one row: changes as one JSON text,
values as the columns of one row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import islice
from typing import Any

import apsw
import orjson

from steersman.store._keys import Change
from steersman.store.interface import KeyValue, StoreEvent
from steersman.store.sqlite.errors import Damaged

HISTORY_CHUNK = 64

# The statement cache of apsw takes SQL of up to 16 KB.
_VALUES_CHUNK = 256
_SIZES = (1, 8, HISTORY_CHUNK, _VALUES_CHUNK)
_VALUES = {
    size: "SELECT " + ",".join(["(SELECT value FROM versions WHERE revision = ?)"] * size)  # noqa: S608
    for size in _SIZES
}
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
        found: list[KeyValue] = []
        rest = iter(wanted)
        while chunk := list(islice(rest, _VALUES_CHUNK)):
            size = next(size for size in _SIZES if size >= len(chunk))
            revisions: list[int | None] = [revision for _, revision, _ in chunk]
            revisions += [None] * (size - len(chunk))
            for (key, revision, created), value in zip(chunk, self._row(_VALUES[size], revisions), strict=False):
                if value is None:
                    raise Damaged(f"{self._path} is damaged (revision {revision} is missing); restore a backup")
                found.append(KeyValue(key, value, created, revision))
        return found

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

    def _row(self, sql: str, parameters: Sequence[int | bytes | None]) -> tuple[Any, ...]:
        rows: list[tuple[Any, ...]] = self._connection.execute(sql, parameters).fetchall()
        return rows[0]
