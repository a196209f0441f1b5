"""An update is not refused for what it leaves as it was."""

from typing import Any

import pytest

from steersman.apimachinery.schema import compile_schema

SHORT = {"type": "string", "maxLength": 2}
ITEM = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": SHORT}}
SPEC = {
    "type": "object",
    "properties": {
        "a": SHORT,
        "b": SHORT,
        "n": {"type": "integer"},
        "atomic": {"type": "array", "items": SHORT},
        "keyed": {
            "type": "array",
            "items": ITEM,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "map": {"type": "object", "additionalProperties": SHORT},
        "any": {"type": "object", "properties": {"a": SHORT}, "anyOf": [{"properties": {"a": {"minLength": 9}}}]},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "maxProperties": 0},
    },
}
PIPELINE = compile_schema({"type": "object", "properties": {"apiVersion": {"enum": ["x"]}, "spec": SPEC}})


def fields(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    return [error.field for error in PIPELINE.validate({"spec": new}, {"spec": old})]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": "bad"}, {"a": "bad", "b": "x"}),
        ({"n": "text"}, {"n": "text", "a": "x"}),
        ({"atomic": ["bad", "x"]}, {"atomic": ["bad", "x"], "a": "x"}),
        ({"map": {"k": "bad"}}, {"map": {"k": "bad", "l": "x"}}),
        ({"keyed": [{"k": "1", "v": "bad"}]}, {"keyed": [{"k": "2"}, {"k": "1", "v": "bad"}]}),
        ({"set": ["a", "a"]}, {"set": ["a", "a", "a"]}),
        ({"any": {"a": "x"}}, {"any": {"a": "x"}, "b": "x"}),
    ],
)
def test_forgiven(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert fields(new, {}) != []
    assert fields(new, old) == []


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ({"a": "bad"}, {"a": "worse"}, "spec.a"),
        ({"a": "bad"}, {"b": "bad"}, "spec.b"),
        ({"atomic": ["bad", "x"]}, {"atomic": ["bad", "y"]}, "spec.atomic[0]"),
        ({"keyed": [{"k": "1", "v": "bad"}]}, {"keyed": [{"k": "2", "v": "bad"}]}, "spec.keyed[0].v"),
        ({"set": ["a"]}, {"set": ["a", "a"]}, "spec.set[1]"),
        ({"free": {"x": 1}}, {"free": {"x": 1}, "a": "x"}, "spec.free"),
    ],
)
def test_not_forgiven(old: dict[str, Any], new: dict[str, Any], field: str) -> None:
    assert fields(new, old) == [field]


def test_a_change_of_api_version_is_never_forgiven() -> None:
    errors = PIPELINE.validate({"apiVersion": "y", "kind": "K"}, {"apiVersion": "y", "kind": "L"})
    assert [error.field for error in errors] == ["apiVersion"]
