"""Whole documents: v3 of one group version, and v2 in JSON and in protobuf."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.gvk import GroupVersionKind
from steersman.apimachinery.openapi import v2, v2_protobuf, v3
from steersman.apimachinery.openapi.crd_schemas import kind_schema, list_schema
from steersman.apimachinery.openapi.resources import ResourceDescription
from steersman.apimachinery.openapi.routes import operations
from steersman.apimachinery.openapi.server_routes import (
    VERSION_INFO,
    VERSION_SCHEMA,
    all_groups,
    group_information,
    server_version,
    version_resources,
)

VERBS = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
ORDER = ResourceDescription(
    GroupVersionKind("shop.example.org", "v1", "Order"),
    "orders",
    True,
    True,
    VERBS,
    "org.example.shop.v1.Order",
    "org.example.shop.v1.OrderList",
)
SCHEMAS = {
    ORDER.model: kind_schema({"type": "object"}, "shop.example.org", "v1", "Order"),
    ORDER.list_model: list_schema("shop.example.org", "v1", "Order", "OrderList", "orders"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status": {"type": "object"},
    "io.k8s.api.core.v1.Pod": {"type": "object"},
}
ITEM = "/apis/shop.example.org/v1/namespaces/{namespace}/orders/{name}"


def test_a_v3_document_has_the_schemas_that_it_needs_and_no_others() -> None:
    document = v3.document(operations(ORDER), SCHEMAS, custom=True)
    assert set(document["components"]["schemas"]) == set(SCHEMAS) - {"io.k8s.api.core.v1.Pod"}
    assert document["openapi"] == "3.0.0"
    assert "securitySchemes" not in document["components"]
    assert (
        "securitySchemes" in v3.document([server_version()], {VERSION_INFO: VERSION_SCHEMA}, custom=False)["components"]
    )


def test_a_v3_operation() -> None:
    put = v3.document(operations(ORDER), SCHEMAS, custom=True)["paths"][ITEM]["put"]
    reference = {"schema": {"$ref": "#/components/schemas/org.example.shop.v1.Order"}}
    assert put["requestBody"] == {
        "content": {"application/json": reference, "application/yaml": reference},
        "required": True,
    }
    assert set(put["responses"]) == {"200", "201", "401"}
    assert put["x-kubernetes-group-version-kind"] == {"group": "shop.example.org", "version": "v1", "kind": "Order"}
    assert put["x-kubernetes-action"] == "put"
    assert [parameter["name"] for parameter in put["parameters"]] == ["dryRun", "fieldManager", "fieldValidation"]


def test_references_to_parameters_of_the_v2_document_lead_somewhere() -> None:
    known = v2.frame()["parameters"]
    text = json.dumps(v2.paths(operations(ORDER)))
    references = {part.split('"')[0] for part in text.split("#/parameters/")[1:]}
    assert references
    assert references <= set(known)
    for name in ("dryRun", "fieldValidation"):
        assert not any(reference.startswith(f"{name}-") for reference in references)


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"default": {}, "allOf": [{"$ref": "#/components/schemas/m.A"}]}, {"$ref": "#/definitions/m.A"}),
        ({"oneOf": [{"type": "string"}, {"type": "number"}]}, {"type": "string"}),
        (
            {
                "type": "object",
                "properties": {"default": {"default": 1, "type": "integer"}, "oneOf": {"type": "array"}},
            },
            {"type": "object", "properties": {"default": {"type": "integer"}, "oneOf": {"type": "array"}}},
        ),
        ({"type": "array", "items": {"default": "", "type": "string"}}, {"type": "array", "items": {"type": "string"}}),
        (
            {"additionalProperties": {"$ref": "#/components/schemas/m.A"}},
            {"additionalProperties": {"$ref": "#/definitions/m.A"}},
        ),
    ],
)
def test_built_in_schemas_in_v2(schema: dict[str, Any], found: dict[str, Any]) -> None:
    assert v2.definition(schema) == found


def test_operations_of_the_server() -> None:
    found = [version_resources("", "v1"), version_resources("apps", "v1"), group_information(""), all_groups()]
    found += [group_information("rbac.authorization.k8s.io"), server_version()]
    assert [(operation.path, operation.id, operation.tag) for operation in found] == [
        ("/api/v1/", "getCoreV1APIResources", "core_v1"),
        ("/apis/apps/v1/", "getAppsV1APIResources", "apps_v1"),
        ("/api/", "getCoreAPIVersions", "core"),
        ("/apis/", "getAPIVersions", "apis"),
        ("/apis/rbac.authorization.k8s.io/", "getRbacAuthorizationAPIGroup", "rbacAuthorization"),
        ("/version/", "getCodeVersion", "version"),
    ]
    assert "parameters" not in v3.document(found, {}, custom=False)["paths"]["/api/v1/"]


Fields = list[tuple[int, Any]]


def decode(message: bytes) -> Fields:
    """The fields of a protobuf message: numbers, and integers, doubles or bytes."""
    found: Fields = []
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
        elif key & 7 == 1:
            found.append((key >> 3, struct.unpack_from("<d", message, position)[0]))
            position += 8
        else:
            assert key & 7 == 2
            size = varint()
            assert position + size <= len(message)
            found.append((key >> 3, message[position : position + size]))
            position += size
    return found


def one(message: bytes, *numbers: int) -> Any:
    """What stands in the only field of each number, going down."""
    value: Any = message
    for number in numbers:
        (value,) = (item for key, item in decode(value) if key == number)
    return value


def named(message: bytes, number: int) -> dict[str, bytes]:
    """A map as gnostic has it."""
    return {one(item, 1).decode(): one(item, 2) for key, item in decode(message) if key == number}


def test_a_v2_document_in_protobuf() -> None:
    paths = v2.paths(operations(ORDER))
    parts = v2_protobuf.paths(paths), v2_protobuf.definitions({ORDER.model: {"type": "object"}})
    message = v2_protobuf.document(v2.frame(), *parts)
    assert one(message, 1) == b"2.0"
    assert one(message, 2, 1) == b"Kubernetes"
    found = named(one(message, 8), 2)
    assert set(found) == set(paths)
    assert set(named(one(message, 9), 1)) == {ORDER.model}
    assert set(named(one(message, 10), 1)) == set(v2.frame()["parameters"])
    patch = one(found[ITEM], 8)
    assert one(patch, 5) == b"patchShopExampleOrgV1NamespacedOrder"
    extensions = {name: json.loads(one(value, 2)) for name, value in named(patch, 13).items()}
    assert extensions["x-kubernetes-action"] == "patch"
    assert extensions["x-kubernetes-group-version-kind"]["kind"] == "Order"
    inline = [one(item, 1, 2, 3) for number, item in decode(patch) if number == 8 and decode(item)[0][0] == 1]
    assert [one(parameter, 4) for parameter in inline] == [b"dryRun", b"fieldValidation"]
    references = [one(item, 2, 1) for number, item in decode(patch) if number == 8 and decode(item)[0][0] == 2]
    assert all(reference.startswith(b"#/parameters/") for reference in references)
    names = [one(item, 1, 2, 4, 4) for number, item in decode(found[ITEM]) if number == 9 and decode(item)[0][0] == 1]
    assert names == [b"name"]
    response = one(named(one(patch, 9), 1)["200"], 1)
    assert one(response, 2, 1, 1) == b"#/definitions/org.example.shop.v1.Order"


def test_a_schema_in_protobuf() -> None:
    schema = {
        "type": "object",
        "description": "ä",
        "maximum": 1.5,
        "minLength": 300,
        "exclusiveMaximum": True,
        "uniqueItems": False,
        "required": ["a", "b"],
        "enum": ["x", 1],
        "items": {"type": "string"},
        "properties": {"p": {"$ref": "#/definitions/m.A"}},
        "additionalProperties": False,
        "example": {"a": [1]},
        "externalDocs": {"url": "u", "description": "d"},
        "x-kubernetes-list-map-keys": ["k"],
    }
    message = named(v2_protobuf.definitions({"m": schema}), 1)["m"]
    assert one(message, 22, 1) == b"object"
    assert one(message, 4).decode() == "ä"
    assert one(message, 7) == 1.5
    assert one(message, 12) == 300
    assert one(message, 8) == 1
    assert [item for number, item in decode(message) if number == 19] == [b"a", b"b"]
    assert [json.loads(one(item, 2)) for number, item in decode(message) if number == 20] == ["x", 1]
    assert one(message, 23, 1, 22, 1) == b"string"
    assert one(named(one(message, 25), 1)["p"], 1) == b"#/definitions/m.A"
    assert one(message, 21, 2) == 0
    assert json.loads(one(message, 30, 2)) == {"a": [1]}
    assert one(message, 29, 2) == b"u"
    assert json.loads(one(named(message, 31)["x-kubernetes-list-map-keys"], 2)) == ["k"]
    assert not any(number == 16 for number, _ in decode(message))


@given(st.dictionaries(st.text(max_size=200), st.fixed_dictionaries({"minLength": st.integers(1, 2**63 - 1)})))
def test_definitions_of_any_size_decode_to_what_they_were(schemas: dict[str, Any]) -> None:
    found = [
        (one(item, 1) if decode(item)[0][0] == 1 else b"", one(item, 2, 12))
        for _, item in decode(v2_protobuf.definitions(schemas))
    ]
    assert {name.decode(): {"minLength": value} for name, value in found} == schemas


@given(st.lists(st.text(min_size=1), unique=True), st.integers(0, 5))
def test_parts_join_to_the_whole(names: list[str], cut: int) -> None:
    schemas = {name: {"title": name} for name in sorted(names)}
    first, second = dict(list(schemas.items())[:cut]), dict(list(schemas.items())[cut:])
    assert v2_protobuf.definitions(first) + v2_protobuf.definitions(second) == v2_protobuf.definitions(schemas)
