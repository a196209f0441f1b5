"""In which order a patch leaves the fields: errors and warnings follow it."""

from __future__ import annotations

from steersman.apimachinery.patch import json_patch, merge_patch


def test_a_json_patch_sorts_what_it_went_through_and_nothing_else() -> None:
    before = {"z": {"d": 1, "c": 2}, "b": {"y": 1, "x": {"w": 0, "v": 0}}}
    after = json_patch.apply(before, [{"op": "add", "path": "/b/a", "value": {"n": 1, "m": 2}}])
    assert list(after) == ["b", "z"]
    assert list(after["b"]) == ["a", "x", "y"]
    assert [list(after["b"]["a"]), list(after["b"]["x"]), list(after["z"])] == [["n", "m"], ["w", "v"], ["d", "c"]]
    assert list(before) == ["z", "b"]


def test_a_merge_patch_sorts_what_it_merges_and_what_it_brings() -> None:
    after = merge_patch.apply({"z": {"d": 1, "c": 2}, "b": {"y": 1}}, {"b": {"x": {"n": 1, "m": [{"q": 1, "p": 2}]}}})
    assert [list(after), list(after["b"]), list(after["b"]["x"])] == [["b", "z"], ["x", "y"], ["m", "n"]]
    assert [list(after["b"]["x"]["m"][0]), list(after["z"])] == [["p", "q"], ["d", "c"]]


def test_a_list_in_place_of_an_object_stays_as_it_was_sent() -> None:
    assert list(merge_patch.apply({"a": {}}, {"a": [{"q": 1, "p": 2}]})["a"][0]) == ["q", "p"]
