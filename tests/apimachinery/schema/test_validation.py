"""Every keyword's verdict, in the API's words."""

from typing import Any

import pytest

from steersman.apimachinery.schema import compile_schema

INT_OR_STRING = {"x-kubernetes-int-or-string": True}


def verdict(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:
    """(field, message) of each error of `spec.f`."""
    root = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": schema}}}}
    return [(error.field, error.body()) for error in compile_schema(root).validate({"spec": {"f": value}})]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "x"),
        ({"type": "string", "maxLength": 2}, "éé"),
        ({"type": "string", "minLength": 1, "pattern": "b+"}, "abc"),
        ({"type": "string", "format": "no-such-format"}, "anything"),
        ({"type": "string", "nullable": True}, None),
        ({"type": "integer"}, 3),
        ({"type": "integer"}, 3.0),
        ({"type": "integer", "format": "int32"}, 2**31 - 1),
        ({"type": "number"}, 3),
        ({"type": "number", "multipleOf": 0.1}, 0.3),
        ({"type": "number", "enum": [1, 2.5]}, 1.5),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, 1.5),
        ({"type": "boolean"}, True),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 2}, ["a", "b"]),
        ({"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"}, [1, 2]),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": "b"}),
        (INT_OR_STRING, 5),
        (INT_OR_STRING, "50%"),
        ({"x-kubernetes-preserve-unknown-fields": True}, {"any": [1, None]}),
        ({"type": "string", "anyOf": [{"minLength": 5}, {"pattern": "^a"}]}, "ab"),
        ({"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 3}]}, 2),
        ({"type": "integer", "not": {"enum": [3]}}, 4),
    ],
)
def test_valid(schema: dict[str, Any], value: Any) -> None:
    assert verdict(schema, value) == []


def typed(wanted: str, found: str, field: str = "spec.f") -> tuple[str, str]:
    return field, f'Invalid value: "{found}": {field} in body must be of type {wanted}: "{found}"'


def says(value: str, text: str) -> tuple[str, str]:
    return "spec.f", f"Invalid value: {value}: spec.f in body {text}"


def unplaced(text: str) -> tuple[str, str]:
    return "<nil>", f'Invalid value: "": {text}'


@pytest.mark.parametrize(
    ("schema", "value", "error"),
    [
        ({"type": "string"}, 1, typed("string", "integer")),
        ({"type": "string"}, 1.0, typed("string", "number")),
        ({"type": "string"}, True, typed("string", "boolean")),
        ({"type": "string"}, None, typed("string", "null")),
        ({"type": "integer"}, "1", typed("integer", "string")),
        ({"type": "integer"}, True, typed("integer", "boolean")),
        ({"type": "boolean"}, 1, typed("boolean", "integer")),
        ({"type": "object"}, [], typed("object", "array")),
        ({"type": "array", "items": {"type": "string"}}, {}, typed("array", "object")),
        ({"type": "array", "items": {"type": "string"}}, ["a", 1], typed("string", "integer", "spec.f[1]")),
        ({"type": "array", "items": {"type": "string"}}, [None], typed("string", "null", "spec.f[0]")),
        (INT_OR_STRING, 1.5, typed("integer,string", "number")),
        (INT_OR_STRING, None, typed("integer,string", "null")),
        ({"type": "integer", "format": "int32"}, True, typed("int32", "")),
        ({"type": "string", "format": "date"}, "soon", says('"soon"', 'must be of type date: "soon"')),
        ({"type": "string", "maxLength": 1}, "ab", ("spec.f", "Too long: may not be more than 1 byte")),
        (
            {"type": "string", "maxLength": 3, "pattern": "^a"},
            "xxxx",
            ("spec.f", "Too long: may not be more than 3 bytes"),
        ),
        ({"type": "string", "minLength": 2}, "é", says('"é"', "should be at least 2 chars long")),
        ({"type": "string", "pattern": "^a"}, "b", says('"b"', "should match '^a'")),
        ({"type": "string", "enum": ["a", "b"]}, "c", ("spec.f", 'Unsupported value: "c": supported values: "a", "b"')),
        ({"type": "integer", "enum": [1, 2]}, 3, ("spec.f", 'Unsupported value: 3: supported values: "1", "2"')),
        ({"type": "integer", "minimum": 1}, 0, says("0", "should be greater than or equal to 1")),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 1, says("1", "should be greater than 1")),
        (
            {"type": "number", "maximum": 1000000},
            1000001.5,
            says("1.0000015e+06", "should be less than or equal to 1e+06"),
        ),
        ({"type": "number", "maximum": 2, "exclusiveMaximum": True}, 2, says("2", "should be less than 2")),
        ({"type": "integer", "multipleOf": 3}, 4, says("4", "should be a multiple of 3")),
        (
            {"type": "number", "multipleOf": 0.5},
            1,
            ("spec.f", "Invalid value: 0: factor MultipleOf declared for spec.f must be positive: 0"),
        ),
        (
            {"type": "integer", "format": "int32"},
            2**31,
            unplaced("Checked value must be of type integer with format int32 in spec.f"),
        ),
        (
            {"type": "number", "format": "float"},
            3.5e39,
            unplaced("Checked value must be of type number with format float in spec.f"),
        ),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, [], says("0", "should have at least 1 items")),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            ["a", "b"],
            ("spec.f", "Too many: 2: must have at most 1 item"),
        ),
        ({"type": "object", "minProperties": 1}, {}, says("0", "should have at least 1 properties")),
        ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 2}, ("spec.f", "Too many: 2: must have at most 1 item")),
        ({"type": "object", "required": ["a"]}, {}, ("spec.f.a", "Required value")),
        (
            {"type": "object", "additionalProperties": False},
            {"a": 1},
            ("spec.f", 'Invalid value: "a": spec.f.a in body is a forbidden property'),
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"a": 1},
            typed("string", "integer", "spec.f.a"),
        ),
        ({"type": "integer", "not": {"enum": [3]}}, 3, unplaced('"spec.f" must not validate the schema (not)')),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            ["a", "b", "a", "a"],
            ("spec.f[2]", 'Duplicate value: "a"'),
        ),
    ],
)
def test_one_error(schema: dict[str, Any], value: Any, error: tuple[str, str]) -> None:
    assert verdict(schema, value) == [error]


