"""Defaults are filled where a field is absent, or null without being nullable, and never shared."""

from typing import Any

import pytest

from steersman.apimachinery.schema import compile_schema


def fill(schema: dict[str, Any], value: Any) -> Any:
    obj = {"spec": value}
    compile_schema({"type": "object", "properties": {"spec": schema}}).default(obj)
    return obj["spec"]


NAME = {"type": "string", "default": "x"}
NULLABLE = {"type": "string", "nullable": True, "default": "x"}


@pytest.mark.parametrize(
    ("schema", "given", "filled"),
    [
        ({"type": "object", "properties": {"a": NAME}}, {}, {"a": "x"}),
        ({"type": "object", "properties": {"a": NAME}}, {"a": "y"}, {"a": "y"}),
        ({"type": "object", "properties": {"a": NAME}}, {"a": None}, {"a": "x"}),
        ({"type": "object", "properties": {"a": NULLABLE}}, {"a": None}, {"a": None}),
        ({"type": "object", "properties": {"a": NULLABLE}}, {}, {"a": "x"}),
        ({"type": "object", "properties": {"a": {"type": "string", "default": None}}}, {}, {}),
        ({"type": "object", "properties": {"a": {"type": "integer", "default": 0}}}, {}, {"a": 0}),
        ({"type": "array", "items": NAME}, [None, "y"], ["x", "y"]),
        ({"type": "array", "items": NULLABLE}, [None], [None]),
        ({"type": "object", "additionalProperties": NAME}, {"k": None}, {"k": "x"}),
        (
            {"type": "array", "items": {"type": "object", "properties": {"a": NAME}}},
            [{}, {"a": "y"}],
            [{"a": "x"}, {"a": "y"}],
        ),
        ({"type": "object", "properties": {"a": NAME}}, "not an object", "not an object"),
    ],
)
def test_fills(schema: dict[str, Any], given: Any, filled: Any) -> None:
    assert fill(schema, given) == filled


def test_a_default_object_gets_the_defaults_inside_it() -> None:
    inner = {"type": "object", "properties": {"a": NAME, "b": {"type": "integer", "default": 1}}, "default": {"b": 2}}
    assert fill({"type": "object", "properties": {"o": inner}}, {}) == {"o": {"a": "x", "b": 2}}


def test_absent_parents_stay_absent() -> None:
    inner = {"type": "object", "properties": {"a": NAME}}
    assert fill({"type": "object", "properties": {"o": inner}}, {}) == {}


def test_objects_do_not_share_defaults() -> None:
    listed = {"type": "array", "items": {"type": "string"}, "default": ["a"]}
    pipeline = compile_schema({"type": "object", "properties": {"l": listed}})
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    pipeline.default(first)
    first["l"].append("b")
    pipeline.default(second)
    assert second == {"l": ["a"]}
