from __future__ import annotations

from typing import Any

import pytest

from steersman.apimachinery.apply.validate import validate

from .views import VIEW


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"a": "x", "n": 1, "nested": None, "items": None, "free": {"any": [1]}, "percent": "5%"}, ""),
        ("x", ".spec: expected map, got &{x}"),
        ({"a": 1}, ".spec.a: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"a": {"k": [True, None, 1.5]}},
            ".spec.a: expected string, got &value.valueUnstructured"
            '{Value:map[string]interface {}{"k":[]interface {}{true, interface {}(nil), 1.5}}}',
        ),
        ({"n": "x"}, ".spec.n: expected numeric (int or float), got string"),
        ({"n": True}, ".spec.n: expected numeric (int or float), got bool"),
        ({"n": {}}, ".spec.n: expected numeric (int or float), got map[string]interface {}"),
        ({"labels": ["x"]}, ".spec.labels: expected map, got &{[x]}"),
        ({"parts": {"name": "x"}}, ".spec.parts: expected list, got &{map[name:x]}"),
        ({"bogus": 1}, ".spec.bogus: field not declared in schema"),
        ({"tags": ["a", "b", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        ({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
         '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]'),
        ({"parts": ["x"]}, ".spec.parts: element 0: associative list with keys may not have non-map elements"),
        ({"items": ["a", 1]}, ".spec.items[1]: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"n": "x", "a": 1},
            "errors:\n  .spec.a: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .spec.n: expected numeric (int or float), got string",
        ),
    ],
)  # fmt: skip
def test_messages(spec: Any, message: str) -> None:
    assert validate(VIEW, {"apiVersion": "v1", "metadata": {"labels": {"a": "b"}}, "spec": spec}) == message


def test_duplicates_may_be_allowed() -> None:
    assert validate(VIEW, {"spec": {"tags": ["a", "a"]}}, allow_duplicates=True) == ""
