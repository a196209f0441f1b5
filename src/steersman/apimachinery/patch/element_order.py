"""The order of a list's items after a strategic merge: that of the patch first, then that of the stored list.

Source: apimachinery `util/strategicpatch/patch.go` (normalizeElementOrder, mergeSortedSlice, deduplicateScalars).
"""

from __future__ import annotations

from typing import Any


def same(a: Any, b: Any) -> bool:
    """Equality of JSON scalars as Go compares interfaces: 1 is neither true nor 1.0."""
    return type(a) is type(b) and bool(a == b)


def contains(items: list[Any], item: Any) -> bool:
    return any(same(other, item) for other in items)


def deduplicated(items: list[Any]) -> list[Any]:
    """Each scalar once; a repeated one gives its place to the last of the list."""
    out = list(items)
    first = 0
    while first < len(out) - 1:
        later = first + 1
        while later < len(out):
            if same(out[first], out[later]):
                out[later] = out[-1]
                out.pop()
            else:
                later += 1
        first += 1
    return out


def arrange(
    merged: list[Any], patched: list[Any], patch_order: list[Any], stored_order: list[Any], merge_key: str
) -> list[Any]:
    """Orders `merged`: items that are in `patched` by `patch_order`, the others by `stored_order`, interleaved.

    Items are known by their value under `merge_key`, or by themselves if it is "".
    """
    names = [_name(item, merge_key) for item in patched]
    mine = [item for item in merged if contains(names, _name(item, merge_key))]
    others = [item for item in merged if not contains(names, _name(item, merge_key))]
    mine.sort(key=_Rank(patch_order, merge_key))
    rank = _Rank(stored_order, merge_key)
    others.sort(key=rank)
    return _interleaved(others, mine, rank)


class _Rank:
    """The place of an item in a list; -1 for one that is not there."""

    def __init__(self, order: list[Any], merge_key: str) -> None:
        self.names = [_name(item, merge_key) for item in order]
        self.merge_key = merge_key

    def __call__(self, item: Any) -> int:
        name = _name(item, self.merge_key)
        return next((place for place, other in enumerate(self.names) if same(other, name)), -1)


def _name(item: Any, merge_key: str) -> Any:
    return item.get(merge_key) if merge_key and isinstance(item, dict) else item


def _interleaved(left: list[Any], right: list[Any], rank: _Rank) -> list[Any]:
    """Both lists in their own order; an item of `left` stands before the next of `right` only if it did before."""
    out: list[Any] = []
    i = j = 0
    while i < len(left) and j < len(right):
        before, after = rank(left[i]), rank(right[j])
        if 0 <= before < after:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out + left[i:] + right[j:]
