"""The operations on objects that server-side apply is made of: the fields of an object, merging two, removing fields.

None of them changes its arguments; results share with them all that stays as it was.

Source: structured-merge-diff `typed/tofieldset.go`, `typed/merge.go`, `typed/remove.go` and
`fieldpath/set.go` (EnsureNamedFieldsAreMembers).
"""

from __future__ import annotations

from collections import Counter, deque
from operator import is_
from typing import Any

from steersman.apimachinery.apply import path as paths
from steersman.apimachinery.apply.compare import ABSENT, equal
from steersman.apimachinery.apply.fieldset import FieldSet, Node, in_order
from steersman.apimachinery.apply.path import SELF
from steersman.apimachinery.apply.typed import Atom, ListAtom, MapAtom, TypeView

_UNADDRESSED = paths.index(-1)
"""An item that has lost its keys: upstream's empty path element. The list has a member then, though no known one."""


def fields_of(view: TypeView, obj: dict[str, Any]) -> FieldSet:
    """The fields that an object sets: leaves, empty maps, items of lists and keys of maps; not structs with fields."""
    return FieldSet(_fields(view.root, obj) or {})


def _fields(atom: Atom, value: Any) -> Node | None:
    """What a value sets: {} for a leaf, None for nothing."""
    part = atom.select(value)
    if isinstance(part, MapAtom) and not part.atomic:
        return _fields_of_map(part, value) if isinstance(value, dict) else None
    if isinstance(part, ListAtom) and not part.atomic:
        return _fields_of_list(part, value) if isinstance(value, list) else None
    return {}


def _fields_of_map(atom: MapAtom, value: dict[str, Any]) -> Node | None:
    out: Node = {}
    for name, item in value.items():
        child = atom.child(name)
        node = None if child is None else _fields(child, item)
        if item is None or item == {} or name not in atom.fields:
            node = _member(node)
        if node is not None:
            out[paths.field(name)] = node
    return in_order(out) if out else None


def _fields_of_list(atom: ListAtom, value: list[Any]) -> Node | None:
    elements = [_element(atom, item) for item in value]
    times = Counter(elements)
    out: Node = {}
    for element, item in zip(elements, value, strict=True):
        if element is None:
            out[_UNADDRESSED] = {}
        else:
            out[element] = _member(_fields(atom.items, item) if times[element] == 1 else None)
    return in_order(out) if out else None


def _member(node: Node | None) -> Node:
    """The node of something that is in the set itself, with what is below it."""
    return in_order({SELF: {}, **node}) if node else {}


def _element(atom: ListAtom, item: Any) -> str | None:
    try:
        return atom.element(item)
    except paths.PathError:
        return None


