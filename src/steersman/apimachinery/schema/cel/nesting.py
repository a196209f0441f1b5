"""Room for expressions that nest deeply.

How deeply they may nest is bounded (`parser.MAX_DEPTH`), but the interpreter's limit on calls is reached before. It is
the whole process's, so it is raised only while an expression is worked on that needs it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
_ROOM: Final = 10_000
_users: list[object] = []
_limits: list[int] = []


def with_room(work: Callable[[], T]) -> T:
    """What `work` returns. It is called once more, with room, if it nests too deeply: it must not keep what it did."""
    try:
        return work()
    except RecursionError:
        pass
    _enter()
    try:
        return work()
    finally:
        _leave()


def _enter() -> None:
    if not _users:
        _limits[:] = [sys.getrecursionlimit()]
    _users.append(None)
    if sys.getrecursionlimit() < _ROOM:
        sys.setrecursionlimit(_ROOM)


def _leave() -> None:
    _users.pop()
    if not _users:
        sys.setrecursionlimit(_limits[0])
