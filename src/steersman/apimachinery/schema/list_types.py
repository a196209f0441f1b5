"""Uniqueness in lists of `x-kubernetes-list-type` set and map.

Source: apiextensions `pkg/apiserver/schema/listtype/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.schema.structural import Node


def has_list_types(node: Node) -> bool:
    """Whether a list of type set or map stands anywhere in the schema."""
    if node.list_type in ("set", "map"):
        return True
    below = [*node.properties.values(), node.additional_schema, node.items]
    return any(child is not None and has_list_types(child) for child in below)


def has_unaddressable_items(node: Node) -> bool:
    """Whether a set or map stands anywhere in the schema that may have items without a key of their own."""
    items = node.items
    if node.list_type in ("set", "map") and items is not None:
        scalar = items.type in ("string", "integer", "number", "boolean")
        keys = [items.properties.get(key) for key in node.list_keys]
        if items.nullable or (node.list_type == "set" and not scalar):
            return True
        if any(key is None or key.nullable for key in keys):
            return True
    below = [*node.properties.values(), node.additional_schema, items]
    return any(child is not None and has_unaddressable_items(child) for child in below)


def check_list_types(node: Node, value: Any, path: str = "") -> list[FieldError]:
    """Duplicates in lists that must have none, the first repetition of each."""
    errors: list[FieldError] = []
    if isinstance(value, list):
        errors += list_errors(node, value, path)
        if node.items is not None:
            for index, item in enumerate(value):
                errors += check_list_types(node.items, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        if node.additional_schema is not None:
            for key, item in value.items():
                errors += check_list_types(node.additional_schema, item, f"{path}[{key}]")
        for key, item in value.items():
            child = node.properties.get(key)
            if child is not None:
                errors += check_list_types(child, item, fe.child(path, key))
    return errors


def list_errors(node: Node, value: list[Any], path: str) -> list[FieldError]:
    """What is wrong with the items of one list as members of its set or map."""
    if node.list_type == "set":
        return [fe.duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value)]
    if node.list_type != "map":
        return []
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            return [fe.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
    keys = [{key: item[key] for key in node.list_keys if key in item} if item else {} for item in value]
    return [fe.duplicate(f"{path}[{index}]", keys[index]) for index in _repeated(keys)]


def _repeated(items: list[Any]) -> Iterator[int]:
    """Indexes of items that repeat an earlier one, once for each repeated value."""
    seen: dict[Any, bool] = {}
    for index, item in enumerate(items):
        if isinstance(item, (dict, list)):
            identity: Any = orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
        else:
            identity = (type(item), item)
        if identity not in seen:
            seen[identity] = False
        elif not seen[identity]:
            seen[identity] = True
            yield index
