"""Published schemas of custom resources."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.openapi.crd_schemas import convert, convert_to_v2, kind_schema, list_schema, whole_numbers

EITHER = [{"type": "integer"}, {"type": "string"}]
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def publish(schema: dict[str, Any] | None, **options: Any) -> dict[str, Any]:
    return kind_schema(schema, "shop.example.org", "v1", "Order", **options)


@pytest.mark.parametrize(
    ("schema", "published"),
    [
        pytest.param({"type": "object", "properties": {}, "required": [], "description": ""}, {"type": "object"}),
        pytest.param({"type": "string", "minLength": 0, "nullable": False}, {"type": "string", "minLength": 0}),
        pytest.param(
            {"type": "number", "minimum": 1.0, "default": 2.0}, {"type": "number", "minimum": 1, "default": 2}
        ),
        pytest.param({"type": "boolean", "default": False}, {"type": "boolean", "default": False}),
        pytest.param(
            {"type": "object", "additionalProperties": True}, {"type": "object", "additionalProperties": True}
        ),
        pytest.param({"id": "x", "$schema": "y", "type": "string"}, {"type": "string"}, id="unknown keywords"),
        pytest.param(
            {"type": "object", "anyOf": [{"additionalProperties": {"minLength": 1}, "required": ["a"]}]},
            {"type": "object", "anyOf": [{"required": ["a"]}]},
            id="additionalProperties in a junctor",
        ),
        pytest.param(
            {"type": "object", "not": {"properties": {"a": {"enum": [1.0]}}}},
            {"type": "object", "not": {"properties": {"a": {"enum": [1]}}}},
        ),
    ],
)
def test_v3_drops_what_says_nothing(schema: dict[str, Any], published: dict[str, Any]) -> None:
    assert convert(schema) == published


@pytest.mark.parametrize(
    ("rest", "published"),
    [
        ({}, {"anyOf": EITHER}),
        ({"anyOf": EITHER}, {"anyOf": EITHER}),
        ({"allOf": [{"anyOf": EITHER}, {"pattern": "x"}]}, {"allOf": [{"anyOf": EITHER}, {"pattern": "x"}]}),
        ({"anyOf": [{"pattern": "a"}]}, {"anyOf": [{"pattern": "a"}], "allOf": [{"anyOf": EITHER}]}),
        (
            {"anyOf": [{"pattern": "a"}], "allOf": [{"maxLength": 3}]},
            {"anyOf": [{"pattern": "a"}], "allOf": [{"anyOf": EITHER}, {"maxLength": 3}]},
        ),
    ],
)
def test_int_or_string_is_spelled_out_once(rest: dict[str, Any], published: dict[str, Any]) -> None:
    flag = {"x-kubernetes-int-or-string": True}
    assert convert({**flag, **rest}) == {**flag, **published}
    assert convert_to_v2({**flag, **rest}) == flag


@pytest.mark.parametrize(
    ("schema", "published"),
    [
        pytest.param({"type": "string", "nullable": True, "default": "d"}, {}, id="nullable"),
        pytest.param({"type": "array", "nullable": True, "items": {"type": "string"}}, {}, id="nullable list"),
        pytest.param(
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-preserve-unknown-fields": True},
            id="list of anything",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-preserve-unknown-fields": True},
            id="object with anything",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {"nullable": True, "type": "string"}}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {}}, "required": ["b"]},
            id="required but nullable",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string", "nullable": True}, "required": ["a"]},
            {"type": "object", "additionalProperties": {}},
            id="map of nullable",
        ),
        pytest.param(
            {"type": "object", "oneOf": [{"required": ["a"]}], "not": {"required": ["b"]}, "maxProperties": 2},
            {"type": "object", "maxProperties": 2},
            id="junctors",
        ),
        pytest.param(
            {"type": "object", "properties": {"default": {"type": "integer", "default": 1}}},
            {"type": "object", "properties": {"default": {"type": "integer"}}},
            id="defaults, but no property of that name",
        ),
    ],
)
def test_v2_drops_what_its_clients_cannot_read(schema: dict[str, Any], published: dict[str, Any]) -> None:
    assert convert_to_v2(schema) == published


def test_a_kind_has_the_fields_of_all_objects() -> None:
    published = publish({"type": "object", "description": "Bought.", "properties": {"metadata": {"type": "object"}}})
    assert published["description"] == "Bought."
    assert set(published["properties"]) == {"apiVersion", "kind", "metadata"}
    assert published["properties"]["metadata"]["allOf"] == [{"$ref": f"#/components/schemas/{OBJECT_META}"}]
    assert published["x-kubernetes-group-version-kind"] == [
        {"group": "shop.example.org", "version": "v1", "kind": "Order"}
    ]
    in_v2 = publish({"type": "object"}, v2=True)
    assert in_v2["properties"]["metadata"]["$ref"] == f"#/definitions/{OBJECT_META}"


def test_a_kind_without_schema_has_no_properties() -> None:
    assert publish(None).keys() == {"type", "x-kubernetes-group-version-kind"}


def test_a_root_that_preserves_unknown_fields_has_no_properties_in_v2_only() -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}}
    assert "properties" not in publish(schema, v2=True)
    assert "properties" not in publish({"type": "object"}, v2=True, preserve_unknown_fields=True)
    assert publish(schema)["properties"]["a"] == {"type": "string"}
    assert "metadata" in publish({"type": "object"}, preserve_unknown_fields=True)["properties"]


def test_embedded_resources_have_the_fields_of_all_objects_too() -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "required": ["kind"]}
    schema = {
        "type": "object",
        "properties": {
            "one": embedded,
            "many": {"type": "array", "items": embedded},
            "named": {"type": "object", "additionalProperties": embedded},
            "any": {**embedded, "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    properties = publish(schema)["properties"]
    for found in (
        properties["one"],
        properties["many"]["items"],
        properties["named"]["additionalProperties"],
        properties["any"],
    ):
        assert set(found["properties"]) == {"apiVersion", "kind", "metadata"}
        assert found["required"] == ["kind", "apiVersion"]
    in_v2 = publish(schema, v2=True)["properties"]
    assert set(in_v2["one"]["properties"]) == {"apiVersion", "kind", "metadata"}
    assert "properties" not in in_v2["any"]


def test_selectable_fields_stand_at_the_kind_and_at_its_list() -> None:
    expected = [{"fieldPath": "spec.color"}, {"fieldPath": "spec.size"}]
    selectable = ("spec.color", "spec.size")
    found = list_schema("shop.example.org", "v1", "Order", "OrderList", "orders", selectable=selectable)
    assert found["x-kubernetes-selectable-fields"] == expected
    assert publish({"type": "object"}, selectable=selectable)["x-kubernetes-selectable-fields"] == expected
    assert "x-kubernetes-selectable-fields" not in publish({"type": "object"})


def test_a_list_holds_its_kind() -> None:
    found = list_schema("shop.example.org", "v1", "Order", "OrderList", "orders")
    assert found["description"] == "OrderList is a list of Order"
    assert found["required"] == ["items"]
    items = found["properties"]["items"]
    assert items["items"] == {"$ref": "#/components/schemas/org.example.shop.v1.Order"}
    assert items["description"].startswith("List of orders. ")
    assert found["x-kubernetes-group-version-kind"][0]["kind"] == "OrderList"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON_VALUES)
def test_whole_numbers_change_the_form_of_numbers_alone(value: Any) -> None:
    before = json.dumps(value)
    found = whole_numbers(value)
    assert found == value
    assert json.dumps(value) == before
    assert whole_numbers(found) == found


SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "object", "array"]),
            "nullable": st.booleans(),
            "default": JSON_VALUES,
            "enum": st.lists(st.text(), max_size=2),
            "x-kubernetes-preserve-unknown-fields": st.booleans(),
            "x-kubernetes-int-or-string": st.booleans(),
            "required": st.lists(st.sampled_from("abc"), unique=True),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("object"),
            "properties": st.dictionaries(st.sampled_from("abc"), inner),
            "items": inner,
            "additionalProperties": inner | st.booleans(),
            "required": st.lists(st.sampled_from("abc"), unique=True),
            "anyOf": st.lists(st.fixed_dictionaries({"maxLength": st.integers(0, 9)}), max_size=2),
        },
    ),
    max_leaves=6,
)


@given(SCHEMAS)
def test_publishing_changes_no_given_schema_and_is_stable(schema: dict[str, Any]) -> None:
    before = json.dumps(schema)
    v3, v2 = convert(schema), convert_to_v2(schema)
    publish(schema)
    publish(schema, v2=True)
    assert json.dumps(schema) == before
    assert convert(v3) == v3
    assert convert_to_v2(v2) == v2
    assert convert_to_v2(v3) == v2
