"""What every store checks about its arguments before it does anything."""

from __future__ import annotations

from steersman.store.interface import Compacted, FutureRevision


def check_swap(expected: int, value: bytes | None) -> None:
    if expected < 0:
        raise ValueError("the expected revision cannot be negative")
    if expected == 0 and value is None:
        raise ValueError("a key that does not exist cannot be deleted")


def read_revision(limit: int, revision: int, current: int, compacted: int) -> int:
    """The revision to read a range at: `revision`, or the current one for 0."""
    if limit < 0 or revision < 0:
        raise ValueError("limit and revision cannot be negative")
    if revision > current:
        raise FutureRevision(current)
    if revision and revision < compacted:
        raise Compacted(compacted)
    return revision or current


def watch_position(revision: int, current: int, compacted: int) -> int:
    """The first revision a watch from `revision` is given: the next write's for 0."""
    if revision < 0:
        raise ValueError("the revision cannot be negative")
    if revision and revision < compacted:
        raise Compacted(compacted)
    return revision or current + 1


def check_compact(revision: int, current: int, compacted: int) -> None:
    if revision < 1:
        raise ValueError("the revision to compact to must be at least 1")
    if revision > current:
        raise FutureRevision(current)
    if revision <= compacted:
        raise Compacted(compacted)
