"""`fieldPath` of rules: simple paths into a schema, `.spec.color` or `.metadata['a.b']`.

Source: apiextensions `pkg/apiserver/schema/cel/validation.go` (ValidFieldPath).
"""

from __future__ import annotations

import re

from steersman.apimachinery.schema.structural import Node

_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_CHARACTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def relative_path(path: str, schema: Node) -> str:
    """A field path as errors append it to the path of the data; "" when it leads nowhere."""
    out, at = "", 0
    node: Node | None = schema
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or node is None:
            return ""
        name = step[1] if step[1] is not None else _ESCAPE.sub(_character, step[2])
        if node.properties:
            out += f".{name}" if out else name
            node = node.properties.get(name)
        else:
            out += f"[{name}]"
            node = node.additional_schema
        if node is None:
            return ""
        at = step.end()
    return out


def _character(match: re.Match[str]) -> str:
    return _CHARACTERS.get(match[1], match[1])
