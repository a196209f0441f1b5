"""Backup files: what a store holds at one revision, in a form that any kind of store can be restored from.

A file is a line that names the format, a line of JSON (the manifest), a record for each key, and an end that counts
them and has the SHA-256 of all before it. Values are as they lie in the store: what is encrypted there is here, too.
"""

from __future__ import annotations

import hashlib
import os
import struct
from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import orjson

from steersman._util import clock
from steersman._util.durable import open_beside, sync_directory
from steersman.store.interface import KeyValue, StoreError

FORMAT = 1
_NAME = b"steersman-backup "
_RECORD = struct.Struct(">IIQQ")
"""Lengths of key and value, create_revision and mod_revision; the end has a key of no bytes, and counts as its value.
"""
_DIGEST = 32
_BUFFER = 1 << 20


class BackupError(StoreError):
    """A backup cannot be written, read or trusted; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup is of: everything at `revision`; `root` is what an etcd has before the keys, `created` when it was
    made (RFC 3339)."""

    revision: int
    root: str = ""
    created: str = ""


class BackupWriter:
    """Writes a backup that appears at `path` whole and durable when the block ends well, and else not at all."""

    def __init__(self, path: str | os.PathLike[str], revision: int, root: str = "", *, force: bool = False) -> None:
        """Raises BackupError, also where there is a file already and `force` is not set."""
        self._path = Path(path)
        self._force = force
        self._sum = hashlib.sha256()
        self.keys = self.bytes = 0
        if self._path.is_dir():
            raise BackupError(f"{path} is a directory; name a file in it")
        if self._path.exists() and not force:
            raise BackupError(f"{path} exists; choose another file, or overwrite it with --force")
        try:
            descriptor, self._temporary = open_beside(self._path)
        except OSError as error:
            raise BackupError(f"cannot write to {path}: {error.strerror}") from None
        self._file = os.fdopen(descriptor, "wb", _BUFFER)
        created = clock.utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")
        manifest = orjson.dumps(asdict(Manifest(revision, root, created)))
        self._write(b"%s%d\n%s\n" % (_NAME, FORMAT, manifest))

    def add(self, item: KeyValue) -> None:
        """Write one key. Raises BackupError."""
        key, value = item.key, item.value
        self._write(_RECORD.pack(len(key), len(value), item.create_revision, item.mod_revision) + key + value)
        self.keys += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            self._file.close()
            Path(self._temporary).unlink(missing_ok=True)

    def _finish(self) -> None:
        self._write(_RECORD.pack(0, 0, self.keys, 0))
        try:
            self._file.write(self._sum.digest())
            self._file.flush()
            os.fsync(self._file.fileno())
            if self._force:
                os.replace(self._temporary, self._path)
            else:
                os.link(self._temporary, self._path)
            sync_directory(self._path.parent)
        except FileExistsError:
            raise BackupError(f"{self._path} exists; choose another file, or overwrite it with --force") from None
        except OSError as error:
            raise BackupError(f"cannot write to {self._path}: {error.strerror}") from None

    def _write(self, data: bytes) -> None:
        self._sum.update(data)
        self.bytes += len(data)
        try:
            self._file.write(data)
        except OSError as error:
            raise BackupError(f"cannot write to {self._path}: {error.strerror}") from None


class Backup:
    """A backup that has been read through once, and is what was written; a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises BackupError for a file that cannot be read, is no backup, or has changed since it was written."""
        self._path = path
        try:
            self._file: BinaryIO = open(path, "rb", _BUFFER)  # noqa: SIM115
        except OSError as error:
            raise BackupError(f"cannot read {path}: {error.strerror}") from None
        self._places: array[int] = array("Q")
        self._revisions: array[int] = array("Q")
        try:
            self.manifest = self._read_through()
        except BaseException:
            self._file.close()
            raise
        self.keys = len(self._places)
        self.distinct = len(set(self._revisions)) == self.keys
        """Whether no two keys were written at the same revision."""

    def items(self) -> Iterator[KeyValue]:
        """The keys in the order in which they were last written."""
        order = sorted(range(self.keys), key=self._revisions.__getitem__)
        for number in order:
            self._file.seek(self._places[number])
            key_length, length, created, modified = _RECORD.unpack(self._file.read(_RECORD.size))
            data = self._file.read(key_length + length)
            yield KeyValue(data[:key_length], data[key_length:], created, modified)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()

    def _read_through(self) -> Manifest:
        self._check_sum()
        self._file.seek(0)
        name = self._file.readline()
        if name != b"%s%d\n" % (_NAME, FORMAT):
            raise BackupError(f"{self._path} has another format than this version knows ({FORMAT})")
        manifest = _manifest(self._file.readline())
        place = self._file.tell()
        while True:
            key_length, length, count, modified = _RECORD.unpack(self._file.read(_RECORD.size))
            if not key_length:
                break
            self._places.append(place)
            self._revisions.append(modified)
            place += _RECORD.size + key_length + length
            self._file.seek(key_length + length, os.SEEK_CUR)
        if manifest is None or count != len(self._places):
            raise BackupError(f"{self._path} contradicts itself; restore another backup")
        return manifest

    def _check_sum(self) -> None:
        """Compare the sum before anything is made of what the file says."""
        if not self._file.read(len(_NAME)).startswith(_NAME):
            raise BackupError(f"{self._path} is not a backup")
        left = self._file.seek(0, os.SEEK_END) - _DIGEST
        self._file.seek(0)
        found = hashlib.sha256()
        while left > 0 and (data := self._file.read(min(left, _BUFFER))):
            found.update(data)
            left -= len(data)
        if self._file.read() != found.digest():
            raise BackupError(f"{self._path} is damaged or cut off (its checksum is another); restore another backup")


def _manifest(line: bytes) -> Manifest | None:
    try:
        found = orjson.loads(line)
        return Manifest(**{each.name: found[each.name] for each in fields(Manifest)})
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
