"""The audit log: one event a line, in a file that is rotated, or on stdout.

Source: apiserver `plugin/pkg/audit/log/backend.go`, `pkg/server/options/audit.go`; the names of old files are
lumberjack's (gopkg.in/natefinch/lumberjack.v2).
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

log = logging.getLogger("steersman.apiserver.audit")

_MEGABYTE = 1024 * 1024
_STAMP = "%Y-%m-%dT%H-%M-%S"
_STAMPED = re.compile(r"-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3})$")


@dataclass(frozen=True, slots=True)
class Rotation:
    """`megabytes` after which a file is put aside (0: never), and which of those are kept: at most `backups` (0: any
    number), none older than `days` (0: any age). `compress` packs them with gzip."""

    megabytes: int = 100
    days: int = 366
    backups: int = 100
    compress: bool = False


class AuditFile:
    """Writes events to a file, made with mode 0600 in directories with 0700. Raises OSError when it cannot be opened.

    Only the clean-up of old files has a thread; a line is written before `send` returns.
    """

    def __init__(self, path: Path, rotation: Rotation) -> None:
        self._path = path
        self._rotation = rotation
        self._limit = rotation.megabytes * _MEGABYTE
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._open()
        self._tidying: asyncio.Future[None] | None = None

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        self._size = os.fstat(self._file).st_size

    def send(self, events: Sequence[bytes]) -> bool:
        """Append events; False when that failed."""
        text = b"".join(b"%b\n" % event for event in events)
        try:
            if self._limit and self._size and self._size + len(text) > self._limit:
                self._rotate()
            _write_all(self._file, text)
        except OSError as error:
            log.error("audit events could not be written", extra={"events": len(events), "error": str(error)})
            return False
        self._size += len(text)
        return True

    async def close(self) -> None:
        if self._tidying is not None:
            await self._tidying
        os.close(self._file)

    def _rotate(self) -> None:
        os.close(self._file)
        now = datetime.now(UTC)
        stamp = f"{now:{_STAMP}}.{now.microsecond // 1000:03d}"
        os.replace(self._path, self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}"))
        self._open()
        if self._tidying is None or self._tidying.done():
            loop = asyncio.get_running_loop()
            self._tidying = loop.run_in_executor(None, tidy, self._path, self._rotation, now)


def tidy(path: Path, rotation: Rotation, now: datetime) -> None:
    """Remove the old files of a log that are too many or too old, and pack the others if that is wanted."""
    try:
        old = sorted(_old_files(path), reverse=True)
        kept = old[: rotation.backups] if rotation.backups else old
        if rotation.days:
            kept = [item for item in kept if now - item[0] <= timedelta(days=rotation.days)]
        for item in old:
            if item not in kept:
                item[1].unlink(missing_ok=True)
            elif rotation.compress and item[1].suffix != ".gz":
                _pack(item[1])
    except OSError as error:
        log.error("old audit logs could not be tidied", extra={"error": str(error)})


def _old_files(path: Path) -> list[tuple[datetime, Path]]:
    found = []
    for file in path.parent.iterdir():
        name = file.name.removesuffix(".gz")
        if not name.startswith(f"{path.stem}-") or not name.endswith(path.suffix):
            continue
        stamp = _STAMPED.search(name.removesuffix(path.suffix) if path.suffix else name)
        if stamp is not None:
            with contextlib.suppress(ValueError):
                found.append((datetime.strptime(f"{stamp[1]}+0000", f"{_STAMP}.%f%z"), file))
    return found


def _pack(file: Path) -> None:
    packed = file.with_name(f"{file.name}.gz")
    target = os.open(packed, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with file.open("rb") as source, os.fdopen(target, "wb") as raw, gzip.open(raw, "wb") as out:
        shutil.copyfileobj(source, out)
    file.unlink()


class AuditStdout:
    """Writes events to stdout."""

    def send(self, events: Sequence[bytes]) -> bool:
        try:
            sys.stdout.flush()
            _write_all(sys.stdout.fileno(), b"".join(b"%b\n" % event for event in events))
        except OSError as error:
            log.error("audit events could not be written", extra={"events": len(events), "error": str(error)})
            return False
        return True

    async def close(self) -> None:
        """Nothing is held."""


def _write_all(file: int, text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(file, rest) :]
