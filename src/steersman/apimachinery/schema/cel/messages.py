"""The protobuf messages that expressions may build: those which stand for values of CEL.

Source: protobuf `wrappers.proto`, `struct.proto`, `any.proto`, `duration.proto`, `timestamp.proto`, `empty.proto`;
cel-go `common/types/pb`, `common/types/provider.go` (NewValue).
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError
from steersman.apimachinery.schema.cel.library.standard import to_text
from steersman.apimachinery.schema.cel.literals import INT_MAX, INT_MIN
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import (
    SECOND,
    Duration,
    Opaque,
    Timestamp,
    Uint,
    is_list,
    is_map,
    items_of,
    pairs_of,
    type_of,
)

EMPTY: Final = t.object_type("google.protobuf.Empty")
_ANY: Final = Type("dyn", "google.protobuf.Any")
_STRUCT: Final = t.map_of(t.STRING, t.DYN)
_LIST: Final = t.list_of(t.DYN)
_EXACT = 2**53 - 1


class Field(NamedTuple):
    """A field: its type for the checker, what upstream calls its type, and the bounds of an integer."""

    type: Type
    go_type: str = ""
    low: int = INT_MIN
    high: int = INT_MAX


class MessageType(NamedTuple):
    """A message: the type that it has as a value, its fields, and how the value is made of these.

    Without `fields` all names are fields, of any type.
    """

    type: Type
    fields: Mapping[str, Field] | None
    make: Callable[[dict[str, Any]], Any]

    def field(self, name: str) -> Field | None:
        return ANY_FIELD if self.fields is None else self.fields.get(name)


Constructs = Callable[[str], MessageType | None]
"""The message types of an environment, beside protobuf's own: `make` gets values as they are."""


ANY_FIELD: Final = Field(t.DYN)


class EmptyMessage(Opaque):
    """google.protobuf.Empty."""

    __slots__ = ()
    cel_type = EMPTY
    go_type = "*types.protoObj"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EmptyMessage)

    def __hash__(self) -> int:
        return 0


def build(name: str, values: dict[str, Any]) -> Any:
    """The value of a message with these fields. Raises CelError where one does not fit."""
    message = MESSAGES[name]
    native: dict[str, Any] = {}
    for key, value in values.items():
        try:
            native[key] = _native(message.field(key) or ANY_FIELD, value)
        except CelError as error:
            raise CelError(f"field type conversion error for {name}.{key} value type: {error}") from None
    return message.make(native)


def _native(field: Field, value: Any) -> Any:
    kind, found = field.type.kind, type_of(value)
    if kind == "map":
        return {_key(key): _json(item) for key, item in _pairs(value)}
    if kind == "list":
        if not is_list(value):
            raise CelError(f"type conversion error from '{found.name}' to 'list'")
        return list(map(_json, items_of(value)))
    if found.kind != kind:
        raise _unfit(found, field)
    if kind in ("int", "uint") and not field.low <= value <= field.high:
        raise CelError("integer overflow" if kind == "int" else "unsigned integer overflow")
    return _single(value) if field.go_type == "float32" else value


def _unfit(found: Type, field: Field) -> CelError:
    if found.kind == "null_type":
        return CelError(f"type conversion error from 'null_type' to '{field.go_type}'")
    if found.kind == "string":
        return CelError(f"unsupported native conversion from string to '{field.go_type}'")
    return CelError(f"unsupported type conversion from '{found.name}' to {field.go_type}")


