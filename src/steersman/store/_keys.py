"""The keys that exist, in byte order, with the revisions of each: all a store keeps in memory per key."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice

Ref = tuple[int, int]
"""(mod_revision, create_revision) of a key; (0, 0) of one that does not exist."""

ABSENT: Ref = (0, 0)

Change = tuple[int, bytes, int, int]
"""(revision, key, create_revision, previous_revision) of one write."""

_BLOCK = 1024


class KeyIndex:
    """key -> Ref, ordered. Setting and removing cost O(log n) plus a move within one block of keys."""

    def __init__(self, refs: Mapping[bytes, Ref] | None = None) -> None:
        self._refs: dict[bytes, Ref] = dict(refs or {})
        keys = sorted(self._refs)
        half = _BLOCK // 2
        self._blocks: list[list[bytes]] = [keys[i : i + half] for i in range(0, len(keys), half)] or [[]]
        self._firsts: list[bytes] = [block[0] if block else b"" for block in self._blocks]

    def copy(self) -> KeyIndex:
        """Another index of the same keys."""
        return KeyIndex(self._refs)

    def __len__(self) -> int:
        return len(self._refs)

    def get(self, key: bytes) -> Ref:
        return self._refs.get(key, ABSENT)

    def set(self, key: bytes, ref: Ref) -> None:
        if key not in self._refs:
            self._insert(key)
        self._refs[key] = ref

    def remove(self, key: bytes) -> None:
        """Forget a key that is there."""
        del self._refs[key]
        at = self._block_of(key)
        block = self._blocks[at]
        del block[bisect_left(block, key)]
        if block:
            self._firsts[at] = block[0]
        elif len(self._blocks) > 1:
            del self._blocks[at], self._firsts[at]

    def apply(self, key: bytes, ref: Ref, *, deleted: bool) -> None:
        """Take one write in."""
        if not deleted:
            self.set(key, ref)
        elif key in self._refs:
            self.remove(key)

    def keys(self, start: bytes, end: bytes) -> Iterator[bytes]:
        """The keys in [start, end), in order; the index must not change meanwhile."""
        for at in range(self._block_of(start), len(self._blocks)):
            block = self._blocks[at]
            if block and block[0] >= end:
                return
            yield from islice(block, bisect_left(block, start), bisect_left(block, end))

    def count(self, start: bytes, end: bytes) -> int:
        """How many keys are in [start, end)."""
        if start >= end:
            return 0
        first, last = self._block_of(start), self._block_of(end)
        inner = sum(map(len, self._blocks[first:last]))
        return inner - bisect_left(self._blocks[first], start) + bisect_left(self._blocks[last], end)

    def view(self, start: bytes, end: bytes, undone: Mapping[bytes, Ref], limit: int) -> tuple[list[bytes], int]:
        """The first `limit` (0: all) keys of [start, end) as they were before some writes, and the count of all.

        `undone` has what the keys of [start, end) that were written since were then (see `undo`).
        """
        if not undone:
            return list(islice(self.keys(start, end), limit or None)), self.count(start, end)
        gone = sorted(key for key, ref in undone.items() if ref is not ABSENT and key not in self._refs)
        born = {key for key, ref in undone.items() if ref is ABSENT and key in self._refs}
        kept = (key for key in self.keys(start, end) if key not in born)
        found = list(islice(merge(kept, gone), limit or None))
        return found, self.count(start, end) + len(gone) - len(born)

    def _insert(self, key: bytes) -> None:
        at = self._block_of(key)
        block = self._blocks[at]
        insort(block, key)
        if len(block) > _BLOCK:
            half = len(block) // 2
            self._blocks[at : at + 1] = [block[:half], block[half:]]
            self._firsts[at : at + 1] = [block[0], block[half]]
        else:
            self._firsts[at] = block[0]

    def _block_of(self, key: bytes) -> int:
        return max(bisect_right(self._firsts, key) - 1, 0)


def undo(changes: Iterable[Change]) -> dict[bytes, Ref]:
    """What the written keys were before the first of the writes, which come in the order of their revisions."""
    undone: dict[bytes, Ref] = {}
    for _, key, created, previous in changes:
        if key not in undone:
            undone[key] = (previous, created) if previous else ABSENT
    return undone
