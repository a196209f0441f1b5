"""Which rules are evaluated on an object, and what is said where one does not hold."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.apimachinery.schema.cel import RuleTree
from steersman.apimachinery.schema.pipeline import compile_schema
from steersman.apimachinery.schema.structural import read_schema

TEXT = {"type": "string"}


def ruled(schema: dict[str, Any], *rules: str | dict[str, Any]) -> dict[str, Any]:
    listed = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return {**schema, "x-kubernetes-validations": listed}


def obj(*rules: str | dict[str, Any], **properties: Any) -> dict[str, Any]:
    return ruled({"type": "object", "properties": properties}, *rules)


def found(schema: dict[str, Any], data: Any, old: Any = None) -> list[str]:
    """The errors of `schema` for the field `f` of an object with this data, and of an object that it replaces."""
    tree = RuleTree(read_schema({"type": "object", "properties": {"f": schema}}))
    errors = tree.check({"f": data}, {"f": old} if old is not None else None)
    return [f"{error.field}: {error.body()}" for error in errors]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"rule": " self.a > 1 "}, "f: Invalid value: failed rule: self.a > 1"),
        ({"rule": "self.a > 1", "message": " too small "}, "f: Invalid value: too small"),
        ({"rule": "self.a > 1", "message": "m", "reason": "FieldValueForbidden"}, "f: Forbidden: m"),
        ({"rule": "self.a > 1", "message": "m", "reason": "FieldValueRequired"}, "f: Required value: m"),
        ({"rule": "self.a > 1", "reason": "FieldValueDuplicate"}, "f: Duplicate value"),
        ({"rule": "self.a > 1", "message": "m", "fieldPath": ".a"}, "f.a: Invalid value: m"),
        ({"rule": "self.a > 1", "messageExpression": "'a is %d'.format([self.a])"}, "f: Invalid value: a is 1"),
        ({"rule": "self.a > 1", "message": "m", "messageExpression": "'  '"}, "f: Invalid value: m"),
        ({"rule": "self.a > 1", "message": "m", "messageExpression": "'a\\nb'"}, "f: Invalid value: m"),
        ({"rule": "self.a > 1", "message": "m", "messageExpression": "string(1 / 0)"}, "f: Invalid value: m"),
        ({"rule": "self.a / 0 > 1"}, 'f: Invalid value: "object": division by zero evaluating rule: self.a / 0 > 1'),
    ],
)
def test_words(rule: dict[str, Any], text: str) -> None:
    assert found(obj(rule, a={"type": "integer"}), {"a": 1}) == [text]


def test_scalars_show_their_value() -> None:
    assert found(ruled(TEXT, "self != 'x'"), "x") == ["f: Invalid value: \"x\": failed rule: self != 'x'"]
    assert found(ruled({"type": "integer"}, "self > 5"), 5) == ["f: Invalid value: 5: failed rule: self > 5"]


def test_paths_of_rules_below() -> None:
    rule = ruled(TEXT, {"rule": "self != 'x'", "message": "m"})
    schema = obj(
        l={"type": "array", "items": rule},
        m={"type": "object", "additionalProperties": rule},
        o=obj(deep=rule),
    )
    data = {"l": ["a", "x"], "m": {"k": "x", "other": "y"}, "o": {"deep": "x"}}
    assert found(schema, data) == [
        'f.l[1]: Invalid value: "x": m',
        'f.m[k]: Invalid value: "x": m',
        'f.o.deep: Invalid value: "x": m',
    ]


def test_absent_and_null_data_have_no_rules() -> None:
    schema = obj(a=ruled({**TEXT, "nullable": True}, "false"))
    assert found(schema, {}) == []
    assert found(schema, {"a": None}) == []


def test_transition_rules_need_an_old_value() -> None:
    schema = obj(a=ruled(TEXT, {"rule": "self == oldSelf", "message": "immutable"}))
    assert found(schema, {"a": "x"}) == []
    assert found(schema, {"a": "x"}, {}) == []
    assert found(schema, {"a": "x"}, {"a": "x"}) == []
    assert found(schema, {"a": "y"}, {"a": "x"}) == ['f.a: Invalid value: "y": immutable']


def test_optional_old_self_is_evaluated_on_creation_too() -> None:
    rule = {"rule": "oldSelf.hasValue() ? oldSelf.value() == self : self == 'first'", "optionalOldSelf": True}
    schema = obj(a=ruled(TEXT, {**rule, "message": "m"}))
    assert found(schema, {"a": "first"}) == []
    assert found(schema, {"a": "x"}) == ['f.a: Invalid value: "x": m']
    assert found(schema, {"a": "x"}, {}) == ['f.a: Invalid value: "x": m']
    assert found(schema, {"a": "x"}, {"a": "x"}) == []
    assert found(schema, {"a": "y"}, {"a": "x"}) == ['f.a: Invalid value: "y": m']


def test_elements_of_map_lists_are_correlated_by_key_and_those_of_others_are_not() -> None:
    item = obj({"rule": "self.v >= oldSelf.v", "message": "shrinks"}, k=TEXT, v={"type": "integer"})
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    schema = {"type": "array", "items": item, **keyed}
    old = [{"k": "a", "v": 5}, {"k": "b", "v": 1}]
    assert found(schema, [{"k": "b", "v": 2}, {"k": "c", "v": 0}], old) == []
    assert found(schema, [{"k": "b", "v": 2}, {"k": "a", "v": 4}], old) == ["f[1]: Invalid value: shrinks"]
    assert found({"type": "array", "items": item}, [{"k": "a", "v": 1}], [{"k": "a", "v": 5}]) == []


def test_unchanged_values_are_forgiven() -> None:
    schema = obj(a=ruled(TEXT, "self == 'good'"), b=TEXT)
    assert found(schema, {"a": "bad", "b": "new"}, {"a": "bad", "b": "old"}) == []
    assert len(found(schema, {"a": "worse"}, {"a": "bad"})) == 1
    around = obj("self.a == 'good'", a=TEXT, b=TEXT)
    assert found(around, {"a": "bad", "b": "x"}, {"a": "bad", "b": "x"}) == []
    assert len(found(around, {"a": "bad", "b": "y"}, {"a": "bad", "b": "x"})) == 1


def test_transition_rules_are_never_forgiven() -> None:
    schema = obj(a=ruled(TEXT, "oldSelf == 'never'"))
    assert len(found(schema, {"a": "x"}, {"a": "x"})) == 1


def test_a_rule_that_does_not_compile_is_reported() -> None:
    (text,) = found(obj("self.zz"), {})
    assert text.startswith('f: Invalid value: "object": rule compile error: compilation failed: ERROR: <input>:1:5: ')


def test_metadata_of_the_root_and_of_embedded_resources() -> None:
    rules = ["self.metadata.name.startsWith('ok')", "self.kind == 'Gear' && self.apiVersion != ''"]
    tree = RuleTree(read_schema(obj(*rules)))
    ok: dict[str, Any] = {"apiVersion": "g/v1", "kind": "Gear", "metadata": {"name": "ok-1"}}
    assert tree.check(ok) == []
    (error,) = tree.check({**ok, "metadata": {"name": "no"}})
    assert error.field == "<nil>"
    embedded = {**obj("self.metadata.name == 'x'"), "x-kubernetes-embedded-resource": True}
    assert found(embedded, {"apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}}) == []


def test_the_budget_of_an_object_ends_all_rules() -> None:
    slow = "lists.range(300).all(x, lists.range(300).all(y, x + y >= 0))"
    schema = obj(*[slow] * 60, "false")
    found_errors = found(schema, {})
    assert len(found_errors) == 1
    assert "running out of cost budget, no further validation rules will be run" in found_errors[0]


def test_a_rule_that_costs_too_much() -> None:
    schema = obj("lists.range(2000).all(x, lists.range(2000).all(y, x + y >= 0))", "false")
    (text,) = found(schema, {})
    assert "'operation cancelled: actual cost limit exceeded': no further validation rules will be run" in text


def test_pipeline_passes_the_old_object() -> None:
    schema = {"type": "object", "properties": {"spec": obj({"rule": "self.a >= oldSelf.a"}, a={"type": "integer"})}}
    pipeline = compile_schema(schema)
    head = {"apiVersion": "g/v1", "kind": "Gear", "metadata": {"name": "n"}}
    old, new = {**head, "spec": {"a": 2}}, {**head, "spec": {"a": 1}}
    assert pipeline.validate(new) == []
    assert [error.field for error in pipeline.validate(new, old)] == ["spec"]


def test_null_elements_equal_no_text() -> None:
    texts = {"type": "array", "items": {**TEXT, "nullable": True}}
    assert found(ruled(texts, "self[0] == self[0] && self[0] != 'a' && self.exists(x, x == 'a')"), [None, "a"]) == []
    entries = {"type": "object", "additionalProperties": {**TEXT, "nullable": True}}
    assert found(ruled(entries, "self['k'] != 'v' && self.k == self.k"), {"k": None}) == []
