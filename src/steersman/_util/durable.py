"""Files that take their names when they are whole and durable."""

from __future__ import annotations

import os
from pathlib import Path

_ENDING = ".unfinished"


def open_beside(path: Path) -> tuple[int, str]:
    """A new file in the directory of `path`, readable by its owner only: its descriptor and name. Raises OSError."""
    name = os.path.abspath(path.with_name(f".{path.name}.{os.urandom(8).hex()}{_ENDING}"))
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), name


def remove_unfinished(path: Path) -> None:
    """Remove what processes that were killed have left of `open_beside`; nobody else may be at it. Raises OSError."""
    for left in path.parent.iterdir():
        if left.name.startswith(f".{path.name}.") and _ENDING in left.name:
            left.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Make what was created, renamed or removed in a directory durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
