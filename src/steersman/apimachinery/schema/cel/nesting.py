"""Room for expressions that nest deeply.

How deeply they may nest is bounded (`parser.MAX_DEPTH`), but the interpreter's limit on calls is reached before. It is
the whole process's, and is raised with the first expression that needs it. It is not lowered again: a thread that is
deeper than a limit at that moment would abort the process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
_ROOM: Final = 4_800
"""What the deepest expressions need (4,300) and some, and less than 8 MiB of stack hold where calls go through C."""


def with_room(work: Callable[[], T]) -> T:
    """What `work` returns. It is called once more, with room, if it nests too deeply: it must not keep what it did."""
    try:
        return work()
    except RecursionError:
        if sys.getrecursionlimit() >= _ROOM:
            raise
    sys.setrecursionlimit(_ROOM)
    return work()
