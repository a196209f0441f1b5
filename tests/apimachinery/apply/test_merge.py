from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.apply.compare import SAME, compare
from steersman.apimachinery.apply.fieldset import FieldSet
from steersman.apimachinery.apply.merge import fields_of, merge, remove, with_named_parents

from .views import VIEW

A, B = 'k:{"name":"a"}', 'k:{"name":"b"}'


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"a": "x", "n": 1}, {"f:a": {}, "f:n": {}}),
        ({"nested": {"x": "1"}}, {"f:nested": {"f:x": {}}}),
        ({"nested": {}}, {"f:nested": {}}),
        ({"nested": None, "a": None}, {"f:a": {}, "f:nested": {}}),
        ({"labels": {"k": "1"}}, {"f:labels": {"f:k": {}}}),
        ({"atomic": {"x": "1"}, "items": ["a"]}, {"f:atomic": {}, "f:items": {}}),
        ({"tags": []}, {}),
        ({"tags": ["b", "a"]}, {"f:tags": {'v:"a"': {}, 'v:"b"': {}}}),
        (
            {"parts": [{"name": "a", "sub": {"k": "1"}}]},
            {"f:parts": {A: {".": {}, "f:name": {}, "f:sub": {"f:k": {}}}}},
        ),
        ({"parts": [{"name": "a", "value": "1"}, {"name": "a"}]}, {"f:parts": {A: {}}}),
        ({"ports": [{"port": 1}]}, {"f:ports": {'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}}}}),
        ({"free": {"a": {"b": 1}, "l": [1]}}, {"f:free": {"f:a": {".": {}, "f:b": {}}, "f:l": {}}}),
    ],
)
def test_fields_of(spec: Any, fields: Any) -> None:
    assert fields_of(VIEW, {"spec": spec}).tree.get("f:spec", {}) == fields


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        ({"a": "1", "n": 1}, {"a": "2"}, {"a": "2", "n": 1}),
        ({"nested": {"x": "1"}}, {"nested": {"y": "2"}}, {"nested": {"x": "1", "y": "2"}}),
        ({"nested": {"x": "1"}}, {"nested": {}}, {"nested": {"x": "1"}}),
        ({"nested": {"x": "1"}}, {"nested": None}, {"nested": {"x": "1"}}),
        ({"nested": {}}, {"nested": None}, {"nested": None}),
        ({"atomic": {"x": "1"}}, {"atomic": {"y": "2"}}, {"atomic": {"y": "2"}}),
        ({"items": ["a"]}, {"items": ["b"]}, {"items": ["b"]}),
        ({"tags": ["a", "b"]}, {"tags": ["c", "a"]}, {"tags": ["c", "a", "b"]}),
        ({"tags": ["a"]}, {"tags": []}, {"tags": ["a"]}),
        ({"tags": ["a", "b", "c", "d"]}, {"tags": ["d", "b"]}, {"tags": ["a", "c", "d", "b"]}),
        ({"tags": ["1", "2", "3"]}, {"tags": ["3", "x", "1"]}, {"tags": ["2", "3", "x", "1"]}),
        (
            {"parts": [{"name": "a", "value": "1"}, {"name": "b"}]},
            {"parts": [{"name": "b", "value": "2"}, {"name": "c"}]},
            {"parts": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}, {"name": "c"}]},
        ),
        (
            {"parts": [{"name": "a", "value": "1"}, {"name": "b"}, {"name": "a", "value": "2"}]},
            {"parts": [{"name": "a"}]},
            {"parts": [{"name": "a"}, {"name": "b"}]},
        ),
        ({"free": {"a": 1}}, {"free": {"a": {"b": 1}}}, {"free": {"a": {"b": 1}}}),
    ],
)
def test_merge(live: Any, config: Any, merged: Any) -> None:
    before = copy.deepcopy((live, config))
    assert merge(VIEW, {"spec": live}, {"spec": config}) == {"spec": merged}
    assert (live, config) == before


@pytest.mark.parametrize(
    ("spec", "fields", "left"),
    [
        ({"a": "1", "n": 1}, {"f:a": {}}, {"n": 1}),
        ({"nested": {"x": "1", "y": "2"}}, {"f:nested": {"f:x": {}}}, {"nested": {"y": "2"}}),
        ({"nested": {"x": "1"}}, {"f:nested": {"f:x": {}}}, {"nested": None}),
        ({"tags": ["a", "b"]}, {"f:tags": {'v:"a"': {}}}, {"tags": ["b"]}),
        ({"tags": ["a"]}, {"f:tags": {'v:"a"': {}}}, {"tags": None}),
        ({"parts": [{"name": "a", "value": "1"}, {"name": "b"}]}, {"f:parts": {A: {"f:value": {}}, B: {}}},
         {"parts": [{"name": "a"}]}),
        ({"a": "1"}, {"f:none": {}}, {"a": "1"}),
    ],
)  # fmt: skip
def test_remove(spec: Any, fields: Any, left: Any) -> None:
    before = copy.deepcopy(spec)
    assert remove(VIEW, {"spec": spec}, FieldSet({"f:spec": fields})) == {"spec": left}
    assert spec == before


def test_named_parents() -> None:
    fields = FieldSet.of(("spec", "nested", "x"), ("spec", "labels", "k"), ("spec", "parts", A, "sub", "k"))
    assert with_named_parents(VIEW, fields).tree == {
        "f:spec": {
            ".": {},
            "f:labels": {".": {}, "f:k": {}},
            "f:nested": {".": {}, "f:x": {}},
            "f:parts": {".": {}, A: {"f:sub": {".": {}, "f:k": {}}}},
        }
    }


parts = st.dictionaries(st.sampled_from("abcd"), st.none() | st.sampled_from("12")).map(
    lambda named: [{"name": n} if value is None else {"name": n, "value": value} for n, value in named.items()]
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "a": st.sampled_from("xy"),
        "nested": st.fixed_dictionaries({}, optional={"x": st.sampled_from("12")}),
        "labels": st.dictionaries(st.sampled_from("kl"), st.sampled_from("12")),
        "tags": st.lists(st.sampled_from("abcd"), unique=True),
        "parts": parts,
        "items": st.lists(st.sampled_from("ab"), max_size=2),
    },
)


@given(specs, specs)
def test_a_merged_object_has_what_was_applied_and_nothing_is_removed(live: Any, config: Any) -> None:
    merged = merge(VIEW, {"spec": live}, {"spec": config})
    change = compare(VIEW, {"spec": live}, merged)
    assert not [path for path in change.removed if merged["spec"].get(path[1][2:]) in (None, {}, [])]
    applied = {path for path in fields_of(VIEW, {"spec": config}) if not path[-1].startswith("f:") or len(path) > 2}
    assert applied <= set(fields_of(VIEW, merged)) | {("f:spec", "f:nested")}
    assert compare(VIEW, merge(VIEW, merged, {"spec": config}), merged) == SAME
    order = [item for item in merged["spec"].get("tags", []) if item in config.get("tags", [])]
    assert order == config.get("tags", [])
