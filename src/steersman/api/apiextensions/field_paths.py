"""Simple paths into a schema: `.spec.color`, `.metadata['a.b']`.

Source: apiextensions `pkg/apiserver/schema/cel/validation.go` (ValidFieldPath).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+", re.DOTALL)


def resolve_field_path(
    path: str, schema: Mapping[str, Any], *, arrays: bool = True
) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """The fields that a path names, and the schema at its end.

    `arrays` allows `['key']`. Raises ValueError with upstream's reason when the path leads nowhere.
    """
    parts = iter(_TOKEN.findall(path))
    fields: list[str] = []
    node: Any = schema
    for part in parts:
        if part == "[":
            if not arrays:
                raise ValueError("array notation is not allowed")
            key = _quoted_key(_next(parts))
            node = _step(node, key)
            closing = _next(parts)
            if closing != "]":
                raise ValueError(f"expected ] but got {closing}")
        elif part == ".":
            key = _next(parts)
            node = _step(node, key)
        else:
            raise ValueError(f"expected [ or . but got: {part}")
        fields.append(key)
    return tuple(fields), node


def _next(parts: Any) -> str:
    part = next(parts, None)
    if part is None:
        raise ValueError("unexpected end of JSON path")
    return str(part)


def _quoted_key(part: str) -> str:
    if len(part) < 2 or part[0] != "'" or part[-1] != "'":
        raise ValueError(f"expected single quoted string but got {part}")
    return re.sub(r"\\(.)", r"\1", part[1:-1])


def _step(node: Any, key: str) -> Any:
    properties = node.get("properties") if isinstance(node, Mapping) else None
    if properties:
        if key not in properties:
            raise ValueError("does not refer to a valid field")
        return properties[key]
    additional = node.get("additionalProperties") if isinstance(node, Mapping) else None
    if additional is None:
        raise ValueError("does not refer to a valid field")
    return additional
