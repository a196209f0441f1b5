"""Informers against a server that forgets, refuses, cuts, and stays silent."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from tests.client.conftest import Answer, Peer
from tests.runtime.kit import SOON, Log

from steersman.client import Backoff, Client, Resource
from steersman.runtime.cache import informer as informer_module
from steersman.runtime.cache.cache import Cache, CacheScope, CacheSyncError, strip_managed_fields
from steersman.runtime.cache.events import Event
from steersman.runtime.cache.informer import Informer, Selection

MAPS = Resource("v1", "ConfigMap", "configmaps", True)
PATH = "/api/v1/configmaps"
QUICK = Backoff(steps=1, duration=0.02, factor=2.0, cap=0.1)
GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}


def obj(name: str, version: int, uid: str = "", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": uid or name, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **more}


def line(kind: str, body: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": body}) + b"\n"


def bookmark(version: int, *, end: bool = False, **more: Any) -> bytes:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if end else {}
    return line("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": str(version), **annotations}, **more})


def state(version: int, *objects: dict[str, Any]) -> list[bytes]:
    return [*(line("ADDED", each) for each in objects), bookmark(version, end=True)]


async def forever() -> None:
    await asyncio.Event().wait()


class Heard(Log):
    """What a listener was told: (type, name, version)."""

    def __call__(self, event: Event) -> None:
        metadata = event.metadata
        self.entries.append((event.type, metadata["name"], metadata["resourceVersion"]))
        self.tasks = [*getattr(self, "tasks", []), asyncio.ensure_future(self._tell())]

    async def _tell(self) -> None:
        async with self._added:
            self._added.notify_all()


@asynccontextmanager
async def following(informer: Informer) -> AsyncIterator[Heard]:
    heard = Heard()
    informer.listen(heard)
    running = asyncio.ensure_future(informer.run())
    try:
        yield heard
    finally:
        running.cancel()
        await asyncio.gather(running, *getattr(heard, "tasks", []), return_exceptions=True)


def watching(client: Client, **options: Any) -> Informer:
    return Informer(client, MAPS, options.pop("selection", None), backoff=QUICK, resync=None, **options)


@pytest.mark.parametrize("form", ["status", "event"])
async def test_after_being_forgotten_only_the_differences_are_told(
    peer: Peer, client: Client, answer: type[Answer], form: str
) -> None:
    """R7: changed, made anew, gone and new while the watch was away; and what has not changed is not told."""
    first = state(5, obj("same", 1), obj("changed", 2), obj("anew", 3), obj("gone", 4))
    second = state(20, obj("same", 1), obj("changed", 12), obj("anew", 13, "other"), obj("new", 14))
    forgotten = answer(410, GONE) if form == "status" else answer(200, chunks=[line("ERROR", GONE)])
    peer.on("WATCH", PATH, answer(200, chunks=first, cut=True), forgotten, answer(200, chunks=[*second, forever]))
    informer = watching(client)
    async with following(informer) as heard:
        await heard.until(9)
        assert sorted(heard.entries[:4]) == [
            ("ADDED", "anew", "3"),
            ("ADDED", "changed", "2"),
            ("ADDED", "gone", "4"),
            ("ADDED", "same", "1"),
        ]
        assert sorted(heard.entries[4:]) == [
            ("ADDED", "anew", "13"),
            ("ADDED", "new", "14"),
            ("DELETED", "anew", "3"),
            ("DELETED", "gone", "4"),
            ("MODIFIED", "changed", "12"),
        ]
        assert sorted(name for _, name in informer.indexer.keys_in()) == ["anew", "changed", "new", "same"]
    assert len(peer.asked_for("WATCH", "/api/v1/configmaps")) == 3


@pytest.mark.parametrize("form", ["status", "event", "after_an_event"])
async def test_a_server_that_forgets_again_and_again_is_asked_less_and_less(
    peer: Peer, client: Client, answer: type[Answer], form: str
) -> None:
    """R7: far fewer than 10 requests in 3 s."""
    peer.on("WATCH", PATH, answer(422, {"kind": "Status", "code": 422, "reason": "Invalid"}))
    peer.on("GET", PATH, answer(200, {"kind": "ConfigMapList", "metadata": {"resourceVersion": "5"}, "items": []}))
    chunks = [line("ADDED", obj("a", 6))] if form == "after_an_event" else []
    forgotten = answer(410, GONE) if form == "status" else answer(200, chunks=[*chunks, line("ERROR", GONE)])
    peer.on("WATCH", PATH, forgotten)
    informer = Informer(client, MAPS, resync=None)
    async with following(informer):
        await peer.until("GET", PATH, 2)
        await asyncio.sleep(1.5)
    # A watch, and then lists and watches: at once, at once, after 0.8 s or more, after 1.6 s or more.
    assert len(peer.asked) <= 7


async def test_bookmarks_move_on_and_tell_nothing(peer: Peer, client: Client, answer: type[Answer]) -> None:
    """R8: one with nothing but a version, one with a template of nulls."""
    marks = [bookmark(8), bookmark(9, spec={"template": {"metadata": {"creationTimestamp": None}, "spec": None}})]
    peer.on(
        "WATCH",
        PATH,
        answer(200, chunks=[*state(5, obj("a", 1)), *marks], cut=True),
        answer(200, chunks=[line("ADDED", obj("b", 11)), forever]),
    )
    async with following(watching(client)) as heard:
        await heard.until(2)
        assert heard.entries == [("ADDED", "a", "1"), ("ADDED", "b", "11")]
    assert peer.asked[1].query["resourceVersion"] == "9"


async def test_lists_that_time_out_are_tried_again_and_only_a_whole_one_counts(
    peer: Peer, client: Client, answer: type[Answer]
) -> None:
    """R9: the cache recovers, and is in sync only after a full list."""
    peer.on("WATCH", PATH, answer(422, {"kind": "Status", "code": 422, "reason": "Invalid"}))
    late = answer(504, {"kind": "Status", "code": 504, "reason": "Timeout", "message": "late"})
    first = {"kind": "List", "metadata": {"resourceVersion": "5", "continue": "more"}, "items": [obj("a", 1)]}
    last = {"kind": "List", "metadata": {"resourceVersion": "5"}, "items": [obj("b", 2)]}
    peer.on("GET", PATH, late, late, answer(200, first), late, answer(200, first), answer(200, last))
    peer.on("WATCH", PATH, answer(200, chunks=[forever]))
    informer = watching(client)
    seen: list[bool] = []
    informer.listen(lambda event: seen.append(informer.has_synced))
    async with following(informer) as heard:
        await heard.until(2)
        async with asyncio.timeout(SOON):
            await informer.wait_synced()
        assert seen == [False, False]
        assert sorted(heard.entries) == [("ADDED", "a", "1"), ("ADDED", "b", "2")]
        assert informer.error is None
    assert len(peer.asked_for("GET", PATH)) == 6


async def test_a_watch_that_is_not_permitted_begins_once_it_is(
    peer: Peer, client: Client, answer: type[Answer]
) -> None:
    forbidden = answer(403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"})
    peer.on("WATCH", PATH, forbidden, forbidden, answer(200, chunks=[*state(5, obj("a", 1)), forever]))
    informer = watching(client)
    async with following(informer) as heard:
        await peer.until("WATCH", PATH, 2)
        assert not informer.has_synced
        assert not informer.is_current
        await heard.until(1)
        async with asyncio.timeout(SOON):
            await informer.wait_synced()
        assert informer.is_current
        assert informer.error is None


async def test_a_cache_that_cannot_follow_is_not_called_current(
    peer: Peer, client: Client, answer: type[Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R9: a watch that is refused for good after it has begun; what was known stays readable."""
    monkeypatch.setattr(informer_module, "STALE_AFTER", 0.1)
    down, again = asyncio.Event(), asyncio.Event()
    peer.on(
        "WATCH",
        PATH,
        answer(200, chunks=[*state(5, obj("a", 1)), down.wait], cut=True),
        *[answer(403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"})] * 6,
        answer(200, chunks=[line("MODIFIED", obj("a", 6)), again.wait, forever]),
    )
    informer = watching(client)
    async with following(informer) as heard:
        await heard.until(1)
        await informer.wait_synced()
        assert informer.is_current
        down.set()
        await peer.until("WATCH", PATH, 6)
        assert not informer.is_current
        assert informer.indexer.get(("default", "a")) is not None
        await heard.until(2)
        assert informer.is_current


async def test_silence_is_no_sign_of_life(peer: Peer, client: Client, answer: type[Answer]) -> None:
    """R6: the server accepts the watch and says nothing more; not current after a while, opened anew in the end."""
    peer.on(
        "WATCH",
        PATH,
        answer(200, chunks=[*state(5, obj("a", 1)), forever]),
        answer(200, chunks=[line("MODIFIED", obj("a", 7)), line("ADDED", obj("b", 8)), forever]),
    )
    informer = watching(client, inactivity=2.0)
    async with following(informer) as heard:
        await heard.until(1)
        assert informer.is_current
        await asyncio.sleep(1.7)
        assert not informer.is_current
        await heard.until(3)
        assert informer.is_current
        assert heard.entries[1:] == [("MODIFIED", "a", "7"), ("ADDED", "b", "8")]
    assert peer.asked[1].query["resourceVersion"] == "5"


async def test_a_broken_transform_is_said_and_the_cache_recovers(
    peer: Peer, client: Client, answer: type[Answer], caplog: pytest.LogCaptureFixture
) -> None:
    peer.on("WATCH", PATH, answer(200, chunks=[*state(5, obj("a", 1)), forever]))
    calls = itertools.count()

    def transform(raw: dict[str, Any]) -> dict[str, Any]:
        if next(calls) < 2:
            raise KeyError("spec")
        return {**raw, "kept": True}

    informer = watching(client, transform=transform)
    async with following(informer) as heard:
        await heard.until(1)
        async with asyncio.timeout(SOON):
            await informer.wait_synced()
        known = informer.indexer.get(("default", "a"))
        assert known is not None
        assert known.raw["kept"] is True
    assert "cannot watch ConfigMap.v1: KeyError('spec')" in caplog.text


async def test_a_listener_that_fails_hinders_nobody(
    peer: Peer, client: Client, answer: type[Answer], caplog: pytest.LogCaptureFixture
) -> None:
    peer.on("WATCH", PATH, answer(200, chunks=[*state(5, obj("a", 1), obj("b", 2)), forever]))
    informer = watching(client)

    def broken(event: Event) -> None:
        raise ValueError("not today")

    informer.listen(broken)
    async with following(informer) as heard:
        await heard.until(2)
    assert "an event handler has failed" in caplog.text


async def test_who_comes_late_is_told_of_what_is_there(peer: Peer, client: Client, answer: type[Answer]) -> None:
    go = asyncio.Event()
    later = line("MODIFIED", obj("a", 6))
    peer.on("WATCH", PATH, answer(200, chunks=[*state(5, obj("a", 1), obj("b", 2)), go.wait, later, forever]))
    informer = watching(client)
    async with following(informer) as heard:
        await heard.until(2)
        events: list[tuple[str, str, bool]] = []
        remove = informer.listen(lambda event: events.append((event.type, event.key[1], event.initial)))
        assert events == [("ADDED", "a", True), ("ADDED", "b", True)]
        go.set()
        await heard.until(3)
        assert events[2:] == [("MODIFIED", "a", False)]
        remove()
        await informer.resync()
        assert len(events) == 3
        assert heard.entries[3:] == [("MODIFIED", "a", "6"), ("MODIFIED", "b", "2")]


async def test_the_regular_look_comes_by_itself(peer: Peer, client: Client, answer: type[Answer]) -> None:
    peer.on("WATCH", PATH, answer(200, chunks=[*state(5, obj("a", 1)), forever]))
    informer = Informer(client, MAPS, resync=0.05)
    async with following(informer) as heard:
        await heard.until(3)
        assert heard.entries[:3] == [("ADDED", "a", "1"), ("MODIFIED", "a", "1"), ("MODIFIED", "a", "1")]
    assert len(peer.asked) == 1, "the server is not asked for that"


async def test_what_is_asked_for_is_the_selection(peer: Peer, client: Client, answer: type[Answer]) -> None:
    path = "/api/v1/namespaces/space/configmaps"
    peer.on("WATCH", path, answer(200, chunks=[*state(5), forever]))
    informer = watching(client, selection=Selection("space", "app=x", "metadata.name!=y"))
    async with following(informer):
        async with asyncio.timeout(SOON):
            await informer.wait_synced()
    [asked] = peer.asked
    assert (asked.query["labelSelector"], asked.query["fieldSelector"]) == ("app=x", "metadata.name!=y")


async def test_metadata_alone_is_asked_for_and_kept(peer: Peer, client: Client, answer: type[Answer]) -> None:
    raw = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": obj("a", 1)["metadata"]}
    peer.on("WATCH", PATH, answer(200, chunks=[line("ADDED", raw), bookmark(5, end=True), forever]))
    informer = watching(client, metadata_only=True)
    async with following(informer) as heard:
        await heard.until(1)
        known = informer.indexer.get(("default", "a"))
        assert known is not None
        assert known.raw == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": raw["metadata"]}
        informer.observe(obj("a", 9, data={"large": "x" * 1000}), None)
        known = informer.indexer.get(("default", "a"))
        assert known is not None
        assert "data" not in known.raw
    assert "as=PartialObjectMetadata" in peer.asked[0].headers["accept"]


async def test_a_cache_that_cannot_fill_says_what_is_missing_and_why(
    peer: Peer, client: Client, answer: type[Answer]
) -> None:
    peer.on("WATCH", PATH, answer(403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not you"}))
    secrets = Resource("v1", "Secret", "secrets", True)
    peer.on("WATCH", "/api/v1/secrets", answer(200, chunks=[*state(5), forever]))
    cache = Cache(client)
    cache.kind(MAPS)
    cache.kind(secrets)
    await cache.start()
    with pytest.raises(CacheSyncError) as failure:
        await cache.wait_synced(0.5)
    await cache.stop()
    assert str(failure.value) == "not all objects could be read within 0.5 s: ConfigMap.v1: not you"


async def test_a_kind_is_watched_once_and_whole_if_anyone_needs_it_whole(
    peer: Peer, client: Client, answer: type[Answer]
) -> None:
    peer.on("WATCH", PATH, answer(200, chunks=[*state(5, obj("a", 1, data={"x": "y"})), forever]))
    cache = Cache(client, CacheScope(transform=strip_managed_fields))
    cache.kind(MAPS, metadata_only=True)
    cache.kind(Resource("v1", "ConfigMap"))
    cache.kind(MAPS, metadata_only=True)
    await cache.start()
    async with asyncio.timeout(SOON):
        await cache.wait_synced()
    assert cache.kind(MAPS).get(("default", "a")) == obj("a", 1, data={"x": "y"})
    await cache.stop()
    assert len(peer.asked) == 1
