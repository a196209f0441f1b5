from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.errors import BadRequest
from steersman.apimachinery.patch import merge_patch

scalars = st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x"])
values = st.recursive(
    scalars | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
null_free = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
null_free_objects = st.dictionaries(st.sampled_from("abc"), null_free, max_size=3)
objects = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return value


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": 1}, {"b": None}, {"a": 1}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": None, "z": 3}}, {"a": {"y": 2, "z": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"x": 1}}, {"a": [1]}, {"a": [1]}),
        ({"a": 1}, {"a": {"x": None, "y": {"z": None}}}, {"a": {"y": {}}}),
        ({}, {"a": [{"x": None}, None]}, {"a": [{}, None]}),
        ({"a": {"x": 1}}, {"a": [{"x": None}]}, {"a": [{"x": None}]}),
        ({"a": None}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": {}}, {"a": {"x": 1}}),
    ],
)
def test_apply(document: Any, patch: Any, result: Any) -> None:
    before = copy.deepcopy((document, patch))
    assert merge_patch.apply(document, patch) == result
    assert (document, patch) == before


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (None, "Invalid JSON Patch"),
        ([], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("x", "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (1.5, "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}"),
        (True, "error decoding patch: json: cannot unmarshal bool into Go value of type map[string]interface {}"),
    ],
)
def test_patches_that_are_no_objects(patch: Any, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        merge_patch.apply({"a": 1}, patch)
    assert caught.value.message == message


def test_what_is_untouched_is_shared() -> None:
    document = {"a": {"x": {"deep": 1}, "y": {"deep": 2}}, "b": {"z": 1}}
    result = merge_patch.apply(document, {"a": {"x": {"deep": 3}}})
    assert result["b"] is document["b"]
    assert result["a"]["y"] is document["a"]["y"]


def test_a_patch_that_changes_nothing_gives_the_document() -> None:
    document = {"a": {"x": {"deep": 1}}}
    assert merge_patch.apply(document, {"a": {"x": {}}, "b": None}) is document


@given(null_free_objects, null_free_objects)
def test_applying_the_difference_gives_the_new_document(old: Any, new: Any) -> None:
    before = copy.deepcopy((old, new))
    patch = merge_patch.diff(old, new)
    result = merge_patch.apply(old, patch)
    assert orjson.dumps(result, option=orjson.OPT_SORT_KEYS) == orjson.dumps(new, option=orjson.OPT_SORT_KEYS)
    assert (old, new) == before
    assert merge_patch.diff(result, new) == {}


@given(objects, objects)
def test_a_patch_is_idempotent_and_changes_no_argument(document: Any, patch: Any) -> None:
    before = copy.deepcopy((document, patch))
    once = merge_patch.apply(document, patch)
    assert merge_patch.apply({"v": once}, {"v": patch}) == {"v": merge_patch.apply(once, patch)}
    assert without_nulls(merge_patch.apply(without_nulls(document), patch)).keys() >= without_nulls(patch).keys()
    assert (document, patch) == before
