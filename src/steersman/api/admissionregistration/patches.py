"""What the expressions of mutations build: parts of objects (`Object.spec{...}`) and JSON patches (`JSONPatch{...}`).

Source: apiserver `pkg/cel/mutation/{typeresolver,jsonpatch}.go`, `pkg/cel/mutation/dynamic/objects.go`,
`pkg/admission/plugin/policy/mutating/patch/{json_patch,smd}.go`.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

from steersman._util.gotext import quote
from steersman._util.govalue import Foreign
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError
from steersman.apimachinery.schema.cel.library.standard import to_text
from steersman.apimachinery.schema.cel.messages import ANY_FIELD, Field, MessageType
from steersman.apimachinery.schema.cel.operators import equal
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import (
    MISSING,
    Duration,
    Opaque,
    Timestamp,
    Uint,
    go_type,
    is_list,
    is_map,
    items_of,
    pairs_of,
)

APPLY_CONFIGURATION: Final = t.object_type("Object")
JSON_PATCHES: Final = t.list_of(t.object_type("JSONPatch"))
PATCH_FUNCTIONS: Final = frozenset({"jsonpatch.escapeKey"})
_EXACT = 2**53 - 1
_INT64 = 2**63
_TEXT = Field(t.STRING, "string")
_NULL = Foreign("structpb.NullValue", "NULL_VALUE", "0")


class PatchError(Exception):
    """What an expression built is no patch; the message is upstream's."""


class ObjectPart(Opaque):
    """An object, or a part of one, with the fields that the expression gave it."""

    __slots__ = ("fields", "name")
    go_type = "*dynamic.ObjectVal"

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self.name = name
        self.fields = fields

    @property
    def cel_type(self) -> Type:  # type: ignore[override]
        return t.object_type(self.name)

    def equals(self, other: Any) -> bool:
        if not isinstance(other, ObjectPart) or self.name != other.name or self.fields.keys() != other.fields.keys():
            return False
        return all(equal(value, other.fields[key]) for key, value in self.fields.items())


class PatchOperation(Opaque):
    """One operation of a JSON patch; `value` is MISSING where there is none."""

    __slots__ = ("op", "path", "source", "value")
    cel_type = t.object_type("JSONPatch")
    go_type = "*mutation.JSONPatchVal"

    def __init__(self, fields: dict[str, Any]) -> None:
        self.op = _text(fields, "op")
        self.path = _text(fields, "path")
        self.source = _text(fields, "from")
        self.value = fields.get("value", MISSING)

    def find(self, key: Any) -> Any:
        return {"op": self.op, "path": self.path, "from": self.source, "value": self.value}.get(key, MISSING)

    def equals(self, other: Any) -> bool:
        if not isinstance(other, PatchOperation):
            return False
        if (self.op, self.path, self.source) != (other.op, other.path, other.source):
            return False
        if self.value is MISSING or other.value is MISSING:
            return self.value is other.value
        return equal(self.value, other.value)


def patch_type(name: str) -> MessageType | None:
    """The type that a name stands for in the expressions of mutations."""
    if name == "JSONPatch":
        return MessageType(PatchOperation.cel_type, _OPERATION, PatchOperation)
    if name == "Object" or name.startswith("Object."):
        return MessageType(t.object_type(name), None, lambda fields: ObjectPart(name, fields))
    return None


_OPERATION = {"op": _TEXT, "path": _TEXT, "from": _TEXT, "value": ANY_FIELD}


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name, "")
    if value.__class__ is not str:
        raise CelError(f"unexpected type {go_type(value)} for JSONPatchType '{name}' field")
    return str(value)


def apply_configuration(built: Any) -> dict[str, Any]:
    """What an expression built, as JSON. Raises PatchError."""
    if not isinstance(built, ObjectPart):
        raise PatchError(f"unsupported return type from ApplyConfiguration expression: {go_type(built)}")
    _check_names(built)
    return {key: _field(key, value) for key, value in built.fields.items()}


def json_patch(built: Any) -> list[dict[str, Any]]:
    """What an expression built, as the operations of a JSON patch. Raises PatchError."""
    if not is_list(built):
        raise PatchError("type mismatch: JSONPatchType.expression should evaluate to array")
    return list(map(_operation, items_of(built)))


def _operation(built: Any) -> dict[str, Any]:
    if not isinstance(built, PatchOperation):
        words = "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch"
        raise PatchError(f"{words}: cannot convert to native type: {go_type(built)}")
    out: dict[str, Any] = {"op": built.op, "path": built.path}
    if built.source:
        out["from"] = built.source
    if built.value is not MISSING:
        if isinstance(built.value, ObjectPart):
            _check_names(built.value)
        out["value"] = _json(built.value)
    return out


def _check_names(part: ObjectPart) -> None:
    """See that the types that an expression names are those of the fields where they stand."""
    if problems := _misnamed(part, [part.name]):
        raise PatchError("type mismatch: " + "\n".join(problems))


def _misnamed(value: Any, path: Sequence[str]) -> list[str]:
    problems: list[str] = []
    if isinstance(value, ObjectPart):
        expected = ".".join(path)
        if value.name != expected:
            words = "which matches field name path from root Object type"
            problems.append(f"unexpected type name {quote(value.name)}, expected {quote(expected)}, {words}")
        for key, item in value.fields.items():
            problems += _misnamed(item, [*path, key])
    elif value.__class__ is list:
        for item in value:
            problems += _misnamed(item, path)
    elif value.__class__ is dict:
        for item in value.values():
            problems += _misnamed(item, path)
    return problems


def _field(key: str, value: Any) -> Any:
    try:
        return _plain(value)
    except PatchError as error:
        raise PatchError(f"fail to convert field {quote(key)}: {error}") from None


def _plain(value: Any) -> Any:
    """A value as it stands in an object: integers stay what they are, and null fits no field."""
    if value is None:
        return _NULL
    if isinstance(value, ObjectPart):
        return {key: _field(key, item) for key, item in value.fields.items()}
    if is_list(value):
        return list(map(_plain, items_of(value)))
    if is_map(value):
        return {_key(key): _plain(item) for key, item in pairs_of(value)}
    return _scalar(value)


def _json(value: Any) -> Any:
    """A value as it stands in a JSON patch, where all numbers are double."""
    if isinstance(value, ObjectPart):
        return {key: _json(item) for key, item in value.fields.items()}
    if is_list(value):
        return list(map(_json, items_of(value)))
    if is_map(value):
        return {_key(key): _json(item) for key, item in pairs_of(value)}
    if value.__class__ in (int, Uint) and not -_EXACT <= value <= _EXACT:
        return str(int(value))
    if value.__class__ is float and value.is_integer() and -_INT64 <= value < _INT64:
        return int(value)
    return _scalar(value)


def _scalar(value: Any) -> Any:
    kind = value.__class__
    if value is None or kind in (bool, str, float):
        return value
    if kind in (int, Uint):
        return int(value)
    if kind is bytes:
        return base64.b64encode(value).decode()
    if kind in (Timestamp, Duration):
        return to_text(value)
    words = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
    raise PatchError(f"{words}: type conversion error from '{go_type(value)}'")


def _key(key: Any) -> str:
    if key.__class__ is not str:
        raise PatchError(f"map key {quote(str(key))} is of type {go_type(key)}, not string")
    return str(key)
