"""OpenAPI v2 as protobuf: gnostic's `openapi.v2.Document`, the only form that client-go's discovery reads.

The parts of a document are encoded one by one, and put together as bytes. Values that may be anything (extensions,
examples, enum members) travel as YAML text, for which JSON is written.

Source: gnostic-models `openapiv2/OpenAPIv2.proto`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from steersman.apimachinery.codec import json as codec

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_SMALL = [bytes((value,)) for value in range(0x80)]
_Value = Mapping[str, Any]
_Encode = Callable[[Any], bytes]

_PATHS_ITEM = 2
_DOCUMENT_PATHS, _DOCUMENT_DEFINITIONS = 8, 9
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}
_QUERY_PARAMETER, _PATH_PARAMETER = 3, 4


def paths(items: _Value) -> bytes:
    """The entries of a Paths message; entries of several parts can be joined."""
    return _named(_PATHS_ITEM, items, _path_item)


def definitions(schemas: _Value) -> bytes:
    """The entries of a Definitions message; entries of several parts can be joined."""
    return _named(1, schemas, _schema)


def document(frame: _Value, path_entries: bytes, definition_entries: bytes) -> bytes:
    """The whole document; `frame` is what `v2.frame` gives."""
    info = _text(1, frame["info"]["title"]) + _text(2, frame["info"]["version"])
    parts = [
        _text(1, frame["swagger"]),
        _bytes(2, info),
        _bytes(_DOCUMENT_PATHS, path_entries),
        _bytes(_DOCUMENT_DEFINITIONS, definition_entries),
        _bytes(10, _named(1, frame["parameters"], _parameter)),
    ]
    for requirement in frame["security"]:
        entries = (_text(1, name) + _bytes(2, _texts(1, scopes)) for name, scopes in requirement.items())
        parts.append(_bytes(12, b"".join(_bytes(1, entry) for entry in entries)))
    parts.append(_bytes(13, _named(1, frame["securityDefinitions"], _api_key)))
    return b"".join(parts)


def _api_key(value: _Value) -> bytes:
    fields = enumerate(("type", "name", "in", "description"), 1)
    return _bytes(2, b"".join(_text(number, value[name]) for number, name in fields))


def _path_item(value: _Value) -> bytes:
    operations = (_bytes(number, _operation(value[name])) for name, number in _METHODS.items() if name in value)
    return b"".join(operations) + _parameters(9, value.get("parameters", ()))


def _operation(value: _Value) -> bytes:
    responses = _named(1, value["responses"], lambda response: _bytes(1, _response(response)))
    return b"".join(
        (
            _texts(1, value.get("tags", ())),
            _text(3, value.get("description", "")),
            _text(5, value.get("operationId", "")),
            _texts(6, value.get("produces", ())),
            _texts(7, value.get("consumes", ())),
            _parameters(8, value.get("parameters", ())),
            _bytes(9, responses),
            _texts(10, value.get("schemes", ())),
            _extensions(13, value),
        )
    )


def _response(value: _Value) -> bytes:
    schema = _bytes(2, _bytes(1, _schema(value["schema"]))) if "schema" in value else b""
    return _text(1, value["description"]) + schema


def _parameters(number: int, values: Iterable[_Value]) -> bytes:
    return b"".join(
        _bytes(number, _bytes(2, _text(1, value["$ref"])) if "$ref" in value else _bytes(1, _parameter(value)))
        for value in values
    )


def _parameter(value: _Value) -> bytes:
    description, name, place = (value.get(key, "") for key in ("description", "name", "in"))
    required = bool(value.get("required"))
    if place == "body":
        fields = _text(1, description) + _text(2, name) + _text(3, place) + _flag(4, required)
        return _bytes(1, fields + _bytes(5, _schema(value["schema"])))
    is_path = place == "path"
    fields = _flag(1, required) + _text(2, place) + _text(3, description) + _text(4, name)
    fields += _text(5 if is_path else 6, value["type"])
    fields += _flag(19 if is_path else 20, bool(value.get("uniqueItems")))
    return _bytes(2, _bytes(_PATH_PARAMETER if is_path else _QUERY_PARAMETER, fields))


def _schema(value: _Value) -> bytes:
    parts = []
    for name, item in value.items():
        field = _SCHEMA_FIELDS.get(name)
        if field is not None:
            number, encode = field
            parts.append(encode(number, item))
    return b"".join(parts) + _extensions(31, value)


def _additional(number: int, value: Any) -> bytes:
    if isinstance(value, bool):
        return _bytes(number, _key(2, _VARINT) + (b"\x01" if value else b"\x00"))
    return _bytes(number, _bytes(1, _schema(value)))


def _type(number: int, value: Any) -> bytes:
    return _bytes(number, _texts(1, [value] if isinstance(value, str) else value))


def _items(number: int, value: Any) -> bytes:
    return _bytes(number, _bytes(1, _schema(value)))


def _properties(number: int, value: _Value) -> bytes:
    return _bytes(number, _named(1, value, _schema))


def _external_docs(number: int, value: _Value) -> bytes:
    return _bytes(number, _text(1, value.get("description", "")) + _text(2, value.get("url", "")))


def _enum(number: int, value: Iterable[Any]) -> bytes:
    return b"".join(_any(number, item) for item in value)


def _any(number: int, value: Any) -> bytes:
    return _bytes(number, _bytes(2, codec.encode(value)))


def _extensions(number: int, value: _Value) -> bytes:
    found = {name: item for name, item in value.items() if name.startswith("x-")}
    return _named(number, found, lambda item: _bytes(2, codec.encode(item)))


def _named(number: int, values: _Value, encode: _Encode) -> bytes:
    """A map as gnostic has it: a message with a name and a value for each entry."""
    return b"".join(_bytes(number, _text(1, name) + _bytes(2, encode(values[name]))) for name in sorted(values))


def _varint(value: int) -> bytes:
    if 0 <= value <= 0x7F:
        return _SMALL[value]
    out = bytearray()
    value &= 0xFFFF_FFFF_FFFF_FFFF
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@cache
def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _bytes(number: int, content: bytes) -> bytes:
    return b"%b%b%b" % (_key(number, _BYTES), _varint(len(content)), content)


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode()) if value else b""


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_bytes(number, value.encode()) for value in values)


def _flag(number: int, value: bool) -> bytes:
    return _key(number, _VARINT) + b"\x01" if value else b""


def _integer(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + _varint(int(value)) if value else b""


def _double(number: int, value: float) -> bytes:
    return _key(number, _FIXED64) + struct.pack("<d", value) if value else b""


_SCHEMA_FIELDS: dict[str, tuple[int, Callable[[int, Any], bytes]]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _flag),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _flag),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _flag),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _texts),
    "enum": (20, _enum),
    "additionalProperties": (21, _additional),
    "type": (22, _type),
    "items": (23, _items),
    "properties": (25, _properties),
    "externalDocs": (29, _external_docs),
    "example": (30, _any),
}
