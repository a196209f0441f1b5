"""Lists as snapshots, watches from anywhere in the history, and many watchers of one resource."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from tests.conftest import RunningServer, running

KIND = {"apiVersion": "test.example.com/v1", "kind": "Widget"}


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {
        **KIND,
        "metadata": {"name": name, "labels": {"even": str(spec.get("n", 0) % 2 == 0).lower()}},
        "spec": spec,
    }


class Events:
    """The events of one watch, taken with a deadline."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def take(self) -> dict[str, Any]:
        line = await asyncio.wait_for(self.response.content.readline(), 10)
        return json.loads(line) if line else {}


@asynccontextmanager
async def watching(server: RunningServer, path: str, **query: str) -> AsyncIterator[Events]:
    async with server.session() as session, session.get(path, params={"watch": "1", **query}) as response:
        assert response.status == 200
        yield Events(response)


async def test_pages_are_of_one_moment_whatever_happens_meanwhile(apiserver: RunningServer) -> None:
    path = await apiserver.define()
    for number in range(10):
        await apiserver.request("POST", path, widget(f"w{number}", n=number))
    page = (await apiserver.request("GET", f"{path}?limit=4")).body
    for number in range(10):
        await apiserver.request("DELETE", f"{path}/w{number}")
    await apiserver.request("POST", path, widget("w5x"))
    names, versions = [], set()
    while True:
        names += [item["metadata"]["name"] for item in page["items"]]
        versions.add(page["metadata"]["resourceVersion"])
        token = page["metadata"]["continue"]
        if not token:
            break
        page = (await apiserver.request("GET", path, params={"limit": "4", "continue": token})).body
    assert names == [f"w{number}" for number in range(10)]
    assert len(versions) == 1


