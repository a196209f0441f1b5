"""Objects of a kind, made from its schema: right ones, and ones that are wrong somewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from hypothesis import strategies as some

_FORMATS = {
    "date-time": ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.25+01:00"],
    "date": ["2026-01-02"],
    "uuid": ["7f3b1c52-9f0e-4a59-9d1a-0f4f7b2b8c11"],
    "ipv4": ["10.0.0.1"],
    "ipv6": ["fd00::1"],
    "cidr": ["10.0.0.0/8", "fd00::/8"],
    "uri": ["https://example.com/a", "http://example.com/a?b=c"],
    "byte": ["YWJj", ""],
    "password": ["secret"],
    "duration": ["5m", "1h30m0s"],
    "hostname": ["a.example.com"],
    "email": ["a@example.com"],
}
_ODD = ["", "x", "A b", "-1", "5m", "10.0.0.256", "2026-13-01", "ü", "https://", "1Gi", "%"]
_TEXTS = some.text(some.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8)
_ANYTHING: some.SearchStrategy[Any] = some.recursive(
    some.none() | some.booleans() | some.integers(-3, 300) | _TEXTS,
    lambda inner: some.lists(inner, max_size=2) | some.dictionaries(some.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)
_SOLID = some.booleans() | some.integers(-3, 300) | _TEXTS


@some.composite
def objects_of(draw: some.DrawFn, crd: Mapping[str, Any], *, wrong: bool) -> dict[str, Any]:
    """An object of a served version. `wrong` lets about every second one be wrong in some way."""
    spec = crd["spec"]
    version = draw(some.sampled_from([each for each in spec["versions"] if each["served"]]))
    schema = version["schema"]["openAPIV3Schema"]
    breaks = wrong and draw(some.booleans())
    found: dict[str, Any] = {
        "apiVersion": f"{spec['group']}/{version['name']}",
        "kind": spec["names"]["kind"],
        "metadata": {"name": "example"},
    }
    skipped = {"apiVersion", "kind", "metadata"}
    rest = {key: node for key, node in schema["properties"].items() if key not in skipped}
    made = draw(_object({**schema, "properties": rest}, breaks))
    return found | {key: value for key, value in made.items() if key not in skipped}


def _value(node: Mapping[str, Any], breaks: bool) -> some.SearchStrategy[Any]:
    right = _right(node, breaks)
    if node.get("nullable"):
        right = right | some.none()
    if not breaks:
        return right
    return some.integers(0, 11).flatmap(lambda at: _ANYTHING if at == 0 else right)


def _right(node: Mapping[str, Any], breaks: bool) -> some.SearchStrategy[Any]:
    kind = node.get("type")
    if node.get("x-kubernetes-int-or-string"):
        return some.integers(0, 9) | some.sampled_from(["1", "5"])
    if node.get("enum"):
        return some.sampled_from([*node["enum"], *(["other"] if breaks else [])])
    if kind == "object":
        return _map(node, breaks) if "properties" not in node else _object(node, breaks)
    if kind == "array":
        return _list(node, breaks)
    if kind == "string":
        return _text(node, breaks)
    if kind == "integer":
        return _integer(node, breaks)
    if kind == "number":
        return some.floats(-2, 3) if breaks else _number(node)
    return some.booleans() if kind == "boolean" else _SOLID


def _number(node: Mapping[str, Any]) -> some.SearchStrategy[float]:
    right: some.SearchStrategy[float] = some.sampled_from([0, 1, 0.25, 0.5, 1.0, node.get("minimum", 0)])
    return right.filter(lambda number: number > 0) if node.get("exclusiveMinimum") else right


def _integer(node: Mapping[str, Any], breaks: bool) -> some.SearchStrategy[int]:
    low = node.get("minimum", 0) + bool(node.get("exclusiveMinimum"))
    high = min(node.get("maximum", 50) - bool(node.get("exclusiveMaximum")), 2**31 - 1)
    step = node.get("multipleOf", 1)
    right = some.integers(-(-low // step), high // step).map(lambda number: number * step)
    return right | some.integers(low - 2, high + 2) | some.just(2**40) if breaks else right


def _text(node: Mapping[str, Any], breaks: bool) -> some.SearchStrategy[str]:
    least, most = node.get("minLength", 0), node.get("maxLength", 8)
    if node.get("format") in _FORMATS:
        right: some.SearchStrategy[str] = some.sampled_from(_FORMATS[node["format"]]).filter(
            partial(re.search, node.get("pattern", ""))
        )
    elif node.get("pattern"):
        right = some.from_regex(node["pattern"]).filter(
            lambda text: least <= len(text) <= most and not text.endswith("\n")
        )
    else:
        right = some.text("abcü ", min_size=least, max_size=min(most, 12))
    return right | some.sampled_from(_ODD) if breaks else right


def _list(node: Mapping[str, Any], breaks: bool) -> some.SearchStrategy[list[Any]]:
    items = _value(node["items"], breaks)
    least, most = node.get("minItems", 0), min(node.get("maxItems", 3), 4)
    if breaks:
        return some.lists(items, max_size=most + 1)
    keys = node.get("x-kubernetes-list-map-keys") or []
    defaults = {key: (node["items"].get("properties") or {}).get(key, {}).get("default") for key in keys}
    if keys:
        return some.lists(
            items,
            min_size=least,
            max_size=most,
            unique_by=lambda each: tuple(each.get(key, defaults[key]) for key in keys),
        )
    unique = {"unique_by": repr} if node.get("x-kubernetes-list-type") == "set" else {}
    return some.lists(items, min_size=least, max_size=most, **unique)  # type: ignore[arg-type]


def _map(node: Mapping[str, Any], breaks: bool) -> some.SearchStrategy[dict[str, Any]]:
    if node.get("x-kubernetes-embedded-resource"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"a": "b"}}}
        odd: list[dict[str, Any]] = [
            {},
            {"kind": "Pod"},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "A"}},
        ]
        return some.sampled_from([pod, *(odd if breaks else [])])
    values = node.get("additionalProperties")
    inner = _value(values, breaks) if isinstance(values, Mapping) else _SOLID
    most = min(node.get("maxProperties", 3), 3) + breaks
    return some.dictionaries(some.sampled_from("abcde"), inner, min_size=node.get("minProperties", 0), max_size=most)


@some.composite
def _object(draw: some.DrawFn, node: Mapping[str, Any], breaks: bool) -> dict[str, Any]:
    required = set(node.get("required") or ())
    if node.get("oneOf"):
        required |= set(draw(some.sampled_from(node["oneOf"]))["required"])
    found = {}
    for key, child in (node.get("properties") or {}).items():
        chance = draw(some.integers(0, 15))
        if chance < 7 or (key in required and not (breaks and chance == 15)):
            found[key] = draw(_value(child, breaks))
    if breaks and draw(some.integers(0, 9)) == 0:
        found["unknownField"] = draw(_SOLID)
    return found
