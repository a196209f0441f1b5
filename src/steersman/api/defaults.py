"""Defaults of built-in kinds: a table of what each type of the API gets where a field is left out, and functions for
defaults that depend on other fields.

`tools/builtins/defaults.py` asks a kube-apiserver for the table.
Source: kubernetes `pkg/apis/**/v1/defaults.go` and `zz_generated.defaults.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from steersman.api import _data, gated_fields
from steersman.api.default_rules import RESOURCE_LIST, RULES
from steersman.apimachinery.go_types import OMIT_EMPTY, OMIT_NULL

Object = dict[str, Any]
Fill = Callable[[Any], Any]
_CORE = "api/core/v1."


class StructFiller:
    """Fills in values of one struct type, or of one map type that has a rule, and everything below them."""

    def __init__(self) -> None:
        self.own: list[tuple[str, Any, Any]] = []
        self.children: list[tuple[str, Fill]] = []
        self.rule: Callable[[Object], Object] | None = None

    def fill(self, value: Object) -> Object:
        """The value with its defaults; the same object when it lacks none. What is given is never changed."""
        out = value
        for name, default, blank in self.own:
            current = out.get(name)
            if current is None or (blank is not None and current == blank):
                if out is value:
                    out = dict(value)
                out[name] = default
        if self.rule is not None:
            out = self.rule(out)
        for name, fill in self.children:
            current = out.get(name)
            if current and (filled := fill(current)) is not current:
                if out is value:
                    out = dict(value)
                out[name] = filled
            elif current == {}:
                filled = fill(current)
                if filled:
                    if out is value:
                        out = dict(value)
                    out[name] = filled
        return out


def filler(type_name: str) -> Fill | None:
    """What fills in objects of a type; None for a type without defaults."""
    return _fillers().of(type_name)


def dropper(type_name: str) -> Fill | None:
    """What takes the fields that no gate lets in out of objects of a type; None for a type without such."""
    return _droppers().of(type_name)


@cache
def _fillers() -> _Walkers:
    return _Walkers(_data.load("defaults"), RULES)


@cache
def _droppers() -> _Walkers:
    return _Walkers({}, gated_fields.RULES)


class _Walkers:
    """Fillers of types, made when they are asked for, from a table of defaults and from rules."""

    def __init__(self, table: Mapping[str, Object], rules: Mapping[str, Callable[[Object], Object]]) -> None:
        self._table = table
        self._rules = rules
        self._types = _data.type_table().types
        self._wanted = _with_defaults(set(table) | set(rules))
        self._made: dict[str, StructFiller] = {}

    def of(self, name: str) -> Fill | None:
        if name not in self._wanted or not (isinstance(self._types[name], list) or name in self._rules):
            return None
        struct = self._made.get(name)
        if struct is None:
            struct = self._made[name] = StructFiller()  # known before it is complete, for a type may hold itself
            self._complete(struct, name)
        return struct.fill

    def _complete(self, struct: StructFiller, name: str) -> None:
        struct.rule = self._rules.get(name)
        if not isinstance(self._types[name], list):
            return
        fields = {field[0]: field for field in self._types[name]}
        struct.own = [(key, value, _blank(*fields[key][1:3])) for key, value in self._table.get(name, {}).items()]
        for key, _, expression, *_ in self._types[name]:
            if expression == RESOURCE_LIST and not name.startswith(_CORE):
                continue  # upstream's defaults of other groups leave these alone
            if (fill := self.of(_element(expression))) is not None:
                struct.children.append((key, _of_expression(expression, fill)))


def _blank(omission: int, expression: str) -> Any:
    """The value of a field that is never left out which means that it was; None: there is none."""
    return None if omission & (OMIT_EMPTY | OMIT_NULL) else _data.type_table().codec(expression).zero


def _with_defaults(found: set[str]) -> set[str]:
    """The types that have defaults, in themselves or in what they hold."""
    holders = _holders()
    pending = list(found)
    while pending:
        for holder in holders.get(pending.pop(), ()):
            if holder not in found:
                found.add(holder)
                pending.append(holder)
    return found


@cache
def _holders() -> Mapping[str, set[str]]:
    """Which structs have fields of a type, by its name."""
    holders: dict[str, set[str]] = {}
    for name, fields in _data.type_table().types.items():
        if isinstance(fields, list):
            for field in fields:
                holders.setdefault(_element(field[2]), set()).add(name)
    return holders


def _element(expression: str) -> str:
    """The type that pointers, lists and maps of it are about."""
    while expression.startswith(("*", "[]", "map[")):
        expression = expression.partition("]")[2] if expression[0] != "*" else expression[1:]
    return expression


def _of_expression(expression: str, fill: Fill) -> Fill:
    """What fills in values of a pointer, list or map of what `fill` is for."""
    if expression.startswith("[]"):
        return lambda items: _list(fill, items)
    if expression.startswith("map["):
        return lambda items: _map(fill, items)
    return fill


def _list(fill: Fill, items: list[Any]) -> list[Any]:
    filled = [fill(item) if isinstance(item, dict) else item for item in items]
    return items if all(new is old for new, old in zip(filled, items, strict=True)) else filled


def _map(fill: Fill, items: Object) -> Object:
    filled = {key: fill(item) for key, item in items.items()}
    return items if all(filled[key] is item for key, item in items.items()) else filled
