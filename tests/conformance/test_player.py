"""What makes answers comparable must keep what matters: equality, order, and everything that was sent."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .normalise import Normaliser, differences, look_up, remove, substitute
from .webhook import answered

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab{}", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)


def objects(versions: list[int], uids: list[UUID]) -> list[object]:
    return [
        {"metadata": {"resourceVersion": str(version), "uid": str(uid)}}
        for version, uid in zip(versions, uids, strict=True)
    ]


def normalised(answers: list[object], sent: str = "", **variables: str) -> list[object]:
    normalise = Normaliser(variables, sent, answers)
    return [normalise(answer) for answer in answers]


@given(st.lists(st.integers(1, 9), min_size=1), st.integers(1, 1000), st.data())
def test_runs_with_other_versions_and_uids_are_equal(versions: list[int], shift: int, data: st.DataObject) -> None:
    first, second = (data.draw(st.lists(st.uuids(), min_size=10, max_size=10, unique=True)) for _ in range(2))
    later = [version * 7 + shift for version in versions]
    assert normalised(objects(versions, [first[each] for each in versions])) == normalised(
        objects(later, [second[each] for each in versions])
    )


def test_the_order_of_versions_counts() -> None:
    uid = UUID(int=1)
    assert normalised(objects([1, 2], [uid, uid])) != normalised(objects([2, 1], [uid, uid]))


def test_versions_of_lists_and_bookmarks_are_not_ranked() -> None:
    version = {"metadata": {"resourceVersion": "9"}}
    assert normalised([{**version, "items": []}]) == [{"metadata": {"resourceVersion": "<list-rv>"}, "items": []}]
    bookmark = {"type": "BOOKMARK", "object": version}
    assert normalised([bookmark]) == [{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "<list-rv>"}}}]


def test_times_and_uids_that_were_sent_stay() -> None:
    sent, other = "2020-01-01T00:00:00Z", "2021-01-01T00:00:00.5Z"
    assert normalised([f"{sent} {other} {UUID(int=1)} {UUID(int=2)}"], sent=f"{sent}{UUID(int=1)}") == [
        f"{sent} <time> {UUID(int=1)} <uid-1>"
    ]


def test_names_of_the_run_become_their_placeholders() -> None:
    assert normalised(["ns-abcdef abcdef", {"f:abcdef": 1}], ns="ns-abcdef", suffix="abcdef") == [
        "{{ns}} {{suffix}}",
        {"f:{{suffix}}": 1},
    ]


@given(JSON)
def test_no_differences_from_itself(value: object) -> None:
    assert differences(value, value) == []


@given(JSON, JSON)
def test_a_difference_is_seen_from_both_sides(left: object, right: object) -> None:
    assert bool(differences(left, right)) == bool(differences(right, left))


@pytest.mark.parametrize(
    ("left", "right"), [(1, True), (1, 1.0), (None, False), ({}, []), ({"a": None}, {}), ([1], [1, 1])]
)
def test_unlike_values_differ(left: object, right: object) -> None:
    assert differences({"x": left}, {"x": right})


def test_the_order_of_managed_fields_does_not_count_but_that_of_other_lists() -> None:
    entries = [{"manager": "a"}, {"manager": "b"}]
    assert not differences({"metadata": {"managedFields": entries}}, {"metadata": {"managedFields": entries[::-1]}})
    assert differences({"items": entries}, {"items": entries[::-1]})


def test_paths() -> None:
    value = {"a": [{"b.c": 1, "d": 2}]}
    assert look_up(value, "a[0].b\\.c") == 1
    assert look_up(value, "a[1].d") is look_up(value, "a.x.y") is None
    remove(value, "a[0].d")
    remove(value, "a[5].d")
    assert value == {"a": [{"b.c": 1}]}


def test_placeholders_keep_types_and_unknown_ones_stay() -> None:
    filled = substitute({"{{n}}": ["{{n}}", "v{{n}}", "{{m}}"]}, {"n": 5})
    assert filled == {5: [5, "v5", "{{m}}"]}


def test_a_webhook_converts_by_its_renames() -> None:
    review = {
        "apiVersion": "v1",
        "kind": "ConversionReview",
        "request": {
            "uid": "u",
            "desiredAPIVersion": "g/v2",
            "objects": [{"apiVersion": "g/v1", "spec": {"a": 1, "b": 2}}],
        },
    }
    script = {"convert": [{"to": "v2", "from": "a", "rename": "c"}, {"to": "v1", "from": "b", "rename": "d"}]}
    response = answered(review, script)["response"]
    assert response["uid"] == "u"
    assert response["convertedObjects"] == [{"apiVersion": "g/v2", "spec": {"c": 1, "b": 2}}]