def merge(view: TypeView, live: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """`live` with all that `config` sets; granular maps and lists are merged by key, the rest is replaced."""
    merged = _merge(view.root, live, config)
    return merged if isinstance(merged, dict) else {}


def _merge(atom: Atom, left: Any, right: Any) -> Any:
    if right is ABSENT or left is right:
        return left
    if left is ABSENT:
        return right
    part = atom.select(right)
    if isinstance(part, MapAtom) and not part.atomic:
        before, after = left if isinstance(left, dict) else {}, right if isinstance(right, dict) else {}
        if before or after:
            return _merge_maps(part, before, after)
    elif isinstance(part, ListAtom) and not part.atomic:
        items_before, items_after = left if isinstance(left, list) else [], right if isinstance(right, list) else []
        if items_before or items_after:
            merged = _merge_lists(part, items_before, items_after)
            same = len(merged) == len(items_before) and all(map(is_, merged, items_before))
            return left if same and isinstance(left, list) else merged
    return _unless_same(left, right)


def _unless_same(left: Any, right: Any) -> Any:
    """`left` itself where nothing changes, so that who compares passes over it."""
    return left if type(left) is type(right) and equal(left, right) else right


def _merge_maps(atom: MapAtom, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] | None = None
    for name, value in right.items():
        child = atom.child(name)
        before = left.get(name, ABSENT)
        merged = _unless_same(before, value) if child is None else _merge(child, before, value)
        if merged is not before:
            out = dict(left) if out is None else out
            out[name] = merged
    return left if out is None else out


def _merge_lists(atom: ListAtom, left: list[Any], right: list[Any]) -> list[Any]:
    """Items of both, each once: those of `right` in its order, those only in `left` where they stood before."""
    left_keys, right_keys = [_element(atom, item) for item in left], [_element(atom, item) for item in right]
    by_left = dict(zip(left_keys, left, strict=True))
    by_left |= dict.fromkeys((key for key, times in Counter(left_keys).items() if times > 1), None)
    by_right = dict(zip(right_keys, right, strict=True))
    shared = deque(key for key in right_keys if key in by_left)
    out: list[Any] = []
    merged: set[str | None] = set()

    def take(key: str | None) -> None:
        merged.add(key)
        out.append(_merge(atom.items, by_left.get(key, ABSENT), by_right[key]))
        if shared and shared[0] == key:
            shared.popleft()

    i = j = 0
    while i < len(left) or j < len(right):
        if i < len(left) and j < len(right):
            key = left_keys[i]
            if key == right_keys[j]:
                take(key)
                i, j = i + 1, j + 1
                continue
            if key in by_right and shared and shared[0] != key:
                i += 1
                continue
        if i < len(left):
            key = left_keys[i]
            if key not in by_right:
                out.append(left[i])
                i += 1
                continue
            if key in merged:
                i += 1
        if j < len(right):
            take(right_keys[j])
            j += 1
    return out


def remove(view: TypeView, obj: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    """The object without these fields. A map or list that loses its last item becomes null."""
    if not fields:
        return obj
    left = _remove(view.root, obj, fields.tree)
    return left if isinstance(left, dict) else {}


def _remove(atom: Atom, value: Any, node: Node) -> Any:
    part = atom.select(value)
    if isinstance(part, MapAtom):
        if part.atomic or not isinstance(value, dict):
            return None
        kept = {}
        for name, item in value.items():
            below = node.get(paths.field(name))
            if below is None:
                kept[name] = item
            elif below and SELF not in below:
                child = part.child(name)
                kept[name] = item if child is None else _remove(child, item, below)
        return kept or None
    if isinstance(part, ListAtom):
        return None if part.atomic or not isinstance(value, list) else _remove_items(part, value, node) or None
    return value


def _remove_items(atom: ListAtom, value: list[Any], node: Node) -> list[Any]:
    kept = []
    for item in value:
        element = _element(atom, item)
        below = None if element is None else node.get(element)
        if below is None:
            kept.append(item)
        elif below and SELF not in below:
            kept.append(_remove(atom.items, item, below))
    return kept


def has_bare_items(node: Node) -> bool:
    """Whether an item of a list by key is owned, but nothing in it: pruning takes all from it, and so the item."""
    return any((not below and element[0] == "k") or has_bare_items(below) for element, below in node.items())


def with_named_parents(view: TypeView, fields: FieldSet) -> FieldSet:
    """The set and the declared fields of structs on the way to its members."""
    return FieldSet(_with_parents(view.root, fields.tree))


_NOTHING = Atom()


def _with_parents(atom: Atom, node: Node) -> Node:
    out: Node = {}
    for element, below in node.items():
        if element == SELF or not below:
            out[element] = below
            continue
        named = atom.map is not None and element[0] == "f" and element[2:] in atom.map.fields
        inner = _with_parents(_below(atom, element), below)
        out[element] = {SELF: {}, **inner} if named and SELF not in inner else inner
    return out


def _below(atom: Atom, element: str) -> Atom:
    if element[0] == "f" and atom.map is not None:
        return atom.map.child(element[2:]) or _NOTHING
    if element[0] == "k" and atom.list is not None:
        return atom.list.items
    return _NOTHING
