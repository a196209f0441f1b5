"""What type checking looks at, and what it says."""

from __future__ import annotations

from typing import Any

from steersman.api import kinds
from steersman.api.admissionregistration.type_checking import (
    Typed,
    expression_warnings,
    kind_declaration,
    types_to_check,
)
from steersman.apimachinery.gvk import GroupVersionKind

TREE = GroupVersionKind("x.io", "v1", "Tree")


def resolve(group: str, version: str, resource: str) -> list[GroupVersionKind]:
    return [GroupVersionKind(group, version, resource)]


def rule(groups: list[str], resources: list[str], versions: tuple[str, ...] = ("v1",)) -> dict[str, Any]:
    return {"apiGroups": groups, "apiVersions": list(versions), "resources": resources}


def found(*rules: dict[str, Any]) -> list[str]:
    return [kind.kind for kind in types_to_check({"matchConstraints": {"resourceRules": list(rules)}}, resolve)]


def test_what_is_named_by_a_wildcard_is_not_looked_at() -> None:
    assert found(rule(["*"], ["a"]), rule(["x"], ["b"], ("*",)), rule(["x"], ["*", "c/status", "d"])) == ["d"]


def test_ten_kinds_of_one_rule_are_enough() -> None:
    many = [f"k{number:02}" for number in range(20)]
    assert found(rule(["x"], ["zz"]), rule(["x"], many), rule(["x"], ["never"])) == [*many[:10], "zz"]


def warnings(expression: str, **spec: Any) -> list[dict[str, str]]:
    tree = kind_declaration({"$ref": "#/components/schemas/Tree"}, _named(), "Tree")
    return expression_warnings({"validations": [{"expression": expression}], **spec}, [Typed(TREE, tree)], None)


def _named() -> dict[str, Any]:
    left = {"$ref": "#/components/schemas/Tree"}
    return {"Tree": {"type": "object", "properties": {"name": {"type": "string"}, "left": left}}}


def test_a_type_inside_of_itself_has_no_fields() -> None:
    assert warnings("object.name == 'x' && has(object.left)") == []
    [warning] = warnings("object.left.name == 'x'")
    assert warning["fieldRef"] == "spec.validations[0].expression"
    assert warning["warning"].startswith("x.io/v1, Kind=Tree: ERROR: <input>:1:12: undefined field 'name'")


def test_a_variable_that_does_not_fit_is_of_any_type_after_that() -> None:
    listed = [{"name": "bad", "expression": "object.nothing"}, {"name": "good", "expression": "object.name"}]
    assert warnings("variables.bad == 1 && variables.good == 'x'", variables=listed) == []
    assert len(warnings("variables.good == 1", variables=listed)) == 1


def test_every_built_in_kind_has_a_declaration() -> None:
    for kind in kinds.builtin_kinds():
        decl = kind_declaration(kinds.schemas()[kinds.schema_name(kind)], kinds.schemas(), kind.kind)
        assert decl is not None and {"kind", "apiVersion", "metadata"} <= set(decl.fields), kind
