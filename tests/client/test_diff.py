from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.client.diff import Change, changes, writers

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def entry(manager: str, fields: dict[str, Any], time: str = "2026-01-01T00:00:00Z", **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsV1": fields, **more}


def obj(spec: dict[str, Any], *entries: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "a", "resourceVersion": str(len(entries)), "managedFields": [*entries]}, "spec": spec}


def test_a_change_names_its_path_its_values_and_its_manager() -> None:
    before = obj({"version": "1", "size": 1}, entry("us", {"f:spec": {"f:version": {}, "f:size": {}}}))
    after = obj(
        {"version": "2", "size": 1},
        entry("us", {"f:spec": {"f:size": {}}}),
        entry("them", {"f:spec": {"f:version": {}}}),
    )
    assert changes(before, after) == [Change(".spec.version", "1", "2", ("them",))]
    assert str(changes(before, after)[0]) == '.spec.version: "1" -> "2" by them'


def test_a_manager_that_only_lost_fields_did_not_write() -> None:
    before = obj({"a": 1, "b": 1}, entry("us", {"f:spec": {"f:a": {}, "f:b": {}}}))
    after = obj({"a": 2, "b": 1}, entry("us", {"f:spec": {"f:b": {}}}), entry("them", {"f:spec": {"f:a": {}}}))
    assert writers(before, after) == ["them"]


def test_of_two_owners_the_one_that_wrote_is_named() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:a": {}}}
    before = obj({"a": 1}, entry("one", fields), entry("two", fields))
    after = obj({"a": 2}, entry("one", fields), entry("two", fields, "2026-01-01T00:00:09Z"))
    assert [change.managers for change in changes(before, after)] == [("two",)]


def test_the_owner_of_a_struct_owns_none_of_its_fields_that_others_own() -> None:
    """`f:spec: {}` is what is left of the entry of a manager that created spec and lost its fields to others."""
    creator, writer = entry("creator", {"f:spec": {}}), entry("writer", {"f:spec": {"f:a": {}}})
    assert changes(obj({"a": 1}, creator, writer), obj({"a": 2}, creator, writer)) == [
        Change(".spec.a", 1, 2, ("writer",))
    ]


def test_a_removed_field_is_put_down_to_the_only_writer() -> None:
    before = obj({"a": 1, "b": 1}, entry("us", {"f:spec": {"f:a": {}, "f:b": {}}}))
    after = obj({"b": 1}, entry("them", {"f:spec": {"f:b": {}}}, "2026-01-01T00:00:09Z"))
    assert changes(before, after) == [Change(".spec.a", 1, None, ("them",))]


@pytest.mark.parametrize(
    ("owned", "found"),
    [
        ({"f:ports": {'k:{"name":"web"}': {"f:port": {}}}}, ("them",)),
        ({"f:ports": {'k:{"name":"db"}': {"f:port": {}}}}, ()),
        ({"f:ports": {"i:0": {"f:port": {}}}}, ("them",)),
        ({"f:ports": {}}, ("them",)),
    ],
)
def test_owners_are_found_in_lists(owned: dict[str, Any], found: tuple[str, ...]) -> None:
    before = obj(
        {"ports": [{"name": "web", "port": 1}]}, entry("them", {"f:spec": owned}), entry("x", {"f:status": {}})
    )
    after = copy.deepcopy(before)
    after["spec"]["ports"][0]["port"] = 2
    assert changes(before, after) == [Change(".spec.ports[0].port", 1, 2, found)]


def test_owners_are_found_in_sets() -> None:
    before = obj({"tags": ["a"]})
    after = obj(
        {"tags": ["a", "b"]}, entry("them", {"f:spec": {"f:tags": {'v:"b"': {}}}}), entry("x", {"f:spec": {".": {}}})
    )
    assert changes(before, after) == [Change(".spec.tags[1]", None, "b", ("them",))]


def test_keys_that_are_no_plain_words_are_quoted() -> None:
    before: dict[str, Any] = {"metadata": {"labels": {}}}
    after = {"metadata": {"labels": {"app.io/name": "x"}}}
    assert [change.path for change in changes(before, after)] == ['.metadata.labels["app.io/name"]']


@given(st.dictionaries(st.text(max_size=5), VALUES), st.dictionaries(st.text(max_size=5), VALUES))
def test_nothing_differs_from_itself_and_something_from_another(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert changes({"spec": one}, {"spec": copy.deepcopy(one)}) == []
    if one != other:
        assert changes({"spec": one}, {"spec": other})
