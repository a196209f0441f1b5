"""Data of a schema as values: fields, maps and lists that convert what is read from them.

Source: apiserver `pkg/cel/common/valuesunstructured.go`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from steersman._util.govalue import type_name
from steersman.apimachinery.schema.cel import times
from steersman.apimachinery.schema.cel.errors import CelError, no_such_overload
from steersman.apimachinery.schema.cel.escaping import escape, unescape
from steersman.apimachinery.schema.cel.operators import COPIED, Concatenation, equal
from steersman.apimachinery.schema.cel.schema_types import Decl
from steersman.apimachinery.schema.cel.values import (
    MISSING,
    ListLike,
    MapLike,
    Opaque,
    find,
    is_list,
    is_map,
    items_of,
    show,
)
from steersman.apimachinery.schema.correlation import deep_equal


def convert(decl: Decl, raw: Any) -> Any:
    """Data as a value. Raises CelError where it does not fit its schema."""
    if raw is None:
        if decl.nullable:
            return None
        raise CelError("invalid data, got null for schema with nullable=false")
    return _CONVERTERS[decl.kind](decl, raw)


def read_field(decl: Decl, raw: Any, name: str) -> Any:
    """A field's value, from what stands in the data (MISSING: nothing); an absent field is an error."""
    if raw is MISSING or raw is None:
        raise CelError(f"no such key: {name}")
    return _CONVERTERS[decl.kind](decl, raw)


def read_entry(decl: Decl, raw: Any, key: str) -> Any:
    """A map's value, from what stands in the data."""
    if raw is MISSING:
        raise CelError(f"no such key: {key}")
    return convert(decl, raw)


def read_index(raw: list[Any], index: int) -> Any:
    """What stands in the data at an index of a list."""
    if 0 <= index < len(raw):
        return raw[index]
    raise CelError(f"index out of bounds: {index}")


def read_container(decl: Decl, raw: Any, name: str = "") -> Any:
    """The data of an object, map or list, known to be something else than it should be: an error."""
    if raw is MISSING or (raw is None and name):
        raise CelError(f"no such key: {name}")
    convert(decl, raw)
    raise no_such_overload()


class ObjectValue(MapLike):
    """An object with properties, or a map."""

    __slots__ = ("decl", "raw")

    def __init__(self, raw: dict[str, Any], decl: Decl) -> None:
        self.raw = raw
        self.decl = decl

    def __len__(self) -> int:
        return len(self.raw)

    def find(self, key: Any) -> Any:
        if key.__class__ is not str:
            raise no_such_overload()
        if not self.decl.raw_fields:
            element = self.decl.element
            raw = self.raw.get(key, MISSING)
            return raw if raw is MISSING or element is None else convert(element, raw)
        name = unescape(key)
        raw = self.raw.get(name, MISSING) if name is not None else MISSING
        decl = self.decl.child(name) if name is not None else None
        if raw is MISSING or raw is None or decl is None:
            return MISSING
        return convert(decl, raw)

    def keys(self) -> list[Any]:
        fields = self.decl.raw_fields
        if fields:
            return [escape(key) or key for key in self.raw if key in fields]
        return list(self.raw) if self.decl.element is not None else []

    def equals(self, other: Any) -> bool:
        if not is_map(other):
            raise no_such_overload()
        if len(self.raw) != len(other):
            return False
        for key, raw in self.raw.items():
            if self.decl.child(key) is None:
                if not isinstance(other, ObjectValue):
                    raise no_such_overload()
                if key in other.raw and not deep_equal(raw, other.raw[key]):
                    return False
                continue
            mine, theirs = self.find(key), find(other, key)
            if (mine is MISSING) != (theirs is MISSING) or (mine is not MISSING and not equal(mine, theirs)):
                return False
        return True


