"""Files that take their names when they are whole and durable."""

from __future__ import annotations

import glob
import os
import tempfile
from pathlib import Path

_ENDING = ".unfinished"


def open_beside(path: Path) -> tuple[int, str]:
    """A new file in the directory of `path`, readable by its owner only: its descriptor and name. Raises OSError."""
    return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_ENDING)


def remove_unfinished(path: Path) -> None:
    """Remove what processes that were killed have left of `open_beside`; nobody else may be at it. Raises OSError."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*{_ENDING}*"):
        left.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Make what was created, renamed or removed in a directory durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
