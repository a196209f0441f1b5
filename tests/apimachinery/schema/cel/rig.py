"""Expressions over one object, compiled and evaluated."""

from __future__ import annotations

from functools import cache
from typing import Any

from steersman.apimachinery.schema.cel.errors import CompileError
from steersman.apimachinery.schema.cel.program import Checked, Variable, compile_expression, object_types
from steersman.apimachinery.schema.cel.schema_types import declare
from steersman.apimachinery.schema.structural import read_schema

TEXT = {"type": "string", "maxLength": 20}
WHOLE = {"type": "integer"}
FIELDS: dict[str, Any] = {
    "n": WHOLE,
    "zero": WHOLE,
    "d": {"type": "number"},
    "s": TEXT,
    "b": {"type": "boolean"},
    "gone": TEXT,
    "none": {"type": "string", "nullable": True},
    "at": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "took": {"type": "string", "format": "duration"},
    "raw": {"type": "string", "format": "byte"},
    "port": {"x-kubernetes-int-or-string": True},
    "l": {"type": "array", "maxItems": 10, "items": TEXT},
    "nums": {"type": "array", "maxItems": 10, "items": WHOLE},
    "set": {"type": "array", "maxItems": 10, "items": TEXT, "x-kubernetes-list-type": "set"},
    "keyed": {
        "type": "array",
        "maxItems": 10,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {"k": TEXT, "v": WHOLE}},
    },
    "m": {"type": "object", "maxProperties": 5, "additionalProperties": TEXT},
    "o": {"type": "object", "properties": {"x": WHOLE, "y": TEXT, "in": TEXT, "a-b": TEXT}},
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"x": WHOLE}},
}
OBJECT: dict[str, Any] = {
    "n": 7,
    "zero": 0,
    "d": 2.5,
    "s": "Gear",
    "b": True,
    "none": None,
    "at": "2024-02-29T13:14:15.678Z",
    "day": "2024-02-29",
    "took": "1h30m",
    "raw": "aGk=",
    "port": "25%",
    "l": ["a", "b", "a"],
    "nums": [3, 1, 2],
    "set": ["p", "q"],
    "keyed": [{"k": "one", "v": 1}, {"k": "two"}],
    "m": {"k1": "v1", "k2": "v2"},
    "o": {"x": 1, "in": "reserved", "a-b": "dash"},
    "open": {"x": 1, "other": {"deep": [1]}},
}
OTHER: dict[str, Any] = {
    "n": -9223372036854775808,
    "zero": 1,
    "d": -0.5,
    "s": "",
    "b": False,
    "gone": "here",
    "none": "some",
    "at": "1969-12-31T23:59:59.999999999-05:00",
    "day": "0001-01-01",
    "took": "-1.5s",
    "raw": "AA==",
    "port": 8080,
    "l": [],
    "nums": [9223372036854775807, -1],
    "set": [],
    "keyed": [{"k": "", "v": 0}],
    "m": {},
    "o": {"x": 0, "y": "y"},
    "open": {},
}


def declared(properties: dict[str, Any]) -> tuple[tuple[Variable, ...], dict[str, Any]]:
    decl = declare(read_schema({"type": "object", "properties": properties}))
    assert decl.type is not None
    variables = (Variable("self", decl.type, decl), Variable("oldSelf", decl.type, decl))
    return variables, object_types(decl)


@cache
def _fields() -> tuple[tuple[Variable, ...], dict[str, Any]]:
    return declared(FIELDS)


def compiled(source: str) -> Checked:
    variables, objects = _fields()
    return compile_expression(source, variables, objects)


def outcome(source: str, old: Any = None) -> Any:
    """The value of an expression on OBJECT; the text of an error."""
    result, _ = compiled(source).program().evaluate(OBJECT, old if old is not None else OBJECT)
    return f"error: {result}" if isinstance(result, Exception) else result


def compile_error(source: str) -> str:
    try:
        checked = compiled(source)
    except CompileError as error:
        return str(error)
    return f"compiles to {checked.type}"
