"""From what was named on the command line to the texts in files, directories and stdin."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = (".json", ".yaml", ".yml")
STDIN = "<stdin>"


@dataclass(frozen=True, slots=True)
class Source:
    """A text and what to call it."""

    name: str
    text: bytes


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What cannot be read, and why."""

    name: str
    why: str


def read_sources(names: Sequence[str], *, recursive: bool = False) -> Iterator[Source | Unreadable]:
    """The texts of files, of the .json, .yaml and .yml files in directories, and of stdin ("-"), each of them once.

    A directory's files come sorted by name; those of its directories only if `recursive`.
    """
    seen: set[str] = set()
    for name in names:
        if name == "-":
            if name not in seen:
                yield Source(STDIN, sys.stdin.buffer.read())
            seen.add(name)
            continue
        for found in _files(Path(name), recursive):
            if isinstance(found, Unreadable):
                yield found
            elif (real := os.path.realpath(found)) not in seen:
                seen.add(real)
                yield _read(found)


def read_texts(names: Sequence[str], *, recursive: bool = False) -> tuple[list[Source], list[Unreadable]]:
    """What can be read, and what cannot."""
    found = list(read_sources(names, recursive=recursive))
    texts = [each for each in found if isinstance(each, Source)]
    return texts, [each for each in found if isinstance(each, Unreadable)]


def _files(path: Path, recursive: bool) -> Iterator[Path | Unreadable]:
    if not path.is_dir():
        yield path
        return
    failed: list[Unreadable] = []
    count = 0
    for directory, below, files in os.walk(path, onerror=lambda error: failed.append(_unreadable(error))):
        below[:] = sorted(below) if recursive else []
        for file in sorted(files):
            if file.endswith(SUFFIXES):
                count += 1
                yield Path(directory, file)
    yield from failed
    if not count and not failed:
        yield Unreadable(str(path), f"the directory holds no {', '.join(SUFFIXES)} file")


def _unreadable(error: OSError) -> Unreadable:
    return Unreadable(str(error.filename), error.strerror or str(error))


def _read(path: Path) -> Source | Unreadable:
    try:
        return Source(str(path), path.read_bytes())
    except OSError as error:
        return Unreadable(str(path), error.strerror or str(error))
    except ValueError as error:  # a name with a null byte
        return Unreadable(str(path), str(error))
