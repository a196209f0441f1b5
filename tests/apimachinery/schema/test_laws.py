"""What holds for every schema and every object."""

import json
from typing import Any

from hypothesis import given, settings

from steersman.apimachinery.schema import compile_schema
from steersman.apimachinery.schema.check import Checker
from steersman.apimachinery.schema.list_types import check_list_types
from steersman.apimachinery.schema.pruning import clean_test, drop_nulls, prune
from steersman.apimachinery.schema.structural import read_schema

from .strategies import Schema, cases


def copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


@given(cases())
def test_pruning_twice_is_pruning_once(case: tuple[Schema, dict[str, Any]]) -> None:
    schema, obj = case
    pipeline = compile_schema(schema)
    pipeline.prune(obj)
    once = copied(obj)
    assert pipeline.prune(obj) == []
    assert obj == once


@given(cases())
def test_defaulting_twice_is_defaulting_once(case: tuple[Schema, dict[str, Any]]) -> None:
    schema, obj = case
    pipeline = compile_schema(schema)
    pipeline.default(obj)
    once = copied(obj)
    pipeline.default(obj)
    assert obj == once


@settings(max_examples=300)
@given(cases())
def test_what_looks_valid_is_valid(case: tuple[Schema, dict[str, Any]]) -> None:
    schema, obj = case
    node = read_schema(schema)
    exact = [*Checker().check(node, obj).errors.values(), *check_list_types(node, obj)]
    pipeline = compile_schema(schema)
    assert pipeline.validate(obj) == exact
    if pipeline._is_valid(obj):  # otherwise the exact one decides
        assert exact == []


@settings(max_examples=300)
@given(cases())
def test_what_looks_clean_is_clean(case: tuple[Schema, dict[str, Any]]) -> None:
    schema, obj = case
    node = read_schema(schema)
    if clean_test(node, root=True)(obj):
        before = copied(obj)
        unknown: list[str] = []
        prune(obj, node, "", unknown, root=True)
        drop_nulls(obj, node, root=True)
        assert (unknown, obj) == ([], before)


@given(cases())
def test_valid_objects_stay_valid_when_stored_and_read_again(case: tuple[Schema, dict[str, Any]]) -> None:
    schema, obj = case
    pipeline = compile_schema(schema)
    pipeline.prune(obj)
    pipeline.default(obj)
    if pipeline.validate(obj):
        return
    again = copied(obj)
    assert pipeline.prune(again) == []
    pipeline.default(again)
    assert again == obj
    assert pipeline.validate(again, obj) == []


@given(cases())
def test_an_unchanged_field_is_always_forgiven(case: tuple[Schema, dict[str, Any]]) -> None:
    schema, obj = case
    obj.pop("metadata")
    schema["properties"]["kind"] = {"type": "string"}
    pipeline = compile_schema(schema)
    pipeline.prune(obj)
    text = json.dumps(schema)
    preserved = "x-kubernetes-preserve-unknown-fields" in text or '"additionalProperties": true' in text
    left = pipeline.validate({**obj, "kind": "L"}, obj)
    # where unknown fields are kept, old and new cannot be told to be equal
    assert left == [] or preserved
