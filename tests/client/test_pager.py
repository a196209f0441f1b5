from __future__ import annotations

from typing import Any

import pytest

from steersman.apimachinery import errors
from steersman.client import Client, DecodeError, Resource

MAPS = Resource("v1", "ConfigMap", "configmaps", True)
PATH = "/api/v1/configmaps"
EXPIRED = {"kind": "Status", "reason": "Expired", "code": 410, "message": "too old", "metadata": {"continue": "x"}}


def page(version: str, token: str, *names: str) -> dict[str, Any]:
    items = [{"metadata": {"name": name, "namespace": "default", "resourceVersion": version}} for name in names]
    metadata = {"resourceVersion": version} | ({"continue": token} if token else {})
    return {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}


def names(objects: list[dict[str, Any]]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


async def test_pages_are_fetched_as_they_are_needed(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(200, page("5", "t1", "a", "b")), answer(200, page("5", "", "c")))
    listing = client.list(MAPS, limit=2, label_selector="x=y", resource_version="0")
    found = []
    async for obj in listing:
        found.append(obj)
        assert len(peer.asked) == (1 if len(found) < 3 else 2)
    assert names(found) == ["a", "b", "c"]
    assert listing.resource_version == "5"
    assert {(obj["apiVersion"], obj["kind"]) for obj in found} == {("v1", "ConfigMap")}
    first, second = (asked.query for asked in peer.asked)
    assert first == {"labelSelector": "x=y", "resourceVersion": "0", "limit": "2"}
    assert second == {"labelSelector": "x=y", "continue": "t1", "limit": "2"}


async def test_an_expired_token_starts_again_without_giving_anything_twice(
    peer: Any, client: Client, answer: Any
) -> None:
    peer.on(
        "GET",
        PATH,
        answer(200, page("5", "t1", "a", "c")),
        answer(410, EXPIRED),
        answer(200, page("9", "t2", "a", "b")),
        answer(200, page("9", "", "c", "d")),
    )
    listing = client.list(MAPS, limit=2)
    assert names([obj async for obj in listing]) == ["a", "c", "b", "d"]
    assert listing.resource_version == "9"


async def test_all_at_once_is_one_snapshot(peer: Any, client: Client, answer: Any) -> None:
    peer.on(
        "GET",
        PATH,
        answer(200, page("5", "t1", "a", "c")),
        answer(410, EXPIRED),
        answer(200, page("9", "", "a", "b")),
    )
    found = await client.list(MAPS, limit=2).collect()
    assert [(obj["metadata"]["name"], obj["metadata"]["resourceVersion"]) for obj in found] == [("a", "9"), ("b", "9")]


async def test_a_first_page_that_has_expired_is_reported(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(410, EXPIRED))
    with pytest.raises(errors.Expired):
        await client.list(MAPS, resource_version="1", resource_version_match="Exact").collect()
    assert len(peer.asked) == 1


async def test_a_server_that_forgets_every_time_is_given_up(peer: Any, client: Client, answer: Any) -> None:
    for _ in range(10):
        peer.on("GET", PATH, answer(200, page("5", "t", "a")), answer(410, EXPIRED))
    with pytest.raises(errors.Expired):
        await client.list(MAPS, limit=1).collect()


async def test_an_answer_that_is_no_list(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(200, {"kind": "What"}))
    with pytest.raises(DecodeError, match="not a list"):
        await client.list(MAPS).collect()