class ListValue(ListLike):
    """A list; of type set or map it compares without regard to order, and `+` merges."""

    __slots__ = ("_items", "decl", "raw")

    def __init__(self, raw: list[Any], decl: Decl) -> None:
        self.raw = raw
        self.decl = decl
        self._items: list[Any] | None = None

    def __len__(self) -> int:
        return len(self.raw)

    def items(self) -> list[Any]:
        if self._items is None:
            element = self.decl.element
            assert element is not None
            self._items = [convert(element, raw) for raw in self.raw]
        return self._items

    def contains(self, value: Any) -> bool:
        problem: CelError | None = None
        for item in self.items():
            try:
                if equal(item, value):
                    return True
            except CelError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return False

    def equals(self, other: Any) -> bool:
        if not is_list(other):
            raise no_such_overload()
        if len(self.raw) != len(other):
            return False
        kind = self.decl.node.list_type
        if kind == "map":
            return self._same_entries(other)
        if kind == "set":
            mine, theirs = set(map(_set_key, self.items())), set(map(_set_key, items_of(other)))
            return mine == theirs
        return all(map(equal, self.items(), items_of(other)))

    def plus(self, other: Any) -> Any:
        if not is_list(other):
            raise no_such_overload()
        kind = self.decl.node.list_type
        added = items_of(other)
        if kind not in ("set", "map"):
            return self.items() + added if len(self.raw) + len(added) <= COPIED else Concatenation(self, other)
        if kind == "set":
            members: dict[Any, Any] = {}
            for item in self.items() + added:
                members.setdefault(_set_key(item), item)
            return MergedList(list(members.values()), self.decl)
        return MergedList(list({self._key(item): item for item in self.items() + added}.values()), self.decl)

    def _key(self, item: Any) -> Any:
        """What identifies an item of a map-type list."""
        if not is_map(item):
            raise CelError("unexpected data format for element of array with x-kubernetes-list-type=map")
        values = [find(item, escape(name) or name) for name in self.decl.node.list_keys]
        return tuple(map(_set_key, values))

    def _same_entries(self, other: Any) -> bool:
        mine = {self._key(item): item for item in self.items()}
        seen = set()
        for item in items_of(other):
            key = self._key(item)
            if key not in mine or not equal(mine[key], item):
                return False
            seen.add(key)
        return len(seen) == len(mine)


class MergedList(ListValue):
    """What `+` makes of lists of type set or map: a list that compares as they do."""

    __slots__ = ()

    def __init__(self, items: list[Any], decl: Decl) -> None:
        super().__init__(items, decl)
        self._items = items


class Preserved(Opaque):
    """Data that expressions cannot look into; they can compare it."""

    __slots__ = ("raw",)

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def equals(self, other: Any) -> bool:
        return deep_equal(self.raw, other.raw if isinstance(other, (Preserved, ObjectValue, ListValue)) else other)


def _set_key(value: Any) -> Any:
    if isinstance(value, (dict, list, ListLike, MapLike)):
        raise no_such_overload()
    return value.__class__, value


def _expect(wanted: type, words: str) -> Callable[[Decl, Any], Any]:
    def check(decl: Decl, raw: Any) -> Any:
        if raw.__class__ is not wanted:
            raise CelError(f"invalid data, expected {words}, got {type_name(raw)}")
        return raw

    return check


def _object(decl: Decl, raw: Any) -> Any:
    if raw.__class__ is not dict:
        raise CelError("invalid data, expected a map for the provided schema with type=object")
    return ObjectValue(raw, decl)


def _list(decl: Decl, raw: Any) -> Any:
    if raw.__class__ is not list:
        raise CelError("invalid data, expected an array for the provided schema with type=array")
    return ListValue(raw, decl)


def _double(decl: Decl, raw: Any) -> Any:
    if raw.__class__ is int:
        return float(raw)
    if raw.__class__ is not float:
        raise CelError(f"invalid data, expected float, got {type_name(raw)}")
    return raw


def _int_or_string(decl: Decl, raw: Any) -> Any:
    if raw.__class__ is str or raw.__class__ is int:
        return raw
    raise CelError("invalid data, expected XIntOrString value to be either a string or integer")


_string = _expect(str, "string")


def _bytes(decl: Decl, raw: Any) -> Any:
    text = _string(decl, raw)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise CelError(f"Invalid byte formatted string {text}: illegal base64 data") from None


def _duration(decl: Decl, raw: Any) -> Any:
    text = _string(decl, raw)
    value = times.parse_schema_duration(text)
    if value is None:
        raise CelError(f"Invalid duration {text}: unable to parse duration")
    return value


def _date(decl: Decl, raw: Any) -> Any:
    text = _string(decl, raw)
    value = times.parse_date(text)
    if value is None:
        raise CelError(f"Invalid date formatted string {text}")
    return value


def _date_time(decl: Decl, raw: Any) -> Any:
    text = _string(decl, raw)
    value = times.parse_schema_timestamp(text)
    if value is None:
        problem = times.schema_timestamp_problem(text)
        raise CelError(f"Invalid date-time formatted string {text}{': ' * bool(problem)}{problem}")
    return value


def _unknown(decl: Decl, raw: Any) -> Any:
    if decl.node.preserve or decl.node.type in ("object", "array"):
        return Preserved(raw)
    raise CelError(
        "invalid type, expected object, array, number, integer, boolean or string, or no type with "
        "x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got " + show(decl.node.type)
    )


_CONVERTERS: dict[str, Callable[[Decl, Any], Any]] = {
    "object": _object,
    "map": _object,
    "list": _list,
    "int": _expect(int, "int"),
    "double": _double,
    "bool": _expect(bool, "bool"),
    "string": _string,
    "bytes": _bytes,
    "duration": _duration,
    "date": _date,
    "date-time": _date_time,
    "dyn": _int_or_string,
    "unknown": _unknown,
}