def _single(value: float) -> float:
    """A double with the precision of a float."""
    try:
        (out,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return float(out)


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    if not is_map(value):
        raise CelError(f"type conversion error from '{type_of(value).name}' to 'map'")
    return pairs_of(value)


def _key(key: Any) -> str:
    return to_text(key)


def _json(value: Any) -> Any:
    """A value as JSON has it."""
    kind = value.__class__
    if value is None or kind in (bool, float, str):
        return value
    if kind in (int, Uint):
        return float(value) if -_EXACT <= value <= _EXACT else str(int(value))
    if kind is bytes:
        return base64.b64encode(value).decode()
    if kind in (Timestamp, Duration):
        return to_text(value)
    if is_list(value):
        return list(map(_json, items_of(value)))
    if kind is dict:
        return {_key(key): _json(item) for key, item in pairs_of(value)}
    words = "map(dyn, dyn)" if is_map(value) else type_of(value).name
    raise CelError(f"type conversion error from '{words}' to '*structpb.Value'")


def _wrapper(kind: Type, go_type: str, zero: Any, low: int = INT_MIN, high: int = INT_MAX) -> MessageType:
    fields = {"value": Field(kind, go_type, low, high)}
    return MessageType(t.nullable(kind), fields, lambda values: values.get("value", zero))


def _value(values: dict[str, Any]) -> Any:
    """The field that was set last counts."""
    name = next(reversed(values), "null_value")
    return None if name == "null_value" else values[name]


def _nanos(values: dict[str, Any]) -> int:
    return int(values.get("seconds", 0) * SECOND + values.get("nanos", 0))


def _any(values: dict[str, Any]) -> Any:
    shown = "  ".join(f'{name}:"{_shown(values[name])}"' for name in ("type_url", "value") if values.get(name))
    raise CelError(f"unsupported conversion to ref.Val: (*dynamicpb.Message){shown}")


def _shown(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if value.__class__ is bytes else str(value)


_TIME = {"seconds": Field(t.INT, "int64"), "nanos": Field(t.INT, "int32", -(2**31), 2**31 - 1)}
MESSAGES: Final[dict[str, MessageType]] = {
    "google.protobuf.BoolValue": _wrapper(t.BOOL, "bool", False),
    "google.protobuf.BytesValue": _wrapper(t.BYTES, "[]byte", b""),
    "google.protobuf.DoubleValue": _wrapper(t.DOUBLE, "float64", 0.0),
    "google.protobuf.FloatValue": _wrapper(t.DOUBLE, "float32", 0.0),
    "google.protobuf.Int32Value": _wrapper(t.INT, "int32", 0, -(2**31), 2**31 - 1),
    "google.protobuf.Int64Value": _wrapper(t.INT, "int64", 0),
    "google.protobuf.StringValue": _wrapper(t.STRING, "string", ""),
    "google.protobuf.UInt32Value": _wrapper(t.UINT, "uint32", Uint(0), 0, 2**32 - 1),
    "google.protobuf.UInt64Value": _wrapper(t.UINT, "uint64", Uint(0), 0, 2**64 - 1),
    "google.protobuf.Value": MessageType(
        t.DYN,
        {
            "null_value": Field(t.INT, "int32"),
            "number_value": Field(t.DOUBLE, "float64"),
            "string_value": Field(t.STRING, "string"),
            "bool_value": Field(t.BOOL, "bool"),
            "struct_value": Field(_STRUCT),
            "list_value": Field(_LIST),
        },
        _value,
    ),
    "google.protobuf.Struct": MessageType(_STRUCT, {"fields": Field(_STRUCT)}, lambda values: values.get("fields", {})),
    "google.protobuf.ListValue": MessageType(_LIST, {"values": Field(_LIST)}, lambda values: values.get("values", [])),
    "google.protobuf.Any": MessageType(
        _ANY, {"type_url": Field(t.STRING, "string"), "value": Field(t.BYTES, "[]byte")}, _any
    ),
    t.DURATION.name: MessageType(
        t.DURATION, _TIME, lambda values: Duration(max(INT_MIN, min(_nanos(values), INT_MAX)))
    ),
    t.TIMESTAMP.name: MessageType(t.TIMESTAMP, _TIME, lambda values: Timestamp(_nanos(values))),
    EMPTY.name: MessageType(EMPTY, {}, lambda values: EmptyMessage()),
}
"""By name."""
ENUMS: Final = {"google.protobuf.NullValue.NULL_VALUE": 0}
"""Constants that are integers."""
