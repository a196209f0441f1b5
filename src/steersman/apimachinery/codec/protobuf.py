"""Bodies in protobuf: `application/vnd.kubernetes.protobuf`, decoded into the form that JSON has.

A body is four bytes of magic and a `runtime.Unknown`: the object's apiVersion and kind, and its bytes. Fields that a
schema does not know are skipped. Source: apimachinery `pkg/runtime/serializer/protobuf`.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any

from steersman._util.dataclass import dataclass

MAGIC = b"k8s\x00"
MAX_DEPTH = 100
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTEGERS = frozenset({"int32", "int64"})
_ZERO: dict[str, Any] = {"string": "", "bytes": "", "int32": 0, "int64": 0, "bool": False, "double": 0}


class ProtobufError(ValueError):
    """The body is no protobuf, or not of this kind."""


class UnknownKindError(ProtobufError):
    """The body is well formed, but no message is known for the kind that it names."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The envelope of an object."""

    api_version: str
    kind: str
    raw: bytes


@dataclass()
class Schema:
    """`messages` by name, each as `[form, {field number: [name in JSON, type]}]`; `kinds` by `group/version/Kind`.

    A type is a scalar, a message's name, or one of them after `repeated ` or `map `. A field without a name is a
    message whose fields stand in its parent's place. `form` says how a message looks in JSON: "" is an object.
    """

    messages: Mapping[str, tuple[str, Mapping[str, tuple[str, str]]]]
    kinds: Mapping[str, str]
    _fields: dict[str, dict[int, tuple[str, str]]] = field(default_factory=dict)

    def fields(self, message: str) -> dict[int, tuple[str, str]]:
        found = self._fields.get(message)
        if found is None:
            found = {int(number): (name, kind) for number, (name, kind) in self.messages[message][1].items()}
            self._fields[message] = found
        return found


def envelope(body: bytes) -> Unknown:
    """The envelope of a body. Raises ProtobufError."""
    if not body:
        raise ProtobufError("empty data")
    if body == MAGIC:
        raise ProtobufError("empty body")
    if not body.startswith(MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    api_version, kind, raw = "", "", b""
    for number, value in _records(body[len(MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            names = {inner: _text(name) for inner, name in _records(value) if isinstance(name, bytes)}
            api_version, kind = names.get(1, ""), names.get(2, "")
        elif number == 2 and isinstance(value, bytes):
            raw = value
    return Unknown(api_version, kind, raw)


def decode(unknown: Unknown, schema: Schema) -> dict[str, Any]:
    """The object in an envelope, as JSON would give it. Raises ProtobufError; UnknownKindError for its kind."""
    group, _, version = unknown.api_version.rpartition("/")
    message = schema.kinds.get(f"{group}/{version}/{unknown.kind}")
    if message is None:
        raise UnknownKindError(unknown.kind)
    found = _message(unknown.raw, message, schema, MAX_DEPTH)
    return {"apiVersion": unknown.api_version, "kind": unknown.kind, **found}


def _message(data: bytes, message: str, schema: Schema, depth: int) -> Any:
    if depth == 0:
        raise ProtobufError("exceeded max depth")
    form = schema.messages[message][0]
    if special := _SPECIAL.get(form):
        return special(dict(_records(data)))
    found: dict[str, Any] = {}
    fields = schema.fields(message)
    for number, value in _records(data):
        if number in fields:
            name, kind = fields[number]
            _add(found, name, kind, value, schema, depth - 1)
    if form == "list":
        return found.get("items", [])
    if form == "either":  # the message before what it may be instead
        return found.get("schema", next((value for name, value in found.items() if name != "schema"), None))
    return found


def _add(found: dict[str, Any], name: str, kind: str, value: int | bytes, schema: Schema, depth: int) -> None:
    """Take one field's value into `found`."""
    if kind.startswith("repeated "):
        items = found.setdefault(name, [])
        item_kind = kind[9:]
        if isinstance(value, bytes) and (item_kind in _INTEGERS or item_kind == "bool"):
            items += [_value(each, item_kind, schema, depth) for each in _packed(value)]
        else:
            items.append(_value(value, item_kind, schema, depth))
    elif kind.startswith("map "):
        if not isinstance(value, bytes):
            raise ProtobufError(f"proto: wrong wireType = {_VARINT} for field {name}")
        key, item = _entry(value, kind[4:], schema, depth)
        found.setdefault(name, {})[key] = item
    elif name:
        found[name] = _value(value, kind, schema, depth)
    elif isinstance(inner := _value(value, kind, schema, depth), dict):
        found.update(inner)


def _entry(data: bytes, kind: str, schema: Schema, depth: int) -> tuple[str, Any]:
    key, raw = "", None
    for number, value in _records(data):
        if number == 1 and isinstance(value, bytes):
            key = _text(value)
        elif number == 2:
            raw = value
    if raw is None:
        return key, _ZERO[kind] if kind in _ZERO else _message(b"", kind, schema, depth)
    return key, _value(raw, kind, schema, depth)


def _value(value: int | bytes, kind: str, schema: Schema, depth: int) -> Any:
    if isinstance(value, int):
        if kind == "bool":
            return value != 0
        if kind in _INTEGERS:
            return value - (1 << 64) if value >= 1 << 63 else value
    elif kind == "string":
        return _text(value)
    elif kind == "bytes":
        return base64.b64encode(value).decode("ascii")
    elif kind == "double" and len(value) == 8:
        number: float = struct.unpack("<d", value)[0]
        return int(number) if number.is_integer() else number
    elif kind not in _ZERO:
        return _message(value, kind, schema, depth)
    raise ProtobufError(f"proto: wrong wireType for a {kind}")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ProtobufError(f"string field contains invalid UTF-8: {error}") from None


def _records(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: their numbers, with an int for a varint and bytes for all else."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise ProtobufError(f"proto: illegal tag 0 (wire type {wire})")
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == _BYTES:
            size, position = _varint(data, position)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        if position + size > end:
            raise ProtobufError("unexpected EOF")
        yield number, data[position : position + size]
        position += size


def _packed(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        value, position = _varint(data, position)
        yield value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(data):
            raise ProtobufError("unexpected EOF")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
        if shift >= 64:
            raise ProtobufError("proto: integer overflow")


_Records = dict[int, int | bytes]


def _signed(value: int | bytes | None) -> int:
    number = value if isinstance(value, int) else 0
    return number - (1 << 64) if number >= 1 << 63 else number


def _moment(found: _Records) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=_signed(found.get(1)), microseconds=_signed(found.get(2)) // 1000)
    except OverflowError:
        raise ProtobufError("a time is out of range") from None


def _time(found: _Records) -> str | None:
    return f"{_moment(found).replace(tzinfo=None, microsecond=0).isoformat()}Z" if found else None


def _micro_time(found: _Records) -> str | None:
    moment = _moment(found).replace(tzinfo=None) if found else None
    return f"{moment.isoformat(timespec='microseconds')}Z" if moment else None


def _quantity(found: _Records) -> str:
    value = found.get(1, b"")
    return _text(value) if isinstance(value, bytes) else ""


def _json(found: _Records) -> Any:
    value = found.get(1, b"")
    if not isinstance(value, bytes) or not value:
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ProtobufError(str(error)) from None


def _int_or_string(found: _Records) -> int | str:
    value = found.get(3, b"")
    return _text(value) if found.get(1) == 1 and isinstance(value, bytes) else _signed(found.get(2))


_SPECIAL: dict[str, Callable[[_Records], Any]] = {
    "time": _time,
    "microtime": _micro_time,
    "text": _quantity,
    "json": _json,
    "intorstring": _int_or_string,
}
