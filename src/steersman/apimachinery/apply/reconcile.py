"""Field sets that were recorded under an older schema, brought to the present one.

A map, struct or list that has become atomic is owned whole by those who owned something in it. What has become
granular stays as it was recorded.

Source: structured-merge-diff `typed/reconcile_schema.go`.
"""

from __future__ import annotations

from typing import Any

import orjson

from steersman.apimachinery.apply.fieldset import FieldSet, Node, canonical, from_paths
from steersman.apimachinery.apply.path import SELF
from steersman.apimachinery.apply.typed import DEDUCED, UNTYPED, UNTYPED_ATOMIC, Atom, ListAtom, MapAtom, TypeView

_MAX_REMEMBERED = 4096


def reconcile(view: TypeView, fields: Node) -> Node:
    """The set that `fields` (a canonical fieldsV1 tree) has become; `fields` itself if it still fits."""
    text = orjson.dumps(fields)
    known = view.reconciled.get(text)
    if known is None:
        if len(view.reconciled) >= _MAX_REMEMBERED:
            view.reconciled.clear()
        known = view.reconciled[text] = _reconcile(view, fields)
    return fields if known is _FITS else known


_FITS: Node = {"fits": None}


def _reconcile(view: TypeView, fields: Node) -> Node:
    walker = _Walker()
    walker.visit(view.root, fields, atomic=False)
    if not walker.whole:
        return _FITS
    whole = from_paths(walker.whole)
    return FieldSet(canonical(fields)).recursive_difference(whole).union(whole).tree


def _has_untyped_items(atom: MapAtom) -> bool:
    """Maps of values without a declared type are left alone; upstream takes int-or-string and formats for such, too."""
    items = atom.items
    if items is None or atom.fields or items is UNTYPED_ATOMIC:
        return False
    return items is DEDUCED or items.scalar == UNTYPED


class _Walker:
    __slots__ = ("path", "whole")

    def __init__(self) -> None:
        self.path: list[str] = []
        self.whole: list[tuple[str, ...]] = []

    def visit(self, atom: Atom, node: Node, atomic: bool) -> None:
        """`atomic`: the set has this element as a leaf, as it would have one that is owned whole."""
        if atom.map is not None:
            self.map(atom.map, node, atomic)
        elif atom.scalar is None and atom.list is not None:
            self.list(atom.list, node, atomic)

    def map(self, atom: MapAtom, node: Node, atomic: bool) -> None:
        if _has_untyped_items(atom):
            return
        if atom.atomic and not atomic:
            if node:
                self.whole.append(tuple(self.path))
            return
        for element, child in node.items():
            if element == SELF:
                continue
            below = atom.child(element[2:]) if element[0] == "f" else atom.items
            if below is not None:
                self.descend(below, element, child)

    def list(self, atom: ListAtom, node: Node, atomic: bool) -> None:
        if atom.atomic and not atomic:
            self.whole.append(tuple(self.path))
            return
        for element, child in node.items():
            if element != SELF:
                self.descend(atom.items, element, child)

    def descend(self, atom: Atom, element: str, node: Any) -> None:
        self.path.append(element)
        self.visit(atom, node, atomic=not node)
        self.path.pop()
