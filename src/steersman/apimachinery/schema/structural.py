"""A version's `openAPIV3Schema`, read once into nodes that the rest of this package works on.

Source: apiextensions `pkg/apiserver/schema/{structural,convert}.go` and
`pkg/apiserver/validation/validation.go` (ConvertJSONSchemaProps).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from steersman._util.dataclass import dataclass
from steersman.apimachinery.schema.formats import Check, is_recognised, string_format
from steersman.apimachinery.schema.patterns import Pattern, PatternError, compile_pattern

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@dataclass(slots=True, eq=False)
class Node:
    """One schema. Absent bounds are None, absent texts empty; `additional` is None, a bool or a schema."""

    type: str = ""
    types: tuple[str, ...] = ()
    nullable: bool = False
    format: str = ""
    format_check: Check | None = None
    default: Any = None
    pattern: str = ""
    regex: Pattern | None = None
    pattern_error: str = ""
    maximum: float | None = None
    exclusive_maximum: bool = False
    minimum: float | None = None
    exclusive_minimum: bool = False
    multiple_of: float | None = None
    max_length: int | None = None
    min_length: int | None = None
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool = False
    max_properties: int | None = None
    min_properties: int | None = None
    enum: list[Any] = field(default_factory=list)
    required: list[str] = field(default_factory=list)
    properties: dict[str, Node] = field(default_factory=dict)
    additional: Node | bool | None = None
    items: Node | None = None
    all_of: list[Node] = field(default_factory=list)
    any_of: list[Node] = field(default_factory=list)
    one_of: list[Node] = field(default_factory=list)
    negated: Node | None = None
    preserve: bool = False
    embedded: bool = False
    list_type: str = ""
    list_keys: list[str] = field(default_factory=list)
    rules: list[dict[str, Any]] = field(default_factory=list)

    @property
    def additional_schema(self) -> Node | None:
        return self.additional if isinstance(self.additional, Node) else None

    def child(self, key: str) -> Node | None:
        """The schema of a field: its property's, else that of additionalProperties."""
        return self.properties.get(key) or self.additional_schema


def read_schema(schema: Mapping[str, Any], *, literal: bool = False) -> Node:
    """The node of a schema as JSON holds it; nulls count as absent.

    Formats that mean nothing on the schema's type are dropped, and `x-kubernetes-int-or-string` implies two types.
    Not so with `literal`, the way in which upstream judges default values.
    """

    def sub(raw: Mapping[str, Any]) -> Node:
        return read_schema(raw, literal=literal)

    node = Node(
        type=schema.get("type") or "",
        nullable=bool(schema.get("nullable")),
        default=schema.get("default"),
        maximum=_number(schema.get("maximum")),
        exclusive_maximum=bool(schema.get("exclusiveMaximum")),
        minimum=_number(schema.get("minimum")),
        exclusive_minimum=bool(schema.get("exclusiveMinimum")),
        multiple_of=_number(schema.get("multipleOf")),
        max_length=schema.get("maxLength"),
        min_length=schema.get("minLength"),
        max_items=schema.get("maxItems"),
        min_items=schema.get("minItems"),
        unique_items=bool(schema.get("uniqueItems")),
        max_properties=schema.get("maxProperties"),
        min_properties=schema.get("minProperties"),
        enum=list(schema.get("enum") or ()),
        required=list(schema.get("required") or ()),
        properties={key: sub(raw) for key, raw in (schema.get("properties") or {}).items()},
        all_of=[sub(raw) for raw in schema.get("allOf") or ()],
        any_of=[sub(raw) for raw in schema.get("anyOf") or ()],
        one_of=[sub(raw) for raw in schema.get("oneOf") or ()],
        preserve=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        list_type=schema.get("x-kubernetes-list-type") or "",
        list_keys=list(schema.get("x-kubernetes-list-map-keys") or ()),
        rules=list(schema.get("x-kubernetes-validations") or ()),
    )
    int_or_string = bool(schema.get("x-kubernetes-int-or-string")) and not literal
    node.types = ("integer", "string") if int_or_string else (node.type,) if node.type else ()
    if isinstance(schema.get("items"), Mapping):
        node.items = sub(schema["items"])
    if isinstance(schema.get("not"), Mapping):
        node.negated = sub(schema["not"])
    additional = schema.get("additionalProperties")
    node.additional = sub(additional) if isinstance(additional, Mapping) else additional
    _read_format(node, schema.get("format") or "", literal=literal)
    _read_pattern(node, schema.get("pattern") or "")
    return node


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _read_format(node: Node, name: str, *, literal: bool) -> None:
    only = node.types[0] if len(node.types) == 1 else ""
    if name and (literal or is_recognised(only, name)):
        node.format = name
        node.format_check = string_format(name)


def _read_pattern(node: Node, pattern: str) -> None:
    node.pattern = pattern
    if pattern:
        try:
            node.regex = compile_pattern(pattern)
        except PatternError as error:
            node.pattern_error = str(error)
