"""The expressions of a CRD's rules: they compile, and their estimated costs are bounded."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.apiextensions.cel_rules import rule_errors

TEXT = {"type": "string"}
HINT = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)
COMPARED = "self.all(x, self.all(y, x == y))"


def found(schema: dict[str, Any], **options: Any) -> list[tuple[str, str]]:
    """(field below the property `f`, message) of the errors of a schema for one property."""
    root = {"type": "object", "properties": {"f": schema}}
    return [(e.field.removeprefix("s.properties[f]"), e.body()) for e in rule_errors(root, "s", **options)]


def ruled(schema: dict[str, Any], **rule: Any) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [rule]}


def listed(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def test_a_compile_error_quotes_the_rule() -> None:
    ((field, body),) = found(ruled(TEXT, rule="self > 1"))
    assert field == ".x-kubernetes-validations[0].rule"
    assert body == (
        'Invalid value: {"Rule":"self \\u003e 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"",'
        '"OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:6: '
        "found no matching overload for '_>_' applied to '(string, int)'\n | self > 1\n | .....^"
    )


@pytest.mark.parametrize(
    ("rule", "field", "end"),
    [
        ({"rule": "self"}, "rule", "cel expression must evaluate to a bool"),
        ({"rule": "int('x') == 1"}, "rule", "program instantiation failed: type conversion error from 'string' to "),
        (
            {"rule": "true", "messageExpression": "self +"},
            "messageExpression",
            "messageExpression compilation failed: ERROR: <input>:1:7: Syntax error: mismatched input '<EOF>'",
        ),
        (
            {"rule": "true", "messageExpression": "1"},
            "messageExpression",
            "messageExpression must evaluate to a string",
        ),
        ({"rule": "true", "optionalOldSelf": True}, "optionalOldSelf", "may not be set if oldSelf is not used in rule"),
    ],
)
def test_refused(rule: dict[str, Any], field: str, end: str) -> None:
    ((where, body),) = found(ruled(TEXT, **rule))
    assert where == f".x-kubernetes-validations[0].{field}"
    assert end in body


def test_blank_rules_and_rules_in_faulty_schemas_are_passed_over() -> None:
    assert found(ruled(TEXT, rule="  ")) == []
    assert found(ruled(TEXT, rule="self.zz"), faulty=["s.properties[f]"]) == []
    assert found(ruled(listed(TEXT), rule="self.zz"), faulty=["s.properties[f].items"]) == []
    assert len(found(listed(ruled(TEXT, rule="self.zz")), faulty=["s.properties[f]"])) == 1


@pytest.mark.parametrize(
    ("schema", "factor"),
    [
        (ruled(listed(TEXT), rule=COMPARED), "more than 100x"),
        (ruled(listed(TEXT, maxItems=1000), rule="self.all(x, x.matches('^a+$') && x.contains('b'))"), "62.9x"),
    ],
)
def test_cost_of_a_rule(schema: dict[str, Any], factor: str) -> None:
    (field, body), *rest = found(schema)
    assert field == ".x-kubernetes-validations[0].rule"
    assert body == f"Forbidden: estimated rule cost exceeds budget by factor of {factor} {HINT}"
    assert all("contributed to" in body or "entire OpenAPIv3 schema" in body for _, body in rest)


def test_the_cost_of_a_rule_is_multiplied_by_how_often_it_can_occur() -> None:
    item = ruled({**TEXT, "maxLength": 1000}, rule="self.contains('abc')")
    assert found(listed(item, maxItems=10)) == []
    assert len(found(listed(item, maxItems=1_000_000))) == 3
    assert "more than 100x" not in found(listed(item, maxItems=1_000_000))[0][1]


def test_the_total_is_bounded_and_names_the_four_worst() -> None:
    rules = [{"rule": "self.all(x, x.contains('abc'))"}] * 12
    schema = {**listed({**TEXT, "maxLength": 1000}, maxItems=24_000), "x-kubernetes-validations": rules}
    errors = found(schema)
    assert [body for _, body in errors[:4]] == [
        "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    ] * 4
    assert [field for field, _ in errors[:4]] == [f".x-kubernetes-validations[{i}].rule" for i in range(4)]
    assert errors[4][0] == "s"


def test_unchanged_expressions_may_be_expensive() -> None:
    schema = ruled(listed(TEXT, maxItems=1000), rule="self.all(x, x.contains('b'))")
    assert any("estimated rule cost exceeds" in body for _, body in found(schema))
    assert not any("estimated rule cost exceeds" in body for _, body in found(schema, unchanged=True))


def test_old_self_needs_correlatable_data() -> None:
    item = ruled({**TEXT, "maxLength": 5}, rule="self == oldSelf")
    assert found(listed(item, maxItems=5)) == [
        (
            ".items.x-kubernetes-validations[0].rule",
            'Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema '
            "within s.properties[f]",
        )
    ]
    pair = {"type": "object", "properties": {"k": {**TEXT, "maxLength": 5}}}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    assert found(listed(ruled(pair, rule="self.k == oldSelf.k"), maxItems=5, **keyed)) == []
    assert found({"type": "object", "additionalProperties": item, "maxProperties": 5}) == []


def test_names_that_are_no_identifiers_are_escaped_or_hidden() -> None:
    schema = {"type": "object", "properties": {"a-b": TEXT, "in": TEXT, "0x": TEXT, "é": TEXT}}
    assert found(ruled(schema, rule="self.a__dash__b == self.__in__")) == []
    assert "undefined field 'zz'" in found(ruled(schema, rule="has(self.zz)"))[0][1]
