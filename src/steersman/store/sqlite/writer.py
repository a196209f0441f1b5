"""The statements of the writing thread.

Every call into SQLite gives the GIL up and has to get it back, which on a busy event loop can take a switch interval
(5 ms). So a batch is one statement, not one per row: rows are padded with NULLs to one of a few sizes, and the
statement is its own transaction, durable when it returns.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import apsw

from steersman.store.interface import StoreEvent

BATCH_ROWS = 256
SLICE_REVISIONS = 512

_COLUMNS = 6
_SIZES = (1, 4, 16, 64, BATCH_ROWS)
_PAGE = 4096
_LOG_BYTES = 1000 * _PAGE
_LOG_PAGES_LIMIT = 16_000


def _insert(size: int) -> str:
    rows = ",".join(["(?,?,?,?,?,?)"] * size)
    return f"INSERT INTO versions SELECT * FROM (VALUES {rows}) WHERE column1 IS NOT NULL"  # noqa: S608


_INSERTS = {size: _insert(size) for size in _SIZES}


class Writer:
    """Changes the database through its one writing connection; used on the writing thread only."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._logged = 0
        # Checkpoints run after a batch has been answered (see `tidy`); this is for one that fills the log alone.
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES_LIMIT}")

    def insert(self, events: Sequence[StoreEvent]) -> None:
        """Add at most BATCH_ROWS versions durably: all or, raising apsw.Error, none."""
        logged = 2 * _PAGE
        parameters: list[int | bytes | None] = []
        for event in events:
            value = event.value
            logged += len(event.key) * 2 + len(value or b"")
            parameters += (
                event.revision,
                event.key,
                event.create_revision,
                event.previous_revision,
                value is None,
                value,
            )
        size = next(size for size in _SIZES if size >= len(events))
        parameters += [None] * (_COLUMNS * (size - len(events)))
        self._connection.execute(_INSERTS[size], parameters)
        self._logged += logged

    def sweep(self, swept: int, to: int, compacted: int) -> None:
        """Remove what compacting from `swept` to `to` makes unreadable, and record how far compaction got.

        That is what was superseded in (swept, to] and the deletions in [swept, to). `compacted` is where compaction
        is to end, from which on revisions are readable.
        """
        with self._connection as connection:
            connection.execute(
                "DELETE FROM versions WHERE revision IN (SELECT previous_revision FROM versions INDEXED BY changes"
                " WHERE revision > ? AND revision <= ? AND previous_revision > 0)",
                (swept, to),
            )
            connection.execute(
                "DELETE FROM versions WHERE revision IN (SELECT revision FROM versions INDEXED BY changes"
                " WHERE revision >= ? AND revision < ? AND deleted)",
                (swept, to),
            )
            connection.execute("UPDATE compaction SET compacted = ?, swept = ?", (compacted, to))
        self._logged += (to - swept + 2) * _PAGE // 2

    def tidy(self) -> None:
        """Copy the log back into the file when it has grown by some 4 MB; it is used from the start again then.

        How much it has grown is estimated, as asking SQLite would cost the GIL after every batch. A checkpoint that
        fails leaves the log as it is, with everything in it durable; the next one tries again.
        """
        if self._logged >= _LOG_BYTES:
            self._logged = 0
            with contextlib.suppress(apsw.Error):
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def close(self) -> None:
        """Empty the log and close; a disk that fails now costs nothing, for what was acknowledged is durable."""
        with contextlib.suppress(apsw.Error):
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        with contextlib.suppress(apsw.Error):
            self._connection.close()
