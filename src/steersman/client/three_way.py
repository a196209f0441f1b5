"""Three-way merge of objects: my change to what I read, on top of what is there now, by the schema's list types.

Source of the list and map types: structured-merge-diff and KEP-555 (`x-kubernetes-list-type`, `-list-map-keys`,
`-map-type`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from steersman.client.schemas import Shape

ABSENT: Final = object()
"""What a field that there is not holds."""

Path = tuple[str | int, ...]

_BOOKKEEPING = frozenset(
    {"resourceVersion", "generation", "managedFields", "creationTimestamp", "uid", "selfLink", "deletionTimestamp"}
)


@dataclass(frozen=True, slots=True)
class Overlap:
    """A field that both sides have changed, to different values; ABSENT where one has removed it."""

    path: Path
    base: Any
    mine: Any
    theirs: Any


class ThreeWay:
    """One merge; `overlaps` is what it could not decide."""

    def __init__(self) -> None:
        self.overlaps: list[Overlap] = []

    def objects(
        self, base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any], shape: Shape
    ) -> dict[str, Any]:
        """What is to be written: `theirs` with what differs between `base` and `mine`; the server's own fields of
        metadata are theirs."""
        merged: dict[str, Any] = self._maps(base, _kept(base, mine, theirs), theirs, shape, ())
        return merged

    def value(self, base: Any, mine: Any, theirs: Any, shape: Shape, path: Path) -> Any:
        """Of one field; ABSENT if it is to be removed."""
        if _same(mine, base) or _same(mine, theirs):
            return theirs
        if _same(theirs, base):
            return mine
        if _all(dict, base, mine, theirs) and not shape.is_atomic:
            return self._maps(_or(base, {}), mine, theirs, shape, path)
        if _all(list, base, mine, theirs):
            keys = shape.list_keys
            if keys and (lists := _keyed_all(keys, shape, _or(base, []), mine, theirs)) is not None:
                return self._keyed(lists, shape, path)
            if shape.is_set:
                return _sets(_or(base, []), mine, theirs)
        self.overlaps.append(Overlap(path, base, mine, theirs))
        return theirs

    def _maps(self, base: Any, mine: Any, theirs: Any, shape: Shape, path: Path) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key in [*theirs, *(key for key in mine if key not in theirs)]:
            sides = (base.get(key, ABSENT), mine.get(key, ABSENT), theirs.get(key, ABSENT))
            found = self.value(*sides, shape.field(key), (*path, key))
            if found is not ABSENT:
                merged[key] = found
        return merged

    def _keyed(self, lists: Sequence[Mapping[str, Any]], shape: Shape, path: Path) -> list[Any]:
        """Lists whose items have keys: item by item, in their order, then what is new of mine."""
        base, mine, theirs = lists
        merged: list[Any] = []
        item, places = shape.item, {key: index for index, key in enumerate(theirs)}
        for key in [*theirs, *(key for key in mine if key not in theirs)]:
            index = places.get(key, len(merged))
            sides = (base.get(key, ABSENT), mine.get(key, ABSENT), theirs.get(key, ABSENT))
            found = self.value(*sides, item, (*path, index))
            if found is not ABSENT:
                merged.append(found)
        return merged


def _kept(base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> Mapping[str, Any]:
    """`mine` with the base's bookkeeping: nobody but the server changes that."""
    metadata = {key: value for key, value in (mine.get("metadata") or {}).items() if key not in _BOOKKEEPING}
    old = base.get("metadata") or {}
    return {**mine, "metadata": {**metadata, **{key: old[key] for key in _BOOKKEEPING if key in old}}}


def _same(left: Any, right: Any) -> bool:
    if left is ABSENT or right is ABSENT:
        return left is right
    return (type(left) is type(right) and left == right) or (_is_number(left) and _is_number(right) and left == right)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _all(kind: type, base: Any, mine: Any, theirs: Any) -> bool:
    return isinstance(mine, kind) and isinstance(theirs, kind) and (base is ABSENT or isinstance(base, kind))


def _or(value: Any, other: Any) -> Any:
    return other if value is ABSENT else value


def _keyed_all(keys: Sequence[str], shape: Shape, *lists: Any) -> list[dict[str, Any]] | None:
    """The lists' items by their keys; None where two items have the same."""
    found = []
    for items in lists:
        by_key: dict[str, Any] = {}
        for item in items:
            if not isinstance(item, Mapping):
                return None
            by_key[_key_text([item.get(key, shape.item.field(key).default) for key in keys])] = item
        if len(by_key) != len(items):
            return None
        found.append(by_key)
    return found


def _sets(base: list[Any], mine: list[Any], theirs: list[Any]) -> list[Any]:
    """A list as a set: what I have taken out goes, what I have put in comes."""
    before, after = {_key_text(item) for item in base}, {_key_text(item) for item in mine}
    kept = [item for item in theirs if (text := _key_text(item)) in after or text not in before]
    present = {_key_text(item) for item in kept}
    return [*kept, *(item for item in mine if (text := _key_text(item)) not in before and text not in present)]


def _key_text(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
