"""Removal of fields that the schema does not know, and of nulls that it does not allow.

Source: apiextensions `pkg/apiserver/schema/pruning/algorithm.go`, `.../defaulting/prunenulls.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.apimachinery.schema.structural import Node

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
Clean = Callable[[Any], bool]


def prune(value: Any, node: Node | None, path: str, unknown: list[str], *, root: bool = False) -> None:
    """Delete unknown fields in place and append their paths to `unknown`.

    Under `x-kubernetes-preserve-unknown-fields` only what the schema lists is pruned inside. `root` marks a whole
    object, whose apiVersion, kind and metadata are implied.
    """
    if node is not None and node.preserve:
        _prune_listed(value, node, path, unknown, root=root)
    elif isinstance(value, dict):
        implied = META_FIELDS if node is not None and (root or node.embedded) else ()
        for key in list(value):
            here = f"{path}.{key}" if path else key
            if key in implied:
                continue
            if node is not None and key in node.properties:
                prune(value[key], node.properties[key], here, unknown)
            elif node is not None and node.additional is not None:
                prune(value[key], node.additional_schema, here, unknown)
            else:
                unknown.append(here)
                del value[key]
    elif isinstance(value, list):
        items = node.items if node is not None else None
        for index, item in enumerate(value):
            prune(item, items, f"{path}[{index}]", unknown)


def _prune_listed(value: Any, node: Node, path: str, unknown: list[str], *, root: bool = False) -> None:
    if isinstance(value, dict):
        implied = META_FIELDS if root or node.embedded else ()
        for key in list(value):
            child = node.properties.get(key)
            if key in implied or (child is None and node.additional is None):
                continue
            here = f"{path}.{key}" if path else key
            prune(value[key], child or node.additional_schema, here, unknown)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            _prune_listed(item, node.items, f"{path}[{index}]", unknown)


def drop_nulls(value: Any, node: Node, *, root: bool = False) -> None:
    """Delete in place fields that are null where the schema has neither nullable nor a default."""
    if isinstance(value, dict):
        for key in list(value):
            child = node.child(key)
            if child is None or (root and key in META_FIELDS):
                continue
            if value[key] is None and not child.nullable and child.default is None:
                del value[key]
            else:
                drop_nulls(value[key], child)
    elif isinstance(value, list) and node.items is not None:
        for item in value:
            drop_nulls(item, node.items)


def clean_test(node: Node, *, root: bool = False) -> Clean:
    """A quick test that says True only of values in which there is nothing to prune and no null to drop."""
    if node.preserve:
        return _clean_preserved(node, root=root)
    allowed = frozenset(node.properties) | (META_FIELDS if root or node.embedded else frozenset())
    open_ended = node.additional is not None
    implied = META_FIELDS if root or node.embedded else frozenset()
    children = {key: clean_test(child) for key, child in node.properties.items()}
    rest = clean_test(node.additional_schema) if node.additional_schema is not None else _is_empty
    items = clean_test(node.items) if node.items is not None else _is_empty
    judged = implied if root else implied - node.properties.keys()

    def clean(value: Any) -> bool:
        if type(value) is dict:
            if not open_ended and not value.keys() <= allowed:
                return False
            for key, item in value.items():
                kind = type(item)
                if kind is dict or kind is list:
                    if key not in judged and not children.get(key, rest)(item):
                        return False
                elif item is None:
                    return False
            return True
        if type(value) is list:
            for item in value:
                kind = type(item)
                if (kind is dict or kind is list) and not items(item):
                    return False
        return True

    return clean


def _clean_preserved(node: Node, *, root: bool) -> Clean:
    implied = META_FIELDS if root or node.embedded else frozenset()
    children = {key: clean_test(child) for key, child in node.properties.items()}
    rest = clean_test(node.additional_schema) if node.additional_schema is not None else None
    if node.additional is True:
        rest = _is_empty
    nullable = not node.properties and node.additional is None
    judged = implied if root else implied - node.properties.keys()

    def clean(value: Any) -> bool:
        if type(value) is not dict:
            # what is under the items of a preserving list is the slow walk's business
            return type(value) is not list or node.items is None
        for key, item in value.items():
            test = children.get(key, rest)
            if item is None:
                if not nullable:
                    return False
            elif test is not None and key not in judged and not test(item):
                return False
        return True

    return clean


def _is_empty(value: Any) -> bool:
    """Nothing to prune where the schema knows nothing: only empty containers and scalars qualify."""
    return not isinstance(value, (dict, list)) or not value
