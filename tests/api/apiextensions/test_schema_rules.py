"""What a CRD's schemas must be like."""

from typing import Any

import pytest

from steersman.api.apiextensions import validate_crd

from .crds import crd, in_spec

TEXT = {"type": "string"}
KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}


def found(definition: dict[str, Any]) -> list[tuple[str, str]]:
    prefix = "spec.validation.openAPIV3Schema"
    return [(error.field.removeprefix(prefix), error.body()) for error in validate_crd(definition)]


def found_in(schema: dict[str, Any]) -> list[tuple[str, str]]:
    """(field below the property, message) of the errors of one property of spec."""
    at = ".properties[spec].properties[f]"
    return [(field.removeprefix(at), body) for field, body in found(crd(in_spec(f=schema)))]


@pytest.mark.parametrize(
    "schema",
    [
        TEXT,
        {"type": "object"},
        {"type": "object", "additionalProperties": True},
        {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]},
        {"x-kubernetes-int-or-string": True, "default": True},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        {"type": "string", "minLength": -1},
        {
            "type": "object",
            "properties": {"a": TEXT},
            "anyOf": [{"required": ["a"]}, {"properties": {"a": {"enum": ["x"]}}}],
        },
        {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": TEXT}}, **KEYED},
        {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''", "fieldPath": ""}]},
    ],
)
def test_accepted(schema: dict[str, Any]) -> None:
    assert found_in(schema) == []


@pytest.mark.parametrize(
    ("schema", "errors"),
    [
        ({}, [(".type", "Required value: must not be empty for specified object fields")]),
        ({"type": "array"}, [(".items", "Required value: must be specified")]),
        (
            {"type": "array", "items": {}},
            [(".items.type", "Required value: must not be empty for specified array items")],
        ),
        (
            {"type": "odd"},
            [
                (
                    ".type",
                    'Unsupported value: "odd": supported values: '
                    '"array", "boolean", "integer", "number", "object", "string"',
                )
            ],
        ),
        ({"type": "string", "id": "x"}, [(".id", "Forbidden: id is not supported")]),
        ({"$ref": "#/x"}, [(".$ref", "Forbidden: $ref is not supported")]),
        (
            {"type": "array", "items": TEXT, "uniqueItems": True},
            [
                (
                    ".uniqueItems",
                    "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
                )
            ],
        ),
        ({"type": "array", "items": [TEXT]}, [(".items", "Forbidden: items must be a schema object and not an array")]),
        (
            {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
            [(".additionalProperties", "Forbidden: additionalProperties and properties are mutual exclusive")],
        ),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            [(".x-kubernetes-preserve-unknown-fields", "Invalid value: false: must be true or undefined")],
        ),
        (
            {"type": "string", "pattern": "("},
            [
                (
                    ".pattern",
                    'Invalid value: "(": must be a valid regular expression, but isn\'t: '
                    "error parsing regexp: missing closing ): `(`",
                )
            ],
        ),
        ({"type": "string", "not": {"type": "string"}}, [(".not.type", "Forbidden: must be empty to be structural")]),
        (
            {"type": "object", "not": {"additionalProperties": {}}},
            [(".not.additionalProperties", "Forbidden: must be undefined to be structural")],
        ),
        (
            {"type": "string", "x-kubernetes-list-type": "set"},
            [(".type", 'Invalid value: "string": must be array if x-kubernetes-list-type is specified')],
        ),
        (
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "bag"},
            [(".x-kubernetes-list-type", 'Unsupported value: "bag": supported values: "atomic", "set", "map"')],
        ),
        (
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
            [
                (
                    ".items.x-kubernetes-map-type",
                    "Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
                )
            ],
        ),
        (
            {"type": "array", "items": TEXT, "x-kubernetes-list-map-keys": ["k"]},
            [(".x-kubernetes-list-type", "Required value: must be map if x-kubernetes-list-map-keys is non-empty")],
        ),
        (
            {"type": "array", "items": {"type": "object"}, **KEYED},
            [(".x-kubernetes-list-map-keys", 'Invalid value: ["k"]: entries must all be names of item properties')],
        ),
        (
            {"type": "object", "x-kubernetes-map-type": "loose"},
            [(".x-kubernetes-map-type", 'Unsupported value: "loose": supported values: "atomic", "granular"')],
        ),
        (
            {"type": "string", "x-kubernetes-validations": [{"rule": " "}]},
            [(".x-kubernetes-validations[0].rule", "Required value: rule is not specified")],
        ),
        (
            {"type": "object", "x-kubernetes-validations": [{"rule": "x", "fieldPath": ".a"}]},
            [(".x-kubernetes-validations[0].fieldPath", 'Invalid value: ".a": must be a valid path')],
        ),
        (
            {"type": "integer", "default": "x"},
            [(".default", 'Invalid value: "string":  in body must be of type integer: "string"')],
        ),
        (
            {"type": "object", "default": {"a": 1}},
            [(".default", 'Invalid value: {"a":1}: must not have unknown fields')],
        ),
        (
            {"type": "object", "properties": {"a": {**TEXT, "default": "z"}}, "required": ["a"], "default": {}},
            [(".default.a", "Required value")],
        ),
    ],
)
def test_refused(schema: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert found_in(schema) == errors


def test_what_the_roots_junctors_judge_must_be_specified_outside() -> None:
    judged = {"properties": {"spec": {"properties": {"g": {"minLength": 1}}}}}
    root = {**in_spec(f=TEXT), "anyOf": [judged]}
    path = "spec.validation.openAPIV3Schema.anyOf[0].properties[spec].properties[g]"
    reason = f"Required value: because it is defined in {path}"
    assert found(crd(root)) == [(".properties[spec].properties[g]", reason)]


def test_a_map_lists_keys_are_scalar_required_and_not_null() -> None:
    item = {"type": "object", "properties": {"k": {"type": "string", "nullable": True}}}
    assert found_in({"type": "array", "items": item, **KEYED}) == [
        (
            ".items.properties[k].default",
            "Required value: this property is in x-kubernetes-list-map-keys, "
            "so it must have a default or be a required property",
        ),
        (
            ".items.properties[k].nullable",
            "Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
        ),
    ]


@pytest.mark.parametrize(
    ("root", "errors"),
    [
        ({}, [(".type", "Required value: must not be empty at the root")]),
        ({"type": "array", "items": TEXT}, [(".type", 'Invalid value: "array": must be object at the root')]),
        ({"type": "object", "nullable": True}, [(".nullable", "Forbidden: nullable cannot be true at the root")]),
        (
            {"type": "object", "additionalProperties": True},
            [(".additionalProperties", "Forbidden: must not be used at the root")],
        ),
        (
            {"type": "object", "properties": {"kind": {"type": "integer"}}},
            [(".properties[kind].type", 'Invalid value: "integer": must be string')],
        ),
        (
            {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"uid": TEXT}}}},
            [
                (
                    ".properties[metadata]",
                    "Forbidden: must not specify anything other than name and generateName, "
                    "but metadata is implicitly specified",
                )
            ],
        ),
        (
            {
                "type": "object",
                "properties": {"metadata": {"type": "object", "properties": {"name": {**TEXT, "default": "x"}}}},
            },
            [(".properties[metadata].properties[name].default", "Forbidden: must not be set in top-level metadata")],
        ),
        ({"type": "object", "$schema": "x"}, [("", "Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported")]),
    ],
)
def test_the_root(root: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert found(crd(root)) == errors


def test_with_a_status_subresource_the_root_says_little() -> None:
    bounded = {"type": "object", "maxProperties": 9}
    assert found(crd(bounded)) == []
    ((field, body),) = found(crd(bounded, subresources={"status": {}}))
    assert field == ""
    assert body.startswith('Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"","Type":"object",')
    assert body.endswith("fields are allowed at the root of the schema if the status subresource is enabled")


def test_defaults_in_embedded_metadata_must_make_valid_metadata() -> None:
    labels = {"type": "object", "additionalProperties": TEXT, "default": {"a": "-"}}
    metadata = {"type": "object", "properties": {"labels": labels}}
    schema = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"metadata": metadata}}
    ((field, body),) = found_in(schema)
    assert field == ".properties[metadata].properties[labels].default"
    assert body.startswith(
        'Invalid value: {"a":"-"}: must result in valid metadata: metadata.labels: Invalid value: "-"'
    )


def test_rules_are_compiled_only_where_the_schema_has_no_faults() -> None:
    rules = [{"rule": "self.nope"}]
    sound = {"type": "object", "properties": {"f": {**TEXT, "x-kubernetes-validations": rules}}}
    faulty = {**sound, "uniqueItems": True, "x-kubernetes-validations": rules}
    errors = found_in(faulty)
    assert [field for field, _ in errors] == [".uniqueItems", ".properties[f].x-kubernetes-validations[0].rule"]
    assert "type 'string' does not support field selection" in errors[1][1]


def test_errors_that_a_list_has_with_its_items_do_not_hide_the_rules_of_these() -> None:
    item = {"type": "string", "maxLength": 5, "nullable": True, "x-kubernetes-validations": [{"rule": "self.zz"}]}
    schema = {"type": "array", "items": item, "maxItems": 5, "x-kubernetes-list-type": "set"}
    assert [field for field, _ in found_in(schema)] == [".items.nullable", ".items.x-kubernetes-validations[0].rule"]
