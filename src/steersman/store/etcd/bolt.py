"""Reading a bbolt file, which is what etcd's database and its snapshots are.

Source: bbolt `db.go`, `bucket.go`, `internal/common/{page,meta,bucket}.go`.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_MAGIC, _VERSION = 0xED0CDAED, 2
_PAGE = struct.Struct("<QHHI")  # id, flags, count, overflow
_META = struct.Struct(
    "<IIIIQQQQQQ"
)  # magic, version, page size, flags, root, sequence, freelist, pages, txid, checksum
_BRANCH = struct.Struct("<IIQ")  # position, key size, page
_LEAF = struct.Struct("<IIII")  # flags, position, key size, value size
_BUCKET = struct.Struct("<QQ")  # root page, sequence
_IS_BRANCH, _IS_LEAF, _IS_META = 0x01, 0x02, 0x04
_IS_BUCKET = 0x01
_SECTOR = 512
_SMALLEST_PAGE, _LARGEST_PAGE = 1024, 64 * 1024


class BoltError(ValueError):
    """The file is no bbolt database, or is damaged."""


class BoltFile:
    """A bbolt file, open for reading; nobody must write it meanwhile. `close` it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises OSError, BoltError."""
        with Path(path).open("rb") as file:
            if os.fstat(file.fileno()).st_size < 2 * _SMALLEST_PAGE:
                raise BoltError("it is too short")
            self._visited: set[int] = set()
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self._page_size, self._root = self._newest_meta()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._data.close()

    def check_sum(self) -> None:
        """Snapshots, unlike databases, end with a sum of what is before. Raises BoltError if it is another's.

        Source: etcd `etcdutl/snapshot/v3_snapshot.go`.
        """
        rest, size = divmod(len(self._data), _SECTOR)[1], hashlib.sha256().digest_size
        if rest == size and hashlib.sha256(self._data[:-size]).digest() != self._data[-size:]:
            raise BoltError("its content is not what it was when it was taken")

    def bucket(self, name: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The keys and values of a bucket at the top, in order. Raises BoltError, also while it is gone through."""
        self._visited.clear()
        for flags, key, value in self._elements(self._root):
            if key == name and flags & _IS_BUCKET:
                yield from self._inside(value)
                return
        raise BoltError(f"it has no bucket {name.decode(errors='replace')!r}")

    def _inside(self, value: bytes) -> Iterator[tuple[bytes, bytes]]:
        if len(value) < _BUCKET.size:
            raise BoltError("a bucket is cut off")
        root, _ = _BUCKET.unpack_from(value)
        found = self._elements(root) if root else self._of_page(value[_BUCKET.size :])
        for flags, key, inner in found:
            if not flags & _IS_BUCKET:
                yield key, inner

    def _newest_meta(self) -> tuple[int, int]:
        """The size of pages, and the page of the root, as the last whole transaction has left them."""
        candidates = [0, *(1 << power for power in range(10, 17))]
        best: tuple[int, int, int] | None = None
        for at in candidates:
            found = self._meta(at)
            if found is not None and (best is None or found[0] > best[0]):
                best = found
        if best is None:
            raise BoltError("it does not begin as one")
        return best[1], best[2]

    def _meta(self, at: int) -> tuple[int, int, int] | None:
        """The transaction, page size and root of a meta page; None where there is none."""
        body = at + _PAGE.size
        if body + _META.size > len(self._data) or not _PAGE.unpack_from(self._data, at)[1] & _IS_META:
            return None
        magic, version, size, _, root, _, _, _, transaction, checksum = _META.unpack_from(self._data, body)
        if magic != _MAGIC or version != _VERSION or not _SMALLEST_PAGE <= size <= _LARGEST_PAGE:
            return None
        if checksum != _fnv64a(self._data[body : body + _META.size - 8]):
            return None
        return transaction, size, root

    def _elements(self, page: int) -> Iterator[tuple[int, bytes, bytes]]:
        start = page * self._page_size
        if start + _PAGE.size > len(self._data):
            raise BoltError(f"page {page} is not there")
        if page in self._visited:
            raise BoltError(f"page {page} is in two places")
        self._visited.add(page)
        overflow = _PAGE.unpack_from(self._data, start)[3]
        end = min(start + (overflow + 1) * self._page_size, len(self._data))
        yield from self._of_page(self._data[start:end])

    def _of_page(self, page: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        """Flags, key and value of each element below a page."""
        try:
            _, flags, count, _ = _PAGE.unpack_from(page)
            if flags & _IS_BRANCH:
                for number in range(count):
                    _, _, child = _BRANCH.unpack_from(page, _PAGE.size + number * _BRANCH.size)
                    yield from self._elements(child)
                return
            if not flags & _IS_LEAF:
                raise BoltError("a page is of no kind that can be read")
            for number in range(count):
                at = _PAGE.size + number * _LEAF.size
                kind, position, key_size, value_size = _LEAF.unpack_from(page, at)
                start, middle = at + position, at + position + key_size
                if middle + value_size > len(page):
                    raise BoltError("an element is cut off")
                yield kind, page[start:middle], page[middle : middle + value_size]
        except struct.error:
            raise BoltError("a page is cut off") from None


def _fnv64a(data: bytes) -> int:
    found = 0xCBF29CE484222325
    for byte in data:
        found = ((found ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return found
