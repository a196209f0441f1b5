"""What makes a CustomResourceDefinition bad."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from . import formats, values
from .definitions import Definition, Schema, nodes_of
from .schemas import NAMES, TYPES

JUNCTORS = ("allOf", "anyOf", "oneOf")


def _junctor_nodes(schema: Schema) -> list[Schema]:
    found = []
    for node in nodes_of(schema):
        found += [branch for keyword in JUNCTORS for branch in node.get(keyword) or () if isinstance(branch, dict)]
        found += [node["not"]] if isinstance(node.get("not"), dict) else []
    return found


def spoilt(rng: Random, definition: Definition) -> Definition:
    """The definition with one to three faults."""
    bad = copy.deepcopy(definition)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        version = rng.choice((bad["spec"] or {}).get("versions") or [{}])
        holder = version.get("schema")
        schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
        if rng.random() < 0.25 or not isinstance(schema, dict):
            _spoil_definition(rng, bad)
        elif rng.random() < 0.2 and (branches := _junctor_nodes(schema)):
            rng.choice(branches).update(_one(rng, BRANCH_FAULTS))
        else:
            _spoil_node(rng, rng.choice(nodes_of(schema)))
    return bad


BRANCH_FAULTS: tuple[Schema, ...] = (
    {"type": "string"},
    {"default": 1},
    {"nullable": True},
    {"title": "t"},
    {"description": "d"},
    {"additionalProperties": True},
    {"additionalProperties": {"type": "string"}},
    {"properties": {"nowhere": {}}},
    {"properties": {"a": {"properties": {"nowhere": {"minimum": 1}}}}},
    {"items": {"maxLength": 1}},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"x-kubernetes-int-or-string": True},
    {"x-kubernetes-embedded-resource": True},
    {"x-kubernetes-list-type": "set"},
    {"x-kubernetes-map-type": "atomic"},
    {"pattern": "("},
    {"enum": []},
    {"not": {"type": "object"}},
    {"allOf": []},
    {"anyOf": [{"default": {}}]},
    {"required": ["x", "x", ""]},
    {"x-kubernetes-validations": [{"rule": "true"}]},
    {"uniqueItems": True},
    {"example": 1},
    {"maxLength": -1},
)
NODE_FAULTS: tuple[Schema, ...] = (
    {"type": ""},
    {"type": "null"},
    {"type": "any"},
    {"type": "String"},
    {"uniqueItems": True},
    {"$ref": "#/definitions/x"},
    {"$ref": ""},
    {"$schema": "x"},
    {"$schema": "http://json-schema.org/schema#"},
    {"id": "x"},
    {"definitions": {"x": {"type": "string"}}},
    {"definitions": {}},
    {"dependencies": {"x": ["a"]}},
    {"dependencies": {"x": {"required": ["b"]}}},
    {"patternProperties": {"^x": {"type": "string"}}},
    {"additionalItems": True},
    {"additionalItems": {"type": "string"}},
    {"items": [{"type": "string"}]},
    {"items": {"type": "string"}},
    {"items": {}},
    {"externalDocs": {"url": "x"}},
    {"additionalProperties": False},
    {"additionalProperties": True},
    {"additionalProperties": {}},
    {"additionalProperties": {"type": "string"}},
    {"properties": {}},
    {"properties": {"a": {"type": "string"}}},
    {"properties": {"a": None}},
    {"nullable": True},
    {"default": None},
    {"default": 5},
    {"default": "x"},
    {"default": {}},
    {"default": {"strange": 1}},
    {"default": [1, 1, None]},
    {"default": {"apiVersion": "v1", "kind": "K", "metadata": {"name": 5, "strange": 1}}},
    {"x-kubernetes-int-or-string": True},
    {"x-kubernetes-int-or-string": True, "type": "string"},
    {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "string"}, {"type": "integer"}]},
    {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {}]},
    {"x-kubernetes-preserve-unknown-fields": False},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"x-kubernetes-embedded-resource": True},
    {"x-kubernetes-embedded-resource": True, "type": "string"},
    {"x-kubernetes-list-type": "map"},
    {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []},
    {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["nowhere"]},
    {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "a"]},
    {"x-kubernetes-list-type": "atomic", "x-kubernetes-list-map-keys": ["a"]},
    {"x-kubernetes-list-map-keys": ["a"]},
    {"x-kubernetes-list-type": "set"},
    {"x-kubernetes-list-type": "odd"},
    {"x-kubernetes-list-type": ""},
    {"x-kubernetes-map-type": "odd"},
    {"x-kubernetes-map-type": "granular"},
    {"x-kubernetes-map-type": ""},
    {"enum": []},
    {"enum": [None]},
    {"enum": [{}, [], 1, 1]},
    {"required": ["x", "x"]},
    {"allOf": []},
    {"anyOf": [{}]},
    {"oneOf": [{"type": "string"}]},
    {"not": {}},
    {"minimum": 5, "maximum": 1},
    {"maxLength": -1},
    {"minLength": 5, "maxLength": 1},
    {"maxItems": -5},
    {"multipleOf": 0},
    {"multipleOf": -1},
    {"exclusiveMinimum": True},
    {"format": "odd"},
    {"format": "int32", "type": "string"},
    {"x-kubernetes-validations": [{"rule": ""}]},
    {"x-kubernetes-validations": [{"rule": "self.nowhere"}]},
    {"x-kubernetes-validations": [{"rule": "true", "message": "a\nb"}]},
    {"x-kubernetes-validations": []},
    {"const": 1},
    {"if": {"type": "string"}},
    {"x-strange": True},
    {"readOnly": True},
    {"discriminator": "x"},
    {"x-kubernetes-group-version-kind": []},
    {"maxProperties": 0},
    {"title": "", "description": ""},
    # what the fields of a schema cannot be decoded from
    {"type": ["string", "null"]},
    {"type": 5},
    {"required": "a"},
    {"required": [1]},
    {"required": None},
    {"properties": []},
    {"properties": {"a": "string"}},
    {"properties": None},
    {"items": None},
    {"additionalProperties": "x"},
    {"additionalProperties": []},
    {"additionalProperties": None},
    {"enum": "a"},
    {"enum": None},
    {"nullable": "true"},
    {"nullable": None},
    {"minimum": "1"},
    {"minimum": values.Raw("1e400")},
    {"maximum": values.Raw("9223372036854775808")},
    {"exclusiveMaximum": 5},
    {"maxLength": 1.5},
    {"maxLength": values.Raw("2.0")},
    {"maxLength": values.Raw("1e2")},
    {"maxLength": values.Raw("9223372036854775808")},
    {"minItems": "1"},
    {"minItems": None},
    {"pattern": 5},
    {"format": 1},
    {"allOf": {}},
    {"anyOf": ["x"]},
    {"not": []},
    {"not": None},
    {"default": values.Raw("12345678901234567890")},
    {"default": values.Raw("1.0")},
    {"default": values.Raw("1e3")},
    {"example": values.Raw("1.50")},
    {"enum": [values.Raw("1.0"), values.Raw("1e2")]},
    {"x-kubernetes-list-map-keys": "a"},
    {"x-kubernetes-list-type": 1},
    {"x-kubernetes-preserve-unknown-fields": "yes"},
    {"x-kubernetes-preserve-unknown-fields": None},
    {"x-kubernetes-embedded-resource": "yes"},
    {"x-kubernetes-validations": {}},
    {"x-kubernetes-validations": [1]},
    {"dependencies": []},
    {"externalDocs": 1},
    {"$ref": 1},
)  # fmt: skip


def _one(rng: Random, faults: tuple[Schema, ...]) -> Schema:
    return copy.deepcopy(rng.choice(faults))


def _spoil_node(rng: Random, node: Schema) -> None:
    draw = rng.random()
    if draw < 0.08:
        node.pop("type", None)
    elif draw < 0.14:
        node["type"] = rng.choice(TYPES)
    elif draw < 0.2:
        node["pattern"] = rng.choice(formats.NO_PATTERNS)
    elif draw < 0.25:
        node["default"] = values.anything(rng)
    elif draw < 0.29:
        node["enum"] = [values.anything(rng, 1)]
    elif draw < 0.33 and node.get("properties"):
        node["properties"][rng.choice(NAMES)] = _one(rng, NODE_FAULTS)
    elif draw < 0.37:
        node.setdefault("properties", {})["metadata"] = {"type": "object", **_one(rng, NODE_FAULTS)}
    elif draw < 0.42:
        node[rng.choice(JUNCTORS)] = [_one(rng, BRANCH_FAULTS)]
    elif draw < 0.45:
        node["not"] = _one(rng, BRANCH_FAULTS)
    elif draw < 0.5 and node.get("x-kubernetes-list-type") == "map":
        _spoil_map_list(rng, node)
    else:
        node.update(_one(rng, NODE_FAULTS))


def _spoil_map_list(rng: Random, node: Schema) -> None:
    item, keys = node["items"], node["x-kubernetes-list-map-keys"]
    if not isinstance(item, dict) or not keys or not isinstance(item.get("properties"), dict):
        return
    draw, key = rng.randint(0, 5), keys[0]
    if draw == 0:
        item["properties"].pop(key, None)
    elif draw == 1:
        item["properties"][key] = {"type": "array", "items": {"type": "string"}}
    elif draw == 2:
        item.pop("required", None)
    elif draw == 3:
        item["nullable"] = True
    elif draw == 4:
        item["properties"][key] = {"type": "string", "nullable": True, "default": "x"}
    else:
        item["properties"][key] = {"x-kubernetes-int-or-string": True}


def _spoil_definition(rng: Random, definition: Definition) -> None:
    spec = definition["spec"]
    if spec and spec["versions"] and spec["names"]:
        rng.choice(DEFINITION_FAULTS)(definition, spec)


def _merge(**fields: Any) -> Callable[[Definition, Definition], None]:
    return lambda definition, spec: spec.update(copy.deepcopy(fields))


def _names(**fields: Any) -> Callable[[Definition, Definition], None]:
    return lambda definition, spec: spec["names"].update(copy.deepcopy(fields))


def _versions(**fields: Any) -> Callable[[Definition, Definition], None]:
    def change(definition: Definition, spec: Definition) -> None:
        for version in spec["versions"]:
            version.update(copy.deepcopy(fields))

    return change


def _column(**fields: Any) -> Callable[[Definition, Definition], None]:
    return _versions(additionalPrinterColumns=[{"name": "n", "type": "string", "jsonPath": ".spec.a", **fields}])


def _scale(**fields: Any) -> Callable[[Definition, Definition], None]:
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    return _versions(subresources={"scale": {**paths, **fields}})


DEFINITION_FAULTS: tuple[Callable[[Definition, Definition], None], ...] = (
    _names(plural="Bad_Plural"),
    _names(plural="others"),
    _names(kind=""),
    _names(kind="bad-Kind-"),
    _names(listKind="X" * 64),
    _names(singular="UPPER"),
    _names(shortNames=["Bad", "ok"]),
    _names(categories=["", "ok"]),
    _names(shortNames="x"),
    _names(plural=None),
    _merge(scope="Everywhere"),
    _merge(scope=""),
    _merge(group="nodots"),
    _merge(group=""),
    _merge(versions=[]),
    _merge(versions=None),
    _merge(preserveUnknownFields=True),
    _merge(conversion={"strategy": "Odd"}),
    _merge(conversion={"strategy": "Webhook"}),
    _merge(conversion={"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
    _merge(strange=1),
    _merge(names=None),
    _versions(served=None),
    _versions(served=False),
    _versions(storage=False),
    _versions(storage=True),
    _versions(name="Bad.Name"),
    _versions(name="v1"),
    _versions(schema=None),
    _versions(schema={}),
    _versions(schema={"openAPIV3Schema": None}),
    _versions(schema={"openAPIV3Schema": {}}),
    _versions(schema={"openAPIV3Schema": {"type": "string"}}),
    _versions(schema="x"),
    _versions(deprecationWarning="old"),
    _versions(deprecated=True, deprecationWarning=""),
    _versions(deprecated="yes"),
    _versions(subresources={"status": {"x": 1}}),
    _versions(subresources={"scale": {}}),
    _versions(selectableFields=[{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.a"}]),
    _versions(selectableFields=[{"jsonPath": "spec"}, {"jsonPath": ".metadata.name"}, {"jsonPath": ""}]),
    _scale(specReplicasPath="spec.replicas"),
    _scale(specReplicasPath=".status.x"),
    _scale(statusReplicasPath=""),
    _scale(labelSelectorPath=".metadata.x"),
    _scale(labelSelectorPath="status.x"),
    _column(name=""),
    _column(type="odd"),
    _column(format="odd"),
    _column(jsonPath="spec"),
    _column(jsonPath=""),
    _column(priority="1"),
    _column(jsonPath=".spec[*"),
    lambda definition, spec: definition["metadata"].update(name="other.name"),
    lambda definition, spec: definition["metadata"].update(labels={"a": 1}),
    lambda definition, spec: definition["metadata"].update(annotations={"Bad Key": "x"}),
    lambda definition, spec: definition.update(spec=None),
    lambda definition, spec: definition.update(status={"storedVersions": ["v9"]}),
    lambda definition, spec: definition.update(strange=1),
    lambda definition, spec: definition.update(kind="Odd"),
)  # fmt: skip