def test_a_fraction_is_no_integer_and_out_of_its_range() -> None:
    text = 'Invalid value: "": Checked value must be of type integer (default format) in spec.f'
    assert verdict({"type": "integer"}, 1.5) == [typed("integer", "number"), ("<nil>", text)]


def test_a_number_beyond_int64_is_a_float() -> None:
    found = verdict({"type": "integer", "format": "int64"}, 2**63)
    assert found[0] == typed("int64", "float64")


def test_junctors_show_the_branch_that_came_nearest() -> None:
    schema = {"type": "string", "anyOf": [{"minLength": 9}, {"enum": ["x"]}]}
    assert verdict(schema, "ab") == [
        unplaced('"spec.f" must validate at least one schema (anyOf)'),
        says('"ab"', "should be at least 9 chars long"),
    ]
    schema = {"type": "integer", "oneOf": [{"minimum": 1}, {"maximum": 9}]}
    text = '"spec.f" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    assert verdict(schema, 5) == [("<nil>", f'Invalid value: "": {text}')]
    schema = {"type": "integer", "allOf": [{"minimum": 3}, {"minimum": 1}]}
    assert verdict(schema, 2) == [
        says("2", "should be greater than or equal to 3"),
        unplaced('"spec.f" must validate all the schemas (allOf)'),
    ]


def test_map_lists_quote_the_repeated_key() -> None:
    item = {"type": "object", "properties": {"port": {"type": "integer"}, "name": {"type": "string"}}}
    schema = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "name"],
    }
    ports = [{"port": 1, "name": "a"}, {"port": 1}, {"port": 1, "name": "a"}, {"port": 1}]
    assert verdict(schema, ports) == [
        ("spec.f[2]", 'Duplicate value: {"name":"a","port":1}'),
        ("spec.f[3]", 'Duplicate value: {"port":1}'),
    ]


def test_true_and_one_are_two_members_of_a_set() -> None:
    schema = {"type": "array", "items": INT_OR_STRING, "x-kubernetes-list-type": "set"}
    assert verdict(schema, [1, "1"]) == []
    preserving = {"x-kubernetes-preserve-unknown-fields": True}
    assert verdict({"type": "array", "items": preserving, "x-kubernetes-list-type": "set"}, [1, True]) == []


def test_embedded_resources_are_judged() -> None:
    schema = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    assert verdict(schema, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}}) == []
    assert verdict(schema, {}) == [("spec.f.apiVersion", "Required value"), ("spec.f.kind", "Required value")]
    bad = {"apiVersion": "a/b/c", "kind": "", "metadata": {"name": "a/b", "namespace": "x"}}
    assert verdict(schema, bad) == [
        ("spec.f.apiVersion", 'Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'),
        ("spec.f.kind", 'Invalid value: "": must not be empty'),
        ("spec.f.metadata.name", "Invalid value: \"a/b\": may not contain '/'"),
    ]


def test_the_root_of_metadata_is_judged_only_by_the_schema() -> None:
    name = {"type": "string", "pattern": "^w-"}
    schema = {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": name}}}}
    errors = compile_schema(schema).validate({"metadata": {"name": "x", "labels": "not even a map"}})
    assert [error.field for error in errors] == ["metadata.name"]


def test_status_paths_start_at_status_and_messages_below_it() -> None:
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    spec = {"type": "string"}
    pipeline = compile_schema({"type": "object", "properties": {"spec": spec, "status": status}})
    errors = pipeline.validate_status({"spec": 1, "status": {"phase": 5}}, {"spec": 1})
    body = 'Invalid value: "integer": phase in body must be of type string: "integer"'
    assert [(error.field, error.body()) for error in errors] == [("status.phase", body)]


def test_rules_are_passed_over_when_types_or_sizes_are_wrong() -> None:
    field = {"type": "integer", "maximum": 3, "x-kubernetes-validations": [{"rule": "self > 1"}]}
    pipeline = compile_schema({"type": "object", "properties": {"f": field}})
    assert [error.field for error in pipeline.validate({"f": 9})] == ["f"]
    skipped = pipeline.validate({"f": "x"})[-1]
    assert skipped.field == "<nil>"
    assert skipped.body().startswith("Invalid value: null: some validation rules were not checked")


@pytest.mark.parametrize(
    ("value", "allowed", "fits"),
    [
        (2**63 - 2, 2.0**63, True),  # as floats they are equal
        (3.5, 3, True),  # cut to an integer
        (2.0**63, -(2**63), True),  # which this float does not fit
        (97, "a", True),  # the character
        (-1, "\ufffd", True),
        (98, "a", False),
        (1, True, False),
        ("1", 1, False),
        (None, None, False),
    ],
)
def test_values_become_of_the_type_of_the_enum(value: Any, allowed: Any, fits: bool) -> None:
    errors = compile_schema({"properties": {"a": {"enum": [allowed]}}}).validate({"a": value})
    assert (errors == []) is fits
