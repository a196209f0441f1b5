"""Defaults in a schema must satisfy the schema, hold no unknown field, and make valid metadata.

Source: apiextensions `pkg/apiserver/schema/defaulting/{validation,surroundingobject}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError, aggregate
from steersman.apimachinery.schema.check import Checker
from steersman.apimachinery.schema.correlation import deep_equal
from steersman.apimachinery.schema.defaulting import copy_json
from steersman.apimachinery.schema.embedded import SchemaDecodeError, check_embedded, coerce
from steersman.apimachinery.schema.pipeline import has_rules
from steersman.apimachinery.schema.pruning import META_FIELDS, prune
from steersman.apimachinery.schema.structural import Node, read_schema

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a schema stands: `steps` lead from the whole object (the root or an embedded resource) to it."""

    whole: Node
    steps: tuple[str | None, ...] = ()
    in_meta: bool = False

    def around(self, value: Any) -> dict[str, Any]:
        """A whole object that holds the value at this place."""
        for step in reversed(self.steps):
            value = [value] if step is None else {step: value}
        obj: dict[str, Any] = value
        obj.setdefault("kind", "Validation")
        obj.setdefault("apiVersion", "validation/v1")
        return obj


def default_errors(schema: Schema, path: str, *, require_pruned: bool = True) -> list[FieldError]:
    """What is wrong with the defaults of a structural root schema; `require_pruned` forbids unknown fields in them.

    Defaults must be complete by themselves: those nested in a default's schema do not fill it.
    """
    root = read_schema(schema, literal=True)
    root.embedded = True
    return _walk(root, path, _Place(root), require_pruned)


def has_unpruned_defaults(schema: Schema) -> bool:
    """Whether a default holds a field that the schema does not know."""
    unknown = "must not have unknown fields"
    return any(error.detail == unknown for error in default_errors(schema, "", require_pruned=True))


def _walk(node: Node, path: str, place: _Place, require_pruned: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if node.embedded:
        place = _Place(node)
    if node.default is not None:
        judge = _judge_in_meta if place.in_meta else _judge
        errors += judge(node, f"{path}.default", place, require_pruned)
    if node.items is not None:
        below = replace(place, steps=(*place.steps, None))
        errors += _walk(node.items, f"{path}.items", below, require_pruned)
    for name, child in node.properties.items():
        in_meta = place.in_meta or (node.embedded and name in META_FIELDS)
        below = replace(place, steps=(*place.steps, name), in_meta=in_meta)
        errors += _walk(child, f"{path}.properties[{name}]", below, require_pruned)
    return errors


def _judge(node: Node, path: str, place: _Place, require_pruned: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    value = copy_json(node.default)
    if require_pruned:
        pruned = copy_json(node.default)
        prune(pruned, node, "", [], root=node.embedded)
        if not deep_equal(pruned, node.default):
            # upstream quotes the value after the metadata in it was brought into form
            errors.append(fe.invalid(path, value, "must not have unknown fields"))
    try:
        coerce(value, node, path, [], lenient=False)
    except SchemaDecodeError as error:
        return [*errors, error.error]
    found = check_embedded(value, node, path) or list(Checker(path).check(node, value).errors.values())
    return errors + (found or _rule_errors(node, value, path, place))


def _judge_in_meta(node: Node, path: str, place: _Place, require_pruned: bool) -> list[FieldError]:
    obj = place.around(copy_json(node.default))
    try:
        coerce(obj, place.whole, "", [], lenient=False, root=True)
    except SchemaDecodeError as error:
        return [fe.invalid(path, node.default, f"must result in valid metadata: {error}")]
    wrong = check_embedded(obj, place.whole, root=True)
    if wrong:
        return [fe.invalid(path, node.default, f"must result in valid metadata: {aggregate(wrong)}")]
    return list(Checker(path).check(node, node.default).errors.values()) or _rule_errors(
        node, node.default, path, place
    )


def _rule_errors(node: Node, value: Any, path: str, place: _Place) -> list[FieldError]:
    """What the schema's own expressions say of its default."""
    if not has_rules(node):
        return []
    from steersman.apimachinery.schema.cel import RuleTree  # loaded when a schema has rules

    return RuleTree(node, whole=node is place.whole).check_default(value, path)