async def test_pages_are_of_one_moment_when_a_server_starts_meanwhile(certificates, tmp_path) -> None:
    """What was deleted in between left nothing that the new server would load."""
    store = f"sqlite:///{tmp_path}/store.db"
    async with running(certificates, tmp_path, store) as server:
        path = await server.define()
        for number in range(3):
            await server.request("POST", path, widget(f"w{number}"))
        page = (await server.request("GET", f"{path}?limit=1")).body
        await server.request("DELETE", f"{path}/w2")
    async with running(certificates, tmp_path, store) as server:
        query = {"limit": "5", "continue": page["metadata"]["continue"]}
        rest = (await server.request("GET", path, params=query)).body
    assert [item["metadata"]["name"] for item in rest["items"]] == ["w1", "w2"]
    assert rest["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]


async def test_a_page_of_forgotten_history_is_410_with_a_way_on(apiserver: RunningServer) -> None:
    path = await apiserver.define()
    for number in range(4):
        await apiserver.request("POST", path, widget(f"w{number}"))
    page = (await apiserver.request("GET", f"{path}?limit=2")).body
    await apiserver.request("DELETE", f"{path}/w3")
    store = apiserver.plane.store
    await store.compact(store.revision)
    gone = await apiserver.request("GET", path, params={"limit": "2", "continue": page["metadata"]["continue"]})
    assert (gone.status, gone.body["reason"]) == (410, "Expired")
    on = await apiserver.request("GET", path, params={"limit": "2", "continue": gone.body["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in on.body["items"]] == ["w2"]


async def test_a_watch_resumes_across_a_restart_from_the_stores_history(certificates, tmp_path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with running(certificates, tmp_path, store) as server:
        path = await server.define()
        first = (await server.request("POST", path, widget("a", n=1))).body["metadata"]["resourceVersion"]
        await server.request("PATCH", f"{path}/a", {"spec": {"n": 2}}, headers=MERGE)
        await server.request("POST", path, widget("b"))
        await server.request("DELETE", f"{path}/b")
    async with (
        running(certificates, tmp_path, store) as server,
        watching(server, path, resourceVersion=first) as events,
    ):
        seen = [await events.take() for _ in range(3)]
        await server.request("DELETE", f"{path}/a")
        seen.append(await events.take())
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in seen] == [
        ("MODIFIED", "a"),
        ("ADDED", "b"),
        ("DELETED", "b"),
        ("DELETED", "a"),
    ]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
    assert versions == sorted(set(versions))


MERGE = {"Content-Type": "application/merge-patch+json"}


async def test_a_watch_from_forgotten_history_ends_with_410(certificates, tmp_path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with running(certificates, tmp_path, store) as server:
        path = await server.define()
        first = (await server.request("POST", path, widget("a", n=1))).body["metadata"]["resourceVersion"]
        for number in range(3):
            await server.request("PATCH", f"{path}/a", {"spec": {"n": number}}, headers=MERGE)
        await server.plane.store.compact(server.plane.store.revision)
    async with (
        running(certificates, tmp_path, store) as server,
        watching(server, path, resourceVersion=first) as events,
    ):
        error = await events.take()
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert await events.take() == {}


async def test_a_hundred_watchers_see_every_change_in_order(apiserver: RunningServer) -> None:
    path = await apiserver.define()
    start = (await apiserver.request("POST", path, widget("a", n=0))).body["metadata"]["resourceVersion"]
    opened = asyncio.Semaphore(0)

    async def follow() -> list[int]:
        async with watching(apiserver, path, resourceVersion=start) as events:
            opened.release()
            return [(await events.take())["object"]["spec"]["n"] for _ in range(40)]

    watchers = [asyncio.create_task(follow()) for _ in range(100)]
    for _ in watchers:
        await opened.acquire()
    async with apiserver.session() as session:
        for number in range(1, 41):
            async with session.patch(f"{path}/a", json={"spec": {"n": number}}, headers=MERGE) as response:
                assert response.status == 200
    for seen in await asyncio.gather(*watchers):
        assert seen == list(range(1, 41))


async def test_a_selector_turns_changes_into_arrivals_and_departures(apiserver: RunningServer) -> None:
    path = await apiserver.define()
    async with watching(apiserver, path, labelSelector="even=true") as events:
        await apiserver.request("POST", path, widget("odd", n=1))
        await apiserver.request("POST", path, widget("even", n=2))
        assert (await events.take())["object"]["metadata"]["name"] == "even"
        await apiserver.request("PATCH", f"{path}/odd", {"metadata": {"labels": {"even": "true"}}}, headers=MERGE)
        arrived = await events.take()
        assert (arrived["type"], arrived["object"]["metadata"]["name"]) == ("ADDED", "odd")
        answer = await apiserver.request("PATCH", f"{path}/even", {"metadata": {"labels": None}}, headers=MERGE)
        left = await events.take()
        assert (left["type"], left["object"]["metadata"]["labels"]) == ("DELETED", {"even": "true"})
        assert left["object"]["metadata"]["resourceVersion"] == answer.body["metadata"]["resourceVersion"]


async def test_a_bookmark_comes_after_everything_before_it(apiserver: RunningServer) -> None:
    path = await apiserver.define()
    await apiserver.request("POST", path, widget("a"))
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "3",
    }
    async with watching(apiserver, path, **query) as events:
        added, marked = await events.take(), await events.take()
        assert (added["type"], marked["type"]) == ("ADDED", "BOOKMARK")
        assert marked["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        answer = await apiserver.request("PATCH", f"{path}/a", {"spec": {"n": 1}}, headers=MERGE)
        assert (await events.take())["type"] == "MODIFIED"
        last = await events.take()
        assert last["type"] == "BOOKMARK"
        assert int(last["object"]["metadata"]["resourceVersion"]) >= int(answer.body["metadata"]["resourceVersion"])
        assert await events.take() == {}


async def test_a_state_that_has_not_come_yet_is_not_streamed(apiserver: RunningServer) -> None:
    """As kube-apiserver answers: a watch that began with an older state would be told of nothing after it."""
    path = await apiserver.define()
    await apiserver.request("POST", path, widget("a"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "999999999"}
    async with watching(apiserver, path, allowWatchBookmarks="true", **query) as events:
        event = await events.take()
        assert event["type"] == "ERROR"
        status = event["object"]
        assert (status["code"], status["reason"]) == (504, "Timeout")
        assert status["message"].startswith("Timeout: Too large resource version: 999999999, current: ")
        assert status["details"]["causes"] == [
            {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        ]
        assert await events.take() == {}
