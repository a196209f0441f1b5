"""Lists by label of many objects, whose labels are indexed; labels are found in encoded objects without decoding."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import RunningServer

from steersman.apimachinery.codec import json as codec
from steersman.apiserver.labelindex import MOST_LABELS, LabelIndex
from steersman.apiserver.watchcache import Entry

MAPS = "/api/v1/namespaces/{}/configmaps"
COUNT = 120


def config_map(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


async def names(apiserver: RunningServer, selector: str, namespace: str = "default") -> list[str]:
    answer = await apiserver.request("GET", f"{MAPS.format(namespace)}?labelSelector={selector}")
    assert answer.status == 200
    return [item["metadata"]["name"] for item in answer.body["items"]]


@pytest.fixture
async def many(apiserver: RunningServer) -> RunningServer:
    for number in range(COUNT):
        labels = {"third": str(number % 3), "own": str(number)} if number else {}
        made = await apiserver.request("POST", MAPS.format("default"), config_map(f"m-{number:03d}", labels))
        assert made.status == 201
    await apiserver.request("POST", MAPS.format("kube-public"), config_map("m-elsewhere", {"third": "1"}))
    return apiserver


async def test_lists_by_label_follow_every_write(many: RunningServer) -> None:
    def expected(third: int) -> list[str]:
        return [f"m-{number:03d}" for number in range(1, COUNT) if number % 3 == third]

    assert await names(many, "third=1") == expected(1)
    assert await names(many, "third=1", "kube-public") == ["m-elsewhere"]
    assert await names(many, "third=1,own in (4)") == ["m-004"]
    assert await names(many, "third=nothing") == []
    patch = {"Content-Type": "application/merge-patch+json"}
    for labels in ({"third": "2"}, {"third": None}):
        changed = await many.request(
            "PATCH", f"{MAPS.format('default')}/m-004", {"metadata": {"labels": labels}}, headers=patch
        )
        assert changed.status == 200
        assert await names(many, "third=1") == [name for name in expected(1) if name != "m-004"]
        has = sorted([*expected(2), *(["m-004"] if labels["third"] else [])])
        assert await names(many, "third=2") == has
    assert await names(many, "own=4") == ["m-004"]
    assert (await many.request("DELETE", f"{MAPS.format('default')}/m-007")).status == 200
    assert await names(many, "own=7") == []
    made = await many.request("POST", MAPS.format("default"), config_map("m-007", {"third": "1", "own": "7"}))
    assert made.status == 201
    assert await names(many, "own=7") == ["m-007"]
    unlabelled = await names(many, "!third")
    assert unlabelled[-2:] == ["m-000", "m-004"]
    assert await names(many, "third notin (0,1,2)") == unlabelled


@pytest.mark.parametrize("selector", ["", "&labelSelector=third%3D1"])
async def test_pages_are_the_whole(many: RunningServer, selector: str) -> None:
    path = f"/api/v1/configmaps?limit=7{selector}"
    found, token = [], ""
    while True:
        answer = await many.request("GET", f"{path}&continue={token}" if token else path)
        assert answer.status == 200
        found += [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in answer.body["items"]]
        left = answer.body["metadata"].get("remainingItemCount")
        token = answer.body["metadata"].get("continue", "")
        if not token:
            break
        if not selector:
            assert left == len((await many.request("GET", "/api/v1/configmaps")).body["items"]) - len(found)
    whole = await many.request("GET", f"/api/v1/configmaps?{selector[1:]}")
    assert found == [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in whole.body["items"]]
    assert ("kube-public", "m-elsewhere") in found


text = st.text(max_size=8)
maps = st.dictionaries(text, text, max_size=3)


@given(
    st.fixed_dictionaries({}, optional={"labels": maps, "annotations": maps, "generateName": text}),
    st.dictionaries(
        st.sampled_from(["aaa", "data", "labels", "spec", "zzz"]), maps | st.builds(lambda m: {"labels": m}, maps)
    ),
    st.booleans(),
)
def test_labels_are_those_of_the_object(metadata: dict[str, Any], rest: dict[str, Any], canonical: bool) -> None:
    obj = {**rest, "apiVersion": "v1", "kind": "K", "metadata": {**metadata, "name": "a", "uid": "b"}}
    stored = codec.encode_object(obj) if canonical else orjson.dumps(obj)
    assert Entry("a", stored, 1, 1).labels == metadata.get("labels", {})


class Labelled:
    def __init__(self, **labels: str) -> None:
        self.labels = labels


def test_an_index_forgets_the_label_that_was_not_asked_for_longest() -> None:
    entries = {"a": Labelled(**{f"l{number}": "x" for number in range(MOST_LABELS + 1)})}
    index = LabelIndex(entries)
    for number in range(MOST_LABELS + 1):
        assert list(index.keys(f"l{number}", "x")) == ["a"]
    entries["b"] = Labelled(l0="x", l1="x")  # of which the index is not told
    assert sorted(index.keys("l1", "x")) == ["a"]
    assert sorted(index.keys("l0", "x")) == ["a", "b"]
