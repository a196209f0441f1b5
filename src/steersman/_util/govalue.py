"""JSON values as Go's fmt prints them: some of the API's messages quote whole values."""

from __future__ import annotations

from typing import Any

from steersman._util.dataclass import dataclass
from steersman._util.gotext import format_float, quote

_TYPES = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


@dataclass(frozen=True, slots=True)
class Foreign:
    """A value of a Go type that is none of JSON's, as %T, %v and %#v print it."""

    type: str
    text: str
    literal: str


def plain(value: Any) -> str:
    """A JSON value as %v prints it: `map[a:1 b:[x y]]`, `<nil>`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{plain(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(plain, value)) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, Foreign):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    return format_float(value) if isinstance(value, float) else str(value)


def literal(value: Any) -> str:
    """A JSON value as %#v prints it: `map[string]interface {}{"a":1}`."""
    if isinstance(value, dict):
        fields = ", ".join(f"{quote(name)}:{literal(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{fields}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(literal, value)) + "}"
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, Foreign):
        return value.literal
    return quote(value) if isinstance(value, str) else plain(value)


def type_name(value: Any) -> str:
    """The Go type of a decoded JSON value, as %T prints it."""
    return value.type if isinstance(value, Foreign) else _TYPES.get(type(value), "<nil>")
