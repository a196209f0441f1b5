"""What lint finds in definitions: for each rule what it is about, and what it leaves alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from steersman.api.apiextensions.lint import RULES, compare, lint


def crd(spec: str = "{}", *, status: str = "", **version: Any) -> dict[str, Any]:
    """A definition with one version; `spec` and `status` are schemas of these, the others parts of the version."""
    properties = {"spec": {"type": "object", **yaml.safe_load(spec)}}
    if status:
        properties["status"] = {"type": "object", **yaml.safe_load(status)}
    root = {"type": "object", "required": ["spec"], "properties": properties}
    base = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    names = {"plural": "widgets", "kind": "Widget"}
    versions = [{**base, **version}]
    return {"spec": {"group": "shop.example.com", "scope": "Namespaced", "names": names, "versions": versions}}


def told(found: list[Any], rule: str) -> list[tuple[str, str]]:
    """(severity, subject) of what a rule found."""
    return [(each.severity, each.subject) for each in found if each.rule == rule]


A = "{properties: {a: %s}}"
OPTIONAL = "properties: {b: {type: string, default: x}}"


@pytest.mark.parametrize(
    ("rule", "spec", "expected"),
    [
        ("unreachable-default", A % f"{{type: object, {OPTIONAL}}}", ("warning", "v1 spec.a")),
        ("unreachable-default", A % f"{{type: object, default: {{}}, {OPTIONAL}}}", None),
        ("unreachable-default", f"{{required: [a], properties: {{a: {{type: object, {OPTIONAL}}}}}}}", None),
        ("unreachable-default", A % f"{{type: array, items: {{type: object, {OPTIONAL}}}}}", None),
        ("unreachable-default", A % "{type: object, properties: {b: {type: string}}}", None),
        ("unreachable-default", A % "{type: object, properties: {b: {type: string, default: ''}}}", None),
        ("unreachable-default", A % "{type: array, items: {type: string, default: x}}", ("warning", "v1 spec.a[]")),
        (
            "unreachable-default",
            A % "{type: object, additionalProperties: {type: string, default: x}}",
            ("warning", "v1 spec.a.*"),
        ),
        (
            "shadowed-default",
            A % "{type: object, default: {b: y}, %s}" % OPTIONAL,
            ("warning", "v1 spec.a.b"),
        ),
        ("shadowed-default", A % "{type: object, default: {b: x}, %s}" % OPTIONAL, None),
        (
            "required-with-default",
            "{required: [a], properties: {a: {type: string, default: x}}}",
            ("warning", "v1 spec.a"),
        ),
        ("required-with-default", A % "{type: string, default: x}", None),
        ("unbounded-list", A % "{type: array, items: {type: integer}}", ("info", "v1 spec.a")),
        ("unbounded-list", A % "{type: array, maxItems: 3, items: {type: integer}}", None),
        (
            "unbounded-list",
            A % "{type: array, items: {type: integer, x-kubernetes-validations: [{rule: self > 0}]}}",
            ("warning", "v1 spec.a"),
        ),
        (
            "unbounded-list",
            "{x-kubernetes-validations: [{rule: 'self.a.all(x, x > 0)'}], "
            "properties: {a: {type: array, items: {type: integer}}}}",
            ("warning", "v1 spec.a"),
        ),
        (
            "unbounded-list",
            "{x-kubernetes-validations: [{rule: self.b > 0}], "
            "properties: {b: {type: integer}, a: {type: array, items: {type: integer}}}}",
            ("info", "v1 spec.a"),
        ),
        ("unbounded-map", A % "{type: object, additionalProperties: {type: integer}}", ("info", "v1 spec.a")),
        ("unbounded-map", A % "{type: object, maxProperties: 2, additionalProperties: {type: integer}}", None),
        ("unbounded-string", A % "{type: string}", ("info", "v1 spec.a")),
        (
            "unbounded-string",
            A % "{type: string, x-kubernetes-validations: [{rule: 'self != \"\"'}]}",
            ("warning", "v1 spec.a"),
        ),
        ("unbounded-string", A % "{type: string, maxLength: 4}", None),
        ("unbounded-string", A % "{type: string, enum: [a]}", None),
        ("unbounded-string", A % "{type: string, format: date-time}", None),
        ("atomic-list", A % "{type: array, items: {type: object}}", ("warning", "v1 spec.a")),
        ("atomic-list", A % "{type: array, x-kubernetes-list-type: atomic, items: {type: object}}", None),
        ("atomic-list", A % "{type: array, items: {type: string}}", None),
        ("empty-object", A % "{type: object}", ("warning", "v1 spec.a")),
        ("empty-object", A % "{type: object, x-kubernetes-preserve-unknown-fields: true}", None),
        ("empty-object", A % "{type: object, additionalProperties: {type: string}}", None),
        ("empty-object", A % "{type: object, x-kubernetes-embedded-resource: true}", None),
        ("required-unknown-field", "{required: [b], properties: {a: {type: string}}}", ("warning", "v1 spec")),
        ("required-unknown-field", "{required: [a], properties: {a: {type: string}}}", None),
        ("integer-without-format", A % "{type: integer}", ("info", "v1 spec.a")),
        ("integer-without-format", A % "{type: integer, format: int64}", None),
    ],
)
def test_rules_about_schemas(rule: str, spec: str, expected: tuple[str, str] | None) -> None:
    assert told(lint(crd(spec)), rule) == ([expected] if expected else [])


def test_defaults_of_what_must_be_asked_for() -> None:
    """A part that requires something is there by choice; the spec itself is not."""
    part = "{type: object, required: [c], properties: {b: {type: string, default: x}, c: {type: string}}}"
    assert told(lint(crd(A % part)), "unreachable-default") == [("info", "v1 spec.a")]
    whole = crd("{required: [c], properties: {b: {type: string, default: x}, c: {type: string}}}")
    root = whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert told(lint(whole), "unreachable-default") == []
    root["required"] = []
    assert told(lint(whole), "unreachable-default") == [("warning", "v1 spec")]


@pytest.mark.parametrize(
    ("pattern", "anchored"),
    [
        ("^a$", True),
        ("a", False),
        ("^a", False),
        ("a$", False),
        (r"^a\$", False),
        (r"^a\\$", True),
        ("^a|b$", False),
        ("^a$|^b$", True),
        ("^(a|b)$", True),
        ("(^a$|^b$)", True),
        ("(?:^a|b$)", False),
        ("^[|]$", True),
        ("^[]|]$", True),
        ("^[^]|]$", True),
        ("^(a)|(b)$", False),
        (".*a.*", True),
        (r"\Aa\z", True),
        ("(?i)^a$", True),
        ("(?P<x>^a$)", True),
        ("^(", False),
    ],
)
def test_anchors(pattern: str, anchored: bool) -> None:
    found = lint(crd(f"{{properties: {{a: {{type: string, pattern: {json.dumps(pattern)}}}}}}}"))
    assert (told(found, "unanchored-pattern") == []) == anchored


REPLICAS = "{properties: {replicas: {type: integer}}}"


@pytest.mark.parametrize(
    ("rule", "definition", "expected"),
    [
        ("missing-status-subresource", crd(status=REPLICAS), "v1"),
        ("missing-status-subresource", crd(status=REPLICAS, subresources={"status": {}}), None),
        ("missing-scale-subresource", crd(REPLICAS, status=REPLICAS), "v1"),
        ("missing-scale-subresource", crd(REPLICAS), None),
        ("status-not-in-schema", crd(subresources={"status": {}}), "v1"),
        ("unknown-scale-path", crd(subresources={"scale": {"specReplicasPath": ".spec.replicas"}}), "v1"),
        ("unknown-scale-path", crd(REPLICAS, subresources={"scale": {"specReplicasPath": ".spec.replicas"}}), None),
        ("nothing-served", crd(served=False), ""),
        ("preserve-unknown-at-root", crd(), None),
    ],
)
def test_rules_about_versions(rule: str, definition: dict[str, Any], expected: str | None) -> None:
    assert told(lint(definition), rule) == ([(RULES[rule].severity, expected)] if expected is not None else [])


@pytest.mark.parametrize(
    ("path", "kind", "rule"),
    [
        (".spec.a", "string", None),
        (".spec.b", "string", "unknown-column-path"),
        (".spec.a", "integer", "column-type"),
        (".metadata.labels.x", "string", None),
        (".spec.list[0].x", "string", None),
        (".spec.list[?(@.x=='1')].y", "string", "unknown-column-path"),
        (".spec.list[*]['x']", "string", None),
        (".spec.map.any", "string", None),
        (".spec.map['any.thing']", "date", None),
        (".spec.free.any.thing", "integer", None),
        ("..anything", "string", None),
        (".spec.a[", "string", None),
    ],
)
def test_columns(path: str, kind: str, rule: str | None) -> None:
    spec = (
        "{properties: {a: {type: string}, map: {type: object, additionalProperties: {type: string}}, "
        "list: {type: array, items: {type: object, properties: {x: {type: string}}}}, "
        "free: {type: object, x-kubernetes-preserve-unknown-fields: true}}}"
    )
    column = {"name": "C", "type": kind, "jsonPath": path}
    found = lint(crd(spec, additionalPrinterColumns=[column]))
    assert [each.rule for each in found if each.subject == "v1 column C"] == ([rule] if rule else [])


def test_versions_that_lose_fields() -> None:
    definition = crd("{properties: {a: {type: string}, free: {type: object, properties: {b: {type: string}}}}}")
    stored = crd("{properties: {a: {type: integer}}}")["spec"]["versions"][0]
    definition["spec"]["versions"][0] |= {"storage": False}
    definition["spec"]["versions"].append({**stored, "name": "v2"})
    found = lint(definition)
    assert told(found, "version-types-differ") == [("warning", "v1 spec.a")]
    assert told(found, "lossy-version") == [("warning", "v1 spec.free")]
    definition["spec"]["conversion"] = {"strategy": "Webhook"}
    assert not told(lint(definition), "lossy-version")


def test_versions_that_refuse_what_others_take() -> None:
    loose, tight = "{properties: {a: {type: string}}}", "{required: [a], properties: {a: {type: string, maxLength: 3}}}"
    for served, stored, expected in ((loose, tight, ["v2 spec.a", "v2 spec.a"]), (tight, loose, [])):
        definition = crd(served)
        definition["spec"]["versions"][0] |= {"storage": False}
        definition["spec"]["versions"].append({**crd(stored)["spec"]["versions"][0], "name": "v2"})
        assert [subject for _, subject in told(lint(definition), "version-stricter")] == expected


BREAKS = [
    ("field-removed", "{type: string}", None),
    ("type-changed", "{type: string}", "{type: integer}"),
    ("type-changed", "{type: integer}", "{x-kubernetes-int-or-string: true}"),
    ("enum-narrowed", "{type: string, enum: [x, y]}", "{type: string, enum: [x, z]}"),
    ("enum-narrowed", "{type: string}", "{type: string, enum: [x]}"),
    ("bound-tightened", "{type: integer}", "{type: integer, minimum: 0}"),
    ("bound-tightened", "{type: integer, maximum: 2}", "{type: integer, maximum: 1}"),
    ("bound-tightened", "{type: integer, maximum: 2}", "{type: integer, maximum: 2, exclusiveMaximum: true}"),
    ("bound-tightened", "{type: integer, multipleOf: 2}", "{type: integer, multipleOf: 4}"),
    ("bound-tightened", "{type: string, minLength: 1}", "{type: string, minLength: 2}"),
    ("bound-tightened", "{type: array, items: {type: string}}", "{type: array, maxItems: 2, items: {type: string}}"),
    ("bound-tightened", "{type: array, items: {type: string}}", "{type: array, items: {type: string, maxLength: 2}}"),
    ("pattern-changed", "{type: string}", "{type: string, pattern: ^a}"),
    ("nullable-removed", "{type: string, nullable: true}", "{type: string}"),
    ("list-type-changed", "{type: array}", "{type: array, x-kubernetes-list-type: set}"),
    ("list-type-changed", "{type: object}", "{type: object, x-kubernetes-map-type: atomic}"),
    ("additional-properties-removed", "{type: object, additionalProperties: {type: string}}", "{type: object}"),
    ("preserve-unknown-removed", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}"),
]
WARNS = [
    ("pattern-changed", "{type: string, pattern: ^b}", "{type: string, pattern: ^a}"),
    ("format-changed", "{type: string}", "{type: string, format: date}"),
    ("default-changed", "{type: string, default: x}", "{type: string, default: y}"),
    ("default-changed", "{type: string, default: x}", "{type: string}"),
    ("rule-added", "{type: string}", "{type: string, x-kubernetes-validations: [{rule: self != ''}]}"),
]
FINE = [
    ("{type: string, enum: [x]}", "{type: string, enum: [x, y]}"),
    ("{type: string, enum: [x]}", "{type: string}"),
    ("{type: integer, minimum: 1}", "{type: integer, minimum: 0}"),
    ("{type: integer, multipleOf: 4}", "{type: integer, multipleOf: 2}"),
    ("{type: string, maxLength: 1}", "{type: string}"),
    ("{type: string}", "{type: string, minLength: 0, nullable: true, default: x}"),
    ("{type: string, pattern: ^a}", "{type: string}"),
    ("{type: array}", "{type: array, x-kubernetes-list-type: atomic}"),
    ("{type: object}", "{type: object, x-kubernetes-map-type: granular, x-kubernetes-preserve-unknown-fields: true}"),
    ("{type: string, description: old}", "{type: string, description: new}"),
]


@pytest.mark.parametrize(("rule", "old", "new"), BREAKS + WARNS)
def test_changes_that_break(rule: str, old: str, new: str | None) -> None:
    found = compare(crd(A % old), crd(A % new if new else "{properties: {b: {type: integer}}}"))
    assert [each.rule for each in found] == [rule]
    assert found[0].severity == ("error" if (rule, old, new) in BREAKS else "warning")
    assert found[0].subject.startswith("v1 spec.a")


@pytest.mark.parametrize(("old", "new"), FINE)
def test_changes_that_break_nothing(old: str, new: str) -> None:
    assert compare(crd(A % old), crd(A % new)) == []


def test_nothing_breaks_when_nothing_changes() -> None:
    for _, old, new in BREAKS + WARNS:
        for each in (old, new):
            if each:
                assert compare(crd(A % each), crd(A % each)) == []


def test_required_fields() -> None:
    old = crd(A % "{type: string}")
    added = compare(old, crd("{required: [a, b], properties: {a: {type: string}, b: {type: string, default: x}}}"))
    assert told(added, "required-added") == [("error", "v1 spec.a")]


def test_a_renamed_field_is_guessed() -> None:
    old = crd("{properties: {a: {type: string, maxLength: 3}, keep: {type: integer}}}")
    new = crd("{properties: {b: {type: string, maxLength: 3}, keep: {type: integer}}}")
    [found] = compare(old, new)
    assert (found.rule, "(renamed to spec.b?)" in found.message) == ("field-removed", True)


def test_versions_subresources_and_scope() -> None:
    old = crd(subresources={"status": {}}, selectableFields=[{"jsonPath": ".spec.a"}])
    other = {**old["spec"]["versions"][0], "name": "v2", "storage": False}
    old["spec"]["versions"].append(other)
    new = crd()
    new["spec"]["scope"] = "Cluster"
    assert [(each.rule, each.subject) for each in compare(old, new)] == [
        ("scope-changed", ""),
        ("version-removed", "v2"),
        ("subresource-removed", "v1"),
        ("selectable-field-removed", "v1"),
    ]
    unserved = crd(subresources={"status": {}}, selectableFields=[{"jsonPath": ".spec.a"}])
    unserved["spec"]["versions"].append({**other, "served": False})
    assert told(compare(old, unserved), "version-removed") == [("error", "v2")]
    assert compare(unserved, old) == []
