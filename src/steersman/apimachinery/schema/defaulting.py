"""Default values, filled in place.

Source: apiextensions `pkg/apiserver/schema/defaulting/algorithm.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.apimachinery.schema.structural import Node

Filler = Callable[[Any], None]


def copy_json(value: Any) -> Any:
    """A copy of a JSON value that shares no container with it."""
    if type(value) is dict:
        return {key: copy_json(item) for key, item in value.items()}
    if type(value) is list:
        return [copy_json(item) for item in value]
    return value


def make_filler(node: Node) -> Filler | None:
    """A function that fills the defaults of `node` and below into a value; None when there are none.

    A field is filled when it is absent, or null where the schema is not nullable. A default is filled before what
    is in it, so that a default object gets its fields' defaults too.
    """
    defaults = [(key, child.default, child.nullable) for key, child in node.properties.items() if _has(child)]
    below = {key: filler for key, child in node.properties.items() if (filler := make_filler(child)) is not None}
    additional = node.additional_schema
    fill_values = _value_filler(additional) if additional is not None else None
    fill_items = _value_filler(node.items) if node.items is not None else None
    if not (defaults or below or fill_values or fill_items):
        return None
    known = frozenset(node.properties)

    def fill(value: Any) -> None:
        if type(value) is dict:
            for key, default, nullable in defaults:
                if key not in value or (value[key] is None and not nullable):
                    value[key] = copy_json(default)
            for key, filler in below.items():
                if key in value:
                    filler(value[key])
            if fill_values is not None:
                for key in value:
                    if key not in known:
                        fill_values(value, key)
        elif type(value) is list and fill_items is not None:
            for index in range(len(value)):
                fill_items(value, index)

    return fill


def _has(node: Node) -> bool:
    return node.default is not None


def _value_filler(node: Node) -> Callable[[Any, Any], None] | None:
    """Fills one member of a map or list: the default for a null, then what is below."""
    filler = make_filler(node)
    replaces = _has(node) and not node.nullable
    if filler is None and not replaces:
        return None
    default = node.default

    def fill(container: Any, key: Any) -> None:
        if replaces and container[key] is None:
            container[key] = copy_json(default)
        if filler is not None:
            filler(container[key])

    return fill
