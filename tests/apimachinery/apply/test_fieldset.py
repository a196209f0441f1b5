from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given

from steersman.apimachinery.apply.fieldset import EMPTY, FieldSet, from_paths
from steersman.apimachinery.apply.path import PathError, sort_key

from .strategies import field_sets, path_lists

Paths = list[tuple[str, ...]]


def below(path: tuple[str, ...], others: set[tuple[str, ...]]) -> bool:
    return any(path[:length] in others for length in range(1, len(path) + 1))


@given(path_lists)
def test_a_set_has_the_paths_that_it_was_made_of(members: Paths) -> None:
    fields = from_paths(members)
    assert set(fields) == set(members)
    assert len(list(fields)) == len(set(members))
    assert bool(fields) == bool(members)
    assert all(fields.has(path) for path in members)
    parents = {path[:length] for path in members for length in range(len(path))}
    assert not any(fields.has(path) for path in parents - set(members))


@given(path_lists, path_lists)
def test_algebra(a: Paths, b: Paths) -> None:
    left, right = from_paths(a), from_paths(b)
    before = copy.deepcopy((left.tree, right.tree))
    assert set(left.union(right)) == set(a) | set(b)
    assert set(left.intersection(right)) == set(a) & set(b)
    assert set(left.difference(right)) == set(a) - set(b)
    assert set(left.recursive_difference(right)) == {path for path in a if not below(path, set(b))}
    assert (left.tree, right.tree) == before


@given(field_sets, field_sets)
def test_results_are_canonical(a: FieldSet, b: FieldSet) -> None:
    for result in (a.union(b), a.intersection(b), a.difference(b), a.recursive_difference(b), a.leaves()):
        assert orjson.dumps(from_paths(result).tree) == orjson.dumps(result.tree)


@given(field_sets, field_sets)
def test_nothing_is_copied_when_nothing_changes(a: FieldSet, b: FieldSet) -> None:
    assert a.union(a.intersection(b)).tree is a.tree or not a
    assert a.difference(EMPTY) is a
    assert a.union(EMPTY) is a
    rest = a.difference(b)
    assert rest.difference(b).tree is rest.tree


@given(field_sets)
def test_decode_is_the_inverse_of_encode(fields: FieldSet) -> None:
    text = orjson.dumps(fields.encode())
    assert orjson.dumps(FieldSet.decode(orjson.loads(text)).encode()) == text
    assert FieldSet.decode(dict(reversed(fields.encode().items()))) == fields


@given(field_sets)
def test_keys_are_in_order_at_every_level(fields: FieldSet) -> None:
    def check(node: dict[str, Any]) -> None:
        assert list(node) == sorted(node, key=sort_key)
        for child in node.values():
            check(child)

    check(fields.encode())


@given(field_sets)
def test_leaves_have_no_member_below(fields: FieldSet) -> None:
    members = set(fields)
    expected = {path for path in members if not any(other[: len(path)] == path and other != path for other in members)}
    assert set(fields.leaves()) == expected


def test_encoding_of_members_with_members_below() -> None:
    fields = FieldSet.of(("spec",), ("spec", "a"), ("metadata", "labels", "x"))
    assert orjson.dumps(fields.encode()) == (b'{"f:metadata":{"f:labels":{"f:x":{}}},"f:spec":{".":{},"f:a":{}}}')
    assert set(fields) == {("f:spec",), ("f:spec", "f:a"), ("f:metadata", "f:labels", "f:x")}


@pytest.mark.parametrize(
    ("given_fields", "expected"),
    [
        (None, {}),
        ({}, {}),
        ({".": {}}, {}),
        ({"f:a": None}, {"f:a": {}}),
        ({"f:a": {"x:new": {}}}, {"f:a": {}}),
        ({"x:new": {"f:a": {}}}, {}),
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({"f:a": {"f:b": {}, ".": {}}}, {"f:a": {".": {}, "f:b": {}}}),
        ({'k:{"b":1,"a":2}': {}, 'k:{"a":2, "b":1}': {"f:a": {}}}, {'k:{"a":2,"b":1}': {".": {}, "f:a": {}}}),
    ],
)
def test_decode_of_fields_from_elsewhere(given_fields: Any, expected: dict[str, Any]) -> None:
    assert FieldSet.decode(given_fields).encode() == expected


@pytest.mark.parametrize("fields", [[], "x", 5, {"a": {}}, {"f:a": 5}, {"f:a": []}, {"v:x": {}}])
def test_decode_refuses_other_values(fields: Any) -> None:
    with pytest.raises(PathError):
        FieldSet.decode(fields)


def test_below() -> None:
    fields = FieldSet.of(("a",), ("a", "b"), ("c",))
    assert fields.below("f:a") == FieldSet.of(("b",))
    assert fields.below("f:c") == EMPTY
    assert fields.below("f:none") == EMPTY


def test_equal_sets_have_equal_hashes() -> None:
    assert len({FieldSet.of(("a", "b")), FieldSet.of(("a", "b")), FieldSet.of(("a",))}) == 2
