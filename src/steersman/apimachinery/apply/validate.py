"""Whether an object has the shape that its schema declares, as server-side apply asks before it merges.

Source: structured-merge-diff `typed/validate.go`, `typed/helpers.go` (messages; values in them as Go prints them).
"""

from __future__ import annotations

from typing import Any

from steersman._util import govalue
from steersman.apimachinery.apply import path as paths
from steersman.apimachinery.apply.typed import BOOLEAN, NUMERIC, STRING, Atom, ListAtom, MapAtom, TypeView


def validate(view: TypeView, obj: dict[str, Any], *, allow_duplicates: bool = False) -> str:
    """What is wrong with the object, in upstream's words; "" if nothing is.

    `allow_duplicates`: two items of a list with one key are an error in what a client applies, not in what is stored.
    """
    if _fits(view.root, obj, allow_duplicates):
        return ""
    walker = _Walker(allow_duplicates)
    walker.visit(view.root, obj)
    errors = [f"{where}: {message}" if where else message for where, message in walker.errors]
    return errors[0] if len(errors) == 1 else "\n  ".join(["errors:", *errors]) if errors else ""


_TYPES = {NUMERIC: (int, float), STRING: (str,), BOOLEAN: (bool,)}
_ANY = (str, int, float, bool)


def _fits(atom: Atom, value: Any, allow_duplicates: bool) -> bool:
    """Quick, and right where it says yes; nearly all objects fit."""
    kind = type(value)
    if kind is dict:
        part = atom.map
        if part is None:
            return False
        fields, items = part.fields, part.items
        for name, each in value.items():
            child = fields.get(name) or items
            if child is None or not _fits(child, each, allow_duplicates):
                return False
        return True
    if kind is list:
        return atom.list is not None and _list_fits(atom.list, value, allow_duplicates)
    return value is None or (atom.scalar is not None and kind in _TYPES.get(atom.scalar, _ANY))


def _list_fits(atom: ListAtom, value: list[Any], allow_duplicates: bool) -> bool:
    if not atom.atomic:
        try:
            elements = [atom.element(item) for item in value]
        except paths.PathError:
            return False
        if not allow_duplicates and len({*elements}) < len(elements):
            return False
    return all(_fits(atom.items, item, allow_duplicates) for item in value)


class _Walker:
    __slots__ = ("allow_duplicates", "errors", "path")

    def __init__(self, allow_duplicates: bool) -> None:
        self.allow_duplicates = allow_duplicates
        self.path: list[str] = []
        self.errors: list[tuple[str, str]] = []

    def error(self, message: str) -> None:
        self.errors.append((paths.describe(self.path), message))

    def visit(self, atom: Atom, value: Any) -> None:
        part = atom.select(value)
        if value is None or part is None:
            return
        if isinstance(part, MapAtom):
            if isinstance(value, dict):
                self.map(part, value)
            else:
                self.error(f"expected map, got {_wrapped(value)}")
        elif isinstance(part, ListAtom):
            if isinstance(value, list):
                self.list(part, value)
            else:
                self.error(f"expected list, got {_wrapped(value)}")
        else:
            wrong = _wrong_scalar(part.scalar, value)
            if wrong:
                self.error(wrong)

    def map(self, atom: MapAtom, value: dict[str, Any]) -> None:
        for name in sorted(value):
            child = atom.child(name)
            self.path.append(paths.field(name))
            if child is None:
                self.error("field not declared in schema")
            else:
                self.visit(child, value[name])
            self.path.pop()
            if child is None:
                return

    def list(self, atom: ListAtom, value: list[Any]) -> None:
        seen = set()
        for position, item in enumerate(value):
            element = paths.index(position)
            if not atom.atomic:
                try:
                    element = atom.element(item)
                except paths.PathError as err:
                    self.error(f"element {position}: {err}")
                    return
                if element in seen and not self.allow_duplicates:
                    self.error(f"duplicate entries for key {paths.describe([element])}")
                seen.add(element)
            self.path.append(element)
            self.visit(atom.items, item)
            self.path.pop()


def _wrong_scalar(kind: str | None, value: Any) -> str:
    if kind == NUMERIC:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if fits else f"expected numeric (int or float), got {govalue.type_name(value)}"
    if kind == STRING:
        return (
            ""
            if isinstance(value, str)
            else f"expected string, got &value.valueUnstructured{{Value:{govalue.literal(value)}}}"
        )
    if kind == BOOLEAN:
        return "" if isinstance(value, bool) else f"expected boolean, got {_wrapped(value)}"
    return "" if not isinstance(value, dict | list) else f"expected any scalar, got {_wrapped(value)}"


def _wrapped(value: Any) -> str:
    return f"&{{{govalue.plain(value)}}}"
