"""Values at paths of untyped objects, with errors as Go words them.

Source: apimachinery `pkg/apis/meta/v1/unstructured/helpers.go` (NestedInt64, NestedString).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman._util.gotext import format_float


class AccessError(ValueError):
    """A path leads to, or through, a value of another type."""


def nested_int(obj: Any, path: Sequence[str]) -> int | None:
    """The integer at a path of keys, None when there is none. Raises AccessError, also for null."""
    found: int | None = _nested(obj, path, int, "int64")
    return found


def nested_text(obj: Any, path: Sequence[str]) -> str | None:
    """The text at a path of keys, None when there is none. Raises AccessError, also for null."""
    found: str | None = _nested(obj, path, str, "string")
    return found


def _nested(obj: Any, path: Sequence[str], wanted: type, name: str) -> Any:
    value = obj
    for number, key in enumerate(path, 1):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(path[:number], value, "map[string]interface{}")
        if key not in value:
            return None
        value = value[key]
    if type(value) is not wanted:
        raise _wrong(path, value, name)
    return value


def _wrong(path: Sequence[str], value: Any, expected: str) -> AccessError:
    place = "." + ".".join(path)
    return AccessError(f"{place} accessor error: {go_text(value)} is of the type {go_type(value)}, expected {expected}")


def go_type(value: Any) -> str:
    """The type that a JSON value has in Go's untyped objects, as %T prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    for kind, name in ((str, "string"), (int, "int64"), (float, "float64"), (list, "[]interface {}")):
        if isinstance(value, kind):
            return name
    return "map[string]interface {}"


def go_text(value: Any) -> str:
    """A JSON value as Go's %v prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    return str(value)
