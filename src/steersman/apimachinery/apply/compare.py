"""What a write changed: the fields that it added, modified and removed.

Equal subtrees are passed over whole, so that the cost follows the size of the change.

Source: structured-merge-diff `typed/compare.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import orjson

from steersman._util.dataclass import dataclass
from steersman.apimachinery.apply.fieldset import EMPTY, FieldSet, Node, canonical, graft, in_order, insert
from steersman.apimachinery.apply.path import SELF
from steersman.apimachinery.apply.typed import Atom, ListAtom, MapAtom, TypeView

ABSENT: Final = object()
"""Stands for a value that is not there; null is a value."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Three disjoint sets of fields; all empty when the objects are equal."""

    added: FieldSet = EMPTY
    modified: FieldSet = EMPTY
    removed: FieldSet = EMPTY

    def without(self, fields: FieldSet) -> Comparison:
        """The same without these fields and all below them."""
        if not fields:
            return self
        return Comparison(
            self.added.recursive_difference(fields),
            self.modified.recursive_difference(fields),
            self.removed.recursive_difference(fields),
        )


SAME = Comparison()


def compare(view: TypeView, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """The fields in which `new` differs from `old`. Neither is changed.

    Raises PathError for an item, in what differs, that lacks a key of its list.
    """
    if old is new:
        return SAME
    walker = _Walker()
    walker.visit(view.root, old, new)
    return walker.result()


def equal(a: Any, b: Any) -> bool:
    """Whether two JSON values are the same: numbers by value, but true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(equal(v, b[k]) for k, v in a.items())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


class _Walker:
    __slots__ = ("added", "finished", "modified", "path", "removed")

    def __init__(self) -> None:
        self.added: Node = {}
        self.modified: Node = {}
        self.removed: Node = {}
        self.finished: set[int] = set()
        self.path: list[str] = []

    def result(self) -> Comparison:
        trees = (self.added, self.modified, self.removed)
        return Comparison(*(FieldSet(canonical(tree, self.finished)) if tree else EMPTY for tree in trees))

    def visit(self, atom: Atom, old: Any, new: Any) -> None:
        """Compares two values of one type; one of them may be ABSENT."""
        if new is ABSENT:
            self.put(self.removed, whole(atom, old))
        elif old is ABSENT:
            self.put(self.added, whole(atom, new))
        else:
            before, after = atom.select(old), atom.select(new)
            self.part(after, old, new)
            if before is not after:
                self.part(before, old, new)

    def put(self, tree: Node, node: Node) -> None:
        """Puts a node that is in canonical form where the walker is."""
        if found := graft(tree, self.path, node):
            self.finished.add(id(found))

    def part(self, part: Atom | ListAtom | MapAtom | None, old: Any, new: Any) -> None:
        """Compares two values as the selected kind of value."""
        if isinstance(part, MapAtom):
            before = old if isinstance(old, dict) else None
            after = new if isinstance(new, dict) else None
            if not part.atomic and (before or after):
                self.maps(part, before or {}, after or {})
                return
        elif isinstance(part, ListAtom):
            items_before = old if isinstance(old, list) else None
            items_after = new if isinstance(new, list) else None
            if not part.atomic and (items_before or items_after):
                self.lists(part, items_before or [], items_after or [])
                return
        if not (old is new or equal(old, new)):
            insert(self.modified, self.path)

    def maps(self, atom: MapAtom, old: dict[str, Any], new: dict[str, Any]) -> None:
        for name, value in new.items():
            before = old.get(name, ABSENT)
            if before is not value:
                self.child("f:" + name, atom.child(name), before, value)
        if len(old) != len(new) or old.keys() != new.keys():
            for name, value in old.items():
                if name not in new:
                    self.child("f:" + name, atom.child(name), value, ABSENT)

    def child(self, element: str, atom: Atom | None, old: Any, new: Any) -> None:
        if atom is None or (old is not ABSENT and new is not ABSENT and _same(atom, old, new)):
            return
        self.path.append(element)
        self.visit(atom, old, new)
        self.path.pop()

    def lists(self, atom: ListAtom, old: list[Any], new: list[Any]) -> None:
        before, after = _by_element(atom, old), _by_element(atom, new)
        for element, items in after.items():
            self.items(atom, element, before.get(element, ()), items)
        for element, items in before.items():
            if element not in after:
                self.items(atom, element, items, ())

    def items(self, atom: ListAtom, element: str, old: Iterable[Any], new: Iterable[Any]) -> None:
        """Compares what has one key in both lists; duplicates are one value, owned whole."""
        before, after = list(old), list(new)
        if len(before) <= 1 and len(after) <= 1:
            self.child(element, atom.items, before[0] if before else ABSENT, after[0] if after else ABSENT)
        elif len(before) >= 2 and len(after) >= 2:
            if not equal(before, after):
                insert(self.modified, [*self.path, element])
        elif len(before) >= 2:
            if after:
                self.child(element, atom.items, ABSENT, after[0])
            insert(self.removed, [*self.path, element])
        else:
            if before:
                self.child(element, atom.items, before[0], ABSENT)
            insert(self.added, [*self.path, element])


def whole(atom: Atom, value: Any) -> Node:
    """The node of a value that is there only once: it and all below it, in canonical form."""
    kind = type(value)
    if kind is dict:
        part = atom.select(value)
        if value and isinstance(part, MapAtom) and not part.atomic:
            return _whole_map(part, value)
    elif kind is list:
        part = atom.select(value)
        if value and isinstance(part, ListAtom) and not part.atomic:
            return _whole_list(part, value)
    return {}


def _whole_map(atom: MapAtom, value: dict[str, Any]) -> Node:
    node: Node = {SELF: {}}
    fields, items = atom.fields, atom.items
    for name in sorted(value):
        child = fields.get(name) or items
        if child is not None:
            item = value[name]
            node["f:" + name] = whole(child, item) if type(item) in (dict, list) else {}
    return node if len(node) > 1 else {}


def _whole_list(atom: ListAtom, value: list[Any]) -> Node:
    node: Node = {
        element: whole(atom.items, items[0]) if len(items) == 1 else {}
        for element, items in _by_element(atom, value).items()
    }
    return in_order({SELF: {}, **node}) if node else {}


def _same(atom: Atom, old: Any, new: Any) -> bool:
    """Quick and exact where it says yes: `==` takes true for 1, which only untyped fields can mix."""
    if atom.loose:
        return type(old) is type(new) and orjson.dumps(old) == orjson.dumps(new)
    return bool(old == new)


def _by_element(atom: ListAtom, items: list[Any]) -> dict[str, list[Any]]:
    """The items by their path element. Raises PathError for an item that lacks a key."""
    out: dict[str, list[Any]] = {}
    for item in items:
        out.setdefault(atom.element(item), []).append(item)
    return out
