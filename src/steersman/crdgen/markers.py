"""What the annotation of a field may say that Python's types cannot: `Annotated[list[Port], list_map("name")]`.

Source: API concepts, "Custom resources", and the markers of controller-tools (`pkg/crd/markers`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer

from steersman._util.goduration import format_nanoseconds, parse_nanoseconds
from steersman.client.declared import Column, ColumnType, Rule, RuleReason, Scale

M = TypeVar("M", bound=type[BaseModel])
Node = dict[str, Any]

INT_OR_STRING: Node = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


class Marker:
    """Something that a field's annotation says of its schema. `settles`: it gives the whole schema by itself."""

    def settles(self) -> Node | None:
        """The schema, if the Python type does not matter to it."""
        return None

    def apply(self, node: Node) -> str | None:
        """Put it into the schema of a type; what is wrong with that, or None."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class Settled(Marker):
    """A schema of its own."""

    schema: Node

    def settles(self) -> Node:
        return self.schema

    def apply(self, node: Node) -> str | None:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Listed(Marker):
    """How a list is merged, and what may not stand in it twice."""

    kind: str
    keys: tuple[str, ...] = ()

    def apply(self, node: Node) -> str | None:
        if node.get("type") != "array":
            return f"a list type ({self.kind}) is for lists"
        if self.kind == "map":
            properties = node["items"].get("properties") or {}
            missing = [key for key in self.keys if key not in properties]
            if missing:
                return f"the items have no field {missing[0]!r} to be a list's key"
            required = node["items"].get("required") or []
            loose = [key for key in self.keys if key not in required and "default" not in properties[key]]
            if loose:
                return f"the list's key {loose[0]!r} must be required in the items, or have a default"
            node["x-kubernetes-list-map-keys"] = list(self.keys)
        node["x-kubernetes-list-type"] = self.kind
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Atomic(Marker):
    """Owned and replaced as a whole: for lists, maps and objects."""

    def apply(self, node: Node) -> str | None:
        if node.get("type") == "array":
            node["x-kubernetes-list-type"] = "atomic"
        elif node.get("type") == "object":
            node["x-kubernetes-map-type"] = "atomic"
        else:
            return "atomic is for lists, maps and objects"
        return None


@dataclass(frozen=True, slots=True, eq=False)
class PreserveUnknown(Marker):
    """Fields that the model does not have are kept by the server, too; where it stands, a model may hold itself."""

    def apply(self, node: Node) -> str | None:
        if node.get("type", "object") != "object":
            return "unknown fields can be kept in objects only"
        node["x-kubernetes-preserve-unknown-fields"] = True
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Keywords(Marker):
    """Keywords of a schema for one type."""

    keywords: Node
    types: tuple[str, ...]

    def apply(self, node: Node) -> str | None:
        if self.types and node.get("type") not in self.types:
            return f"{', '.join(self.keywords)} is for {' and '.join(self.types)}, not for {node.get('type', 'this')}"
        node.update(self.keywords)
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Ruled(Marker):
    """A CEL rule."""

    rule: Rule

    def apply(self, node: Node) -> str | None:
        target: Node | None = node
        for step in filter(None, self.rule.at.split(".")):
            target = (target.get("properties") or {}).get(step) if target is not None else None
        if target is None:
            return f"a rule is at {self.rule.at!r}, and there is no such field"
        target.setdefault("x-kubernetes-validations", []).append(self.rule.wire())
        return None


list_set = Listed("set")
"""A list in which nothing stands twice: apply merges it item by item."""

atomic = Atomic()
"""A list, map or object that is owned, and replaced by apply, as a whole."""

preserve_unknown = PreserveUnknown()
"""Fields that the model does not have are kept by the server, too; where it stands, a model may hold itself."""

int_or_string = Settled(INT_OR_STRING)
"""A number or a text: what `IntOrString` is marked with."""

quantity = Settled({**INT_OR_STRING, "pattern": QUANTITY_PATTERN})
"""A Kubernetes quantity: what `Quantity` is marked with."""

duration = Keywords({"format": "duration"}, ("string",))
"""A text that is a duration as Go writes it, such as 1h30m."""

embedded = Settled(
    {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
)
"""A whole Kubernetes object, with apiVersion, kind and metadata, of any kind."""

nullable = Keywords({"nullable": True}, ())
"""null is a value of the field, and is stored; without it, null is taken for an absent field."""

int32 = Keywords({"format": "int32"}, ("integer",))
"""An integer that is described as one of 32 bits; `Int32` has the bounds, too."""

int64 = Keywords({"format": "int64"}, ("integer",))
"""An integer that is described as one of 64 bits."""


def list_map(*keys: str) -> Listed:
    """A list of objects with keys, as its fields are called in JSON: `list_map("name")`."""
    return Listed("map", keys)


def text_format(name: str) -> Keywords:
    """Texts in a format that the server knows: "date-time", "hostname", "uri", ..."""
    return Keywords({"format": name}, ("string",))


def pattern(expression: str) -> Keywords:
    """Texts that match a pattern (RE2), in any part of them unless it says ^ and $."""
    return Keywords({"pattern": expression}, ("string",))


def raw_schema(schema: Node) -> Settled:
    """The schema itself, where Python's types cannot say it."""
    return Settled(schema)


def rule(
    expression: str,
    message: str | None = None,
    *,
    at: str = "",
    reason: RuleReason | None = None,
    field_path: str | None = None,
    message_expression: str | None = None,
    optional_old_self: bool = False,
) -> Rule:
    """A CEL rule: for `@custom_resource(rules=[...])`, `@schema(...)`, or in an annotation.

    self is the object where the rule stands, or the field `at` below it. See KEP-2876.
    """
    return Rule(expression, message, at, reason, field_path, message_expression, optional_old_self)


def column(
    name: str,
    path: str,
    *,
    type: ColumnType = "string",  # noqa: A002 -- the API's name
    description: str | None = None,
    format: str | None = None,  # noqa: A002 -- the API's name
    priority: int = 0,
) -> Column:
    """A column of `kubectl get`: `column("Ready", ".status.ready", type="integer")`."""
    return Column(name, path, type, description, format, priority)


def scale(spec_path: str, status_path: str, *, selector: str | None = None) -> Scale:
    """The scale subresource: `scale(".spec.replicas", ".status.replicas")`."""
    return Scale(spec_path, status_path, selector)


def schema(*said: Marker | Rule) -> Callable[[M], M]:
    """What all objects of a model class are, wherever they stand: `@schema(rule("self.low <= self.high"), atomic)`."""

    def decorate(cls: M) -> M:
        cls.__crd_markers__ = (*cls.__dict__.get("__crd_markers__", ()), *said)  # type: ignore[attr-defined]
        return cls

    return decorate


def _duration(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    nanoseconds = parse_nanoseconds(value)
    if nanoseconds is None:
        raise ValueError(f"{value!r} is not a duration such as 1h30m")
    return timedelta(microseconds=nanoseconds // 1000)


def _written(value: timedelta) -> str:
    return format_nanoseconds((value // timedelta(microseconds=1)) * 1000)


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(_written, when_used="json"),
    Settled({"type": "string", "format": "duration"}),
]
"""A timedelta that is written as Go writes durations: `1h30m0s`. Finer than microseconds is cut off."""

IntOrString = Annotated[int | str, int_or_string]
"""A number or a text, such as a port or "25%"."""

Quantity = Annotated[int | float | str, quantity]
"""An amount such as "500m" or "1Gi", as it is written."""

Int32 = Annotated[int, int32, Field(ge=-(2**31), le=2**31 - 1)]
"""An integer of 32 bits."""
