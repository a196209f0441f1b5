"""Unions, as far as a structural schema can say them.

Source: API concepts, "Specifying a structural schema": types and properties stand outside of anyOf and oneOf.
"""

from __future__ import annotations

from typing import Any

from steersman.crdgen.errors import SchemaError
from steersman.crdgen.markers import INT_OR_STRING, Node

_STRUCTURAL = ("type", "properties", "items", "additionalProperties", "description", "nullable", "default")
_WHY = "a schema has one type at a time; int | str and unions of objects with a Literal to tell them apart are possible"


def joined(parts: list[Node], where: str) -> Node:
    """One schema for what fits any of several. Raises SchemaError when there is none."""
    types = [part.get("type") for part in parts]
    if all(kind == "object" and "properties" in part for kind, part in zip(types, parts, strict=True)):
        return _objects(parts, where)
    if sorted(map(str, types)) == ["integer", "string"] and not any(map(_limits, parts)):
        return {**INT_OR_STRING}
    if set(types) == {"integer", "number"}:
        if any(map(_limits, parts)):
            raise SchemaError(where, "int | float with limits: use float with limits")
        return {"type": "number"}
    if len(set(types)) != 1 or types[0] not in ("string", "integer", "number", "boolean"):
        raise SchemaError(where, f"a union of {', '.join(str(kind or 'anything') for kind in types)}: {_WHY}")
    if all(set(part) - {"format"} == {"type", "enum"} for part in parts):
        values = [value for part in parts for value in part["enum"]]
        return {**parts[0], "enum": list(dict.fromkeys(values))}
    limits = [_limits(part) for part in parts]
    common = {"type": types[0]} | ({"format": "int64"} if types[0] == "integer" else {})
    return common if not all(limits) else {**common, "anyOf": limits}


def _limits(part: Node) -> Node:
    """What a schema says beside its type."""
    return {
        key: value
        for key, value in part.items()
        if key not in _STRUCTURAL and not (key == "format" and value in ("int32", "int64"))
    }


def _objects(parts: list[Node], where: str) -> Node:
    """Objects that a field with one value each tells apart: all properties, and what each of them demands."""
    tag = _tag(parts)
    if tag is None:
        raise SchemaError(where, "a union of objects needs a required field that is a Literal of other values in each")
    properties: Node = {}
    for part in parts:
        for name, node in part["properties"].items():
            known = properties.get(name)
            if name != tag and known is not None and known != node:
                raise SchemaError(f"{where}.{name}", "the objects of a union have the field, and it differs in them")
            properties[name] = node
    values = [value for part in parts for value in part["properties"][tag]["enum"]]
    properties[tag] = {**parts[0]["properties"][tag], "enum": values}
    properties[tag].pop("default", None)
    rest = [set(part) - {"type", "properties", "required", "description"} for part in parts]
    if any(rest):
        raise SchemaError(where, f"an object of a union cannot say {', '.join(sorted(set.union(*rest)))}")
    branches = [_branch(part, tag) for part in parts]
    return {"type": "object", "required": [tag], "properties": properties, "oneOf": branches}


def _branch(part: Node, tag: str) -> Node:
    return {
        "properties": {tag: {"enum": part["properties"][tag]["enum"]}},
        "required": sorted({*part.get("required", ()), tag}),
    }


def _tag(parts: list[Node]) -> str | None:
    for name, node in parts[0]["properties"].items():
        found: list[Any] = []
        for part in parts:
            found += part["properties"].get(name, {}).get("enum") or [None]
        if None not in found and len(set(found)) == len(found) and "enum" in node:
            return str(name)
    return None
