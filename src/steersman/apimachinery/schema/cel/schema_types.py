"""How expressions see data of a structural schema: its CEL type, its fields, and bounds on its size.

Source: apiserver `pkg/cel/common/schemas.go`, `pkg/cel/types.go`; apiextensions `pkg/apiserver/schema/cel/model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.escaping import RESERVED, escape
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.structural import Node

MAX_REQUEST: Final = 3 * 1024 * 1024
_MAX_DURATION = _MAX_DATE_TIME = 32
_DATE_SIZE = 12
_NAME_MAX = 253


class Field(NamedTuple):
    """A field: its name in the data, and its declaration."""

    name: str
    decl: Decl


class Decl:
    """The declaration of one place in the data.

    `kind` is object, map, list, int, double, bool, string, bytes, duration, date, date-time, dyn (int-or-string), or
    unknown for what expressions cannot see, with None for `type`. `fields` are by identifier, `raw_fields` by name.
    `max_elements` bounds strings, lists and maps, `min_size` the bytes of its JSON.
    """

    __slots__ = ("element", "fields", "kind", "max_elements", "min_size", "node", "nullable", "raw_fields", "type")

    def __init__(
        self, node: Node, kind: str, cel_type: Type | None, *, min_size: int = 0, max_elements: int = 0
    ) -> None:
        self.node = node
        self.kind = kind
        self.type = cel_type
        self.nullable = node.nullable
        self.min_size = min_size
        self.max_elements = max_elements
        self.fields: dict[str, Field] = {}
        self.raw_fields: dict[str, Decl] = {}
        self.element: Decl | None = None

    def field(self, identifier: str) -> Field | None:
        """The field that an identifier names; reserved words need no escape after a dot."""
        found = self.fields.get(identifier)
        if found is None and identifier in RESERVED:
            found = self.fields.get(f"__{identifier}__")
        return found

    def known_field(self, identifier: str) -> Field:
        """The field that an identifier of a checked expression names."""
        found = self.field(identifier)
        assert found is not None
        return found

    def child(self, name: str) -> Decl | None:
        """The declaration at a field or key of the data."""
        return self.raw_fields.get(name) or (self.element if self.kind == "map" else None)


def declare(node: Node, name: str = "selfType", *, root: bool = False) -> Decl:
    """The declaration of a schema; `root` adds apiVersion, kind and metadata, `name` is that of its object type."""
    if len(node.types) == 2:
        bound = node.max_length
        return Decl(
            node, "dyn", t.DYN, min_size=1, max_elements=_bytes(bound) if bound is not None else MAX_REQUEST - 2
        )
    if root:
        node = _with_metadata(node)
    build = _BUILDERS.get(node.type)
    return build(node, name) if build is not None else Decl(node, "unknown", None)


def _bytes(characters: int) -> int:
    return max(characters, 0) * 4


def _declare_list(node: Node, name: str) -> Decl:
    if node.items is None:
        return Decl(node, "unknown", None)
    element = declare(node.items, f"{name}.@idx", root=node.items.embedded)
    if element.type is None:
        out = Decl(node, "unknown", None)
    else:
        bound = node.max_items
        most = max(bound, 0) if bound is not None else (MAX_REQUEST - 2) // (element.min_size + 1)
        out = Decl(node, "list", t.list_of(element.type), min_size=2, max_elements=most)
    out.element = element
    return out


def _declare_object(node: Node, name: str) -> Decl:
    values = node.additional_schema
    if values is not None:
        return _declare_map(node, values, name)
    out = Decl(node, "object", t.object_type(name))
    required = set(node.required)
    size = 2
    for field, child in node.properties.items():
        identifier = escape(field)
        decl = declare(child, f"{name}.{identifier}", root=child.embedded)
        out.raw_fields[field] = decl
        if decl.type is None:
            continue
        if identifier is not None:
            out.fields[identifier] = Field(field, decl)
        if field in required and child.default is None:
            size += len(field.encode()) + decl.min_size + 4
    out.min_size = size
    return out


def _declare_map(node: Node, values: Node, name: str) -> Decl:
    element = declare(values, f"{name}.@elem", root=values.embedded)
    if element.type is None:
        out = Decl(node, "unknown", None)
    else:
        bound = node.max_properties
        most = max(bound, 0) if bound is not None else (MAX_REQUEST - 2) // (element.min_size + 6)
        out = Decl(node, "map", t.map_of(t.STRING, element.type), min_size=2, max_elements=most)
    out.element = element
    return out


_FORMATS: Mapping[str, tuple[str, Type, int, int]] = {
    "duration": ("duration", t.DURATION, 3, _MAX_DURATION),
    "date": ("date", t.TIMESTAMP, _DATE_SIZE, _DATE_SIZE),
    "date-time": ("date-time", t.TIMESTAMP, 21, _MAX_DATE_TIME),
}


def _declare_string(node: Node, name: str) -> Decl:
    known = _FORMATS.get(node.format)
    if known is not None:
        kind, cel_type, size, most = known
        return Decl(node, kind, cel_type, min_size=size, max_elements=most)
    bound = node.max_length
    if node.format == "byte":
        most = max(bound, 0) if bound is not None else MAX_REQUEST - 2
        return Decl(node, "bytes", t.BYTES, min_size=2, max_elements=most)
    if bound is not None:
        most = _bytes(bound)
    elif node.enum:
        most = max((len(each.encode()) for each in node.enum if isinstance(each, str)), default=0)
    else:
        most = MAX_REQUEST - 2
    return Decl(node, "string", t.STRING, min_size=2, max_elements=most)


def _scalar(kind: str, cel_type: Type, size: int) -> Any:
    return lambda node, name: Decl(node, kind, cel_type, min_size=size)


_BUILDERS = {
    "array": _declare_list,
    "object": _declare_object,
    "string": _declare_string,
    "boolean": _scalar("bool", t.BOOL, 4),
    "number": _scalar("double", t.DOUBLE, 1),
    "integer": _scalar("int", t.INT, 1),
}


def _with_metadata(node: Node) -> Node:
    """A resource's schema with apiVersion, kind, and the metadata that rules may read."""
    known = node.properties
    metadata = known.get("metadata", Node())
    declared = metadata.type == "object" and all(
        metadata.properties.get(name, Node()).type == "string" for name in ("name", "generateName")
    )
    if declared and all(known.get(name, Node()).type == "string" for name in ("kind", "apiVersion")):
        return node
    text = Node(type="string", types=("string",))
    names = {
        name: _capped(metadata.properties.get(name), most)
        for name, most in (("name", _NAME_MAX), ("generateName", _NAME_MAX - 1))
    }
    return Node(
        type=node.type,
        types=node.types,
        nullable=node.nullable,
        required=node.required,
        additional=node.additional,
        max_properties=node.max_properties,
        properties={
            **known,
            "kind": text,
            "apiVersion": text,
            "metadata": Node(type="object", types=("object",), properties=names),
        },
        preserve=node.preserve,
        embedded=node.embedded,
    )


def _capped(existing: Node | None, most: int) -> Node:
    if existing is not None and existing.max_length is not None:
        most = min(most, existing.max_length)
    return Node(type="string", types=("string",), max_length=most)
