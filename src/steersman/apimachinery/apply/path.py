"""Path elements: how one step into an object is written in `fieldsV1`.

A path element is the text that fieldsV1 uses as a key, in its canonical form, so that equal elements are equal
strings: `f:name` a field, `k:{"name":"x"}` the item of a list with those key fields, `v:"x"` the item of a set,
`i:0` an index. A path is a sequence of them.

Source: structured-merge-diff `fieldpath/element.go` (order), `fieldpath/serialize-pe.go` (text), `value/value.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import orjson

from steersman._util.gotext import format_float, format_json_float, quote

SELF = "."
"""The fieldsV1 key which says that the element itself, not only something below it, belongs to the set."""

_ESCAPES = {code: f"\\u{code:04x}" for code in (*range(0x20), 0x2028, 0x2029, *map(ord, "<>&"))}
_JSON_TEXT = {**_ESCAPES, 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", ord('"'): '\\"', ord("\\"): "\\\\"}


class PathError(ValueError):
    """A text that is no path element, or a list item that cannot be addressed."""


@lru_cache(maxsize=4096)
def _string(text: str) -> str:
    return '"' + text.translate(_JSON_TEXT) + '"'


def encode_value(value: Any) -> str:
    """A JSON value as text in the form that fieldsV1 keys carry (sorted keys, HTML characters escaped)."""
    if type(value) is str:
        return _string(value)
    if value is True:
        return "true"
    if value is False:
        return "false"
    if value is None:
        return "null"
    if type(value) is int:
        return str(value)
    if type(value) is float:
        return format_json_float(value, padded=True)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_string(k)}:{encode_value(value[k])}" for k in sorted(value)) + "}"
    return "[" + ",".join(map(encode_value, value)) + "]"


def field(name: str) -> str:
    """The element for the field or map key `name`."""
    return "f:" + name


def key(fields: Iterable[tuple[str, Any]]) -> str:
    """The element for the list item whose key fields have these values; sorted by name here."""
    return "k:{" + ",".join(f"{_string(name)}:{encode_value(value)}" for name, value in sorted(fields, key=_name)) + "}"


def value(item: Any) -> str:
    """The element for the set item `item`."""
    return "v:" + encode_value(item)


def index(position: int) -> str:
    """The element for the list item at `position`."""
    return f"i:{position}"


def _name(pair: tuple[str, Any]) -> str:
    return pair[0]


def parse(text: str) -> str | None:
    """The canonical form of a path element; None if its kind is unknown, to be skipped as upstream does.

    Raises PathError when the text cannot be a path element.
    """
    if len(text.encode()) < 2:
        raise PathError("key must be 2 characters long:")
    if text[1:2] != ":":
        raise PathError(f"missing colon: {text}")
    kind = text[0]
    if kind == "f":
        return text
    if kind == "v":
        return value(_loads(text[2:]))
    if kind == "k":
        fields = _loads(text[2:])
        if not isinstance(fields, dict):
            raise PathError(f"expected an object: {text}")
        return key(fields.items())
    if kind == "i":
        return index(_position(text[2:]))
    return None


def _loads(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as err:
        raise PathError(str(err)) from err


def _position(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise PathError(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    return int(text)


def sort_key(element: str) -> tuple[Any, ...]:
    """Orders elements as upstream does: fields, keys, values, indexes; `.` before all."""
    kind = element[0]
    if kind == "f":
        return (1, element)
    if kind == SELF:
        return (0,)
    return _sort_key(element)


@lru_cache(maxsize=4096)
def _sort_key(element: str) -> tuple[Any, ...]:
    kind, rest = element[0], element[2:]
    if kind == "k":
        fields = orjson.loads(rest)
        return (2, tuple((name, value_order(fields[name])) for name in sorted(fields)))
    if kind == "v":
        return (3, value_order(orjson.loads(rest)))
    return (4, int(rest))


def value_order(value: Any) -> tuple[Any, ...]:
    """A total order of JSON values: numbers, strings, booleans, lists, maps, null."""
    if value is None:
        return (5,)
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, list):
        return (3, tuple(map(value_order, value)))
    return (4, tuple((name, value_order(value[name])) for name in sorted(value)))


def describe(path: Sequence[str]) -> str:
    """A path as messages show it: `.spec.ports[name="http"].port`, `.metadata.finalizers[="a"]`, `.x[0]`."""
    return "".join(map(_describe, path))


def _describe(element: str) -> str:
    kind, rest = element[0], element[2:]
    if kind == "f":
        return "." + rest
    if kind == "k":
        fields = orjson.loads(rest)
        return "[" + ",".join(f"{name}={describe_value(fields[name])}" for name in sorted(fields)) + "]"
    if kind == "v":
        return f"[={describe_value(orjson.loads(rest))}]"
    return f"[{rest}]"


def describe_value(value: Any) -> str:
    """A value as structured-merge-diff prints it: quoted strings, `key=value` pairs run together."""
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, list):
        return "[" + ",".join(map(describe_value, value)) + "]"
    if isinstance(value, dict):
        return "".join(f"{name}={describe_value(item)}" for name, item in value.items())
    return str(value)
