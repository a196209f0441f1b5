from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.apply.compare import Comparison, compare, equal
from steersman.apimachinery.apply.typed import from_crd

from .views import META, VIEW

A, B = 'k:{"name":"a"}', 'k:{"name":"b"}'


def spec(old: Any, new: Any) -> list[dict[str, Any]]:
    """What a change of spec added, modified and removed, below spec."""
    result = compare(VIEW, {"spec": old}, {"spec": new})
    return [fields.tree.get("f:spec", {}) for fields in (result.added, result.modified, result.removed)]


@pytest.mark.parametrize(
    ("old", "new", "added", "modified", "removed"),
    [
        ({"a": "1"}, {"a": "1"}, {}, {}, {}),
        ({"a": "1"}, {"a": "2"}, {}, {"f:a": {}}, {}),
        ({"a": "1"}, {"n": 1}, {"f:n": {}}, {}, {"f:a": {}}),
        ({"n": 1}, {"n": 1.0}, {}, {}, {}),
        ({"a": None}, {"a": "x"}, {}, {"f:a": {}}, {}),
        ({}, {"nested": {}}, {"f:nested": {}}, {}, {}),
        ({}, {"nested": {"x": "1"}}, {"f:nested": {".": {}, "f:x": {}}}, {}, {}),
        ({"nested": {}}, {"nested": {"x": "1"}}, {"f:nested": {"f:x": {}}}, {}, {}),
        ({"nested": None}, {"nested": {}}, {}, {"f:nested": {}}, {}),
        ({"nested": {"x": "1"}}, {}, {}, {}, {"f:nested": {".": {}, "f:x": {}}}),
        (
            {"labels": {"k": "1"}},
            {"labels": {"k": "2", "l": "1"}},
            {"f:labels": {"f:l": {}}},
            {"f:labels": {"f:k": {}}},
            {},
        ),
        ({"atomic": {"x": "1"}}, {"atomic": {"x": "1", "y": "2"}}, {}, {"f:atomic": {}}, {}),
        ({"items": ["a"]}, {"items": ["a", "b"]}, {}, {"f:items": {}}, {}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "c"]}, {"f:tags": {'v:"c"': {}}}, {}, {"f:tags": {'v:"a"': {}}}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {}, {}, {}),
        ({"tags": []}, {}, {}, {}, {"f:tags": {}}),
        (
            {"parts": [{"name": "a", "value": "1"}]},
            {"parts": [{"name": "b"}, {"name": "a", "value": "2"}]},
            {"f:parts": {B: {".": {}, "f:name": {}}}},
            {"f:parts": {A: {"f:value": {}}}},
            {},
        ),
        (
            {"ports": [{"port": 1, "protocol": "TCP"}]},
            {"ports": [{"port": 1, "name": "x"}]},
            {"f:ports": {'k:{"port":1,"protocol":"TCP"}': {"f:name": {}}}},
            {},
            {"f:ports": {'k:{"port":1,"protocol":"TCP"}': {"f:protocol": {}}}},
        ),
        ({"percent": 1}, {"percent": "1"}, {}, {"f:percent": {}}, {}),
        ({"free": {"a": 1}}, {"free": {"a": True}}, {}, {"f:free": {"f:a": {}}}, {}),
        ({"free": {"a": 1}}, {"free": {"a": {"b": 1}}}, {"f:free": {"f:a": {"f:b": {}}}}, {"f:free": {"f:a": {}}}, {}),
        ({"free": {"a": [1]}}, {"free": {"a": [2]}}, {}, {"f:free": {"f:a": {}}}, {}),
        (
            {"template": {"metadata": {"finalizers": ["a"]}}},
            {"template": {"metadata": {"finalizers": ["a", "b"]}}},
            {"f:template": {"f:metadata": {"f:finalizers": {'v:"b"': {}}}}},
            {},
            {},
        ),
    ],
)
def test_changes(old: Any, new: Any, added: Any, modified: Any, removed: Any) -> None:
    before = copy.deepcopy((old, new))
    assert spec(old, new) == [added, modified, removed]
    assert (old, new) == before


def test_duplicates_are_one_value() -> None:
    one, two = {"name": "a", "value": "1"}, {"name": "a", "value": "2"}
    assert spec({"parts": [one, two]}, {"parts": [two, one]}) == [{}, {"f:parts": {A: {}}}, {}]
    assert spec({"parts": [one, two]}, {"parts": [one, two]}) == [{}, {}, {}]
    grown = spec({"parts": [one]}, {"parts": [one, two]})
    assert grown == [{"f:parts": {A: {}}}, {}, {"f:parts": {A: {".": {}, "f:name": {}, "f:value": {}}}}]
    assert spec({"parts": [one, two]}, {"parts": [one]}) == [grown[2], {}, grown[0]]


def test_managed_fields_are_not_looked_at() -> None:
    old = {"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}}
    assert compare(VIEW, old, {"metadata": {"name": "a"}}) == Comparison()


def test_without_a_schema_lists_are_atomic_and_maps_granular() -> None:
    view = from_crd(None, META)
    result = compare(view, {"spec": {"a": {"b": 1}, "l": [1]}}, {"spec": {"a": {"b": 1, "c": 2}, "l": [2]}})
    assert result.added.tree == {"f:spec": {"f:a": {"f:c": {}}}}
    assert result.modified.tree == {"f:spec": {"f:l": {}}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
documents = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
        "tags": st.lists(st.sampled_from("abc"), unique=True),
        "parts": st.lists(st.sampled_from("abc"), unique=True).map(lambda names: [{"name": name} for name in names]),
        "free": st.dictionaries(st.sampled_from("ab"), json_values),
    },
)


@given(documents, documents)
def test_added_and_removed_change_places_with_the_arguments(old: Any, new: Any) -> None:
    forth = compare(VIEW, {"spec": old}, {"spec": new})
    back = compare(VIEW, {"spec": new}, {"spec": old})
    assert (forth.added, forth.removed) == (back.removed, back.added)
    assert forth.modified == back.modified
    assert not forth.added.intersection(forth.removed)


@given(json_values, json_values)
def test_nothing_changed_only_in_equal_documents(old: Any, new: Any) -> None:
    same = compare(VIEW, {"spec": {"free": {"v": old}}}, {"spec": {"free": {"v": new}}}) == Comparison()
    assert same == equal(old, new)
