"""The watch against a server that cuts, forgets, refuses and stays silent."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import orjson
import pytest

from steersman.apimachinery import errors
from steersman.client import (
    Backoff,
    Client,
    CustomResource,
    DecodeError,
    Model,
    NoMatch,
    Resource,
    Watch,
    custom_resource,
)
from steersman.client import watch as watch_module

MAPS = Resource("v1", "ConfigMap", "configmaps", True)
PATH = "/api/v1/configmaps"
QUICK = Backoff(steps=1, duration=0.02, factor=2.0, cap=0.1)
GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
UNKNOWN = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "sendInitialEvents: Forbidden"}


def obj(name: str, version: int, uid: str = "", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": uid or name, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **more}


def line(kind: str, body: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": body}) + b"\n"


def bookmark(version: int, end: bool = False) -> bytes:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if end else {}
    return line("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": str(version), **annotations}})


def listed(version: int, *items: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "ConfigMapList", "metadata": {"resourceVersion": str(version)}, "items": list(items)}


async def forever() -> None:
    await asyncio.Event().wait()


async def take(events: Watch[dict[str, Any]], count: int) -> list[tuple[str, str, str, bool]]:
    """(type, name, resourceVersion, initial) of so many events."""
    out: list[tuple[str, str, str, bool]] = []
    async with asyncio.timeout(10):
        for _ in range(count):
            event = await anext(events)
            metadata = event.object["metadata"]
            out.append((event.type, metadata["name"], metadata["resourceVersion"], event.initial))
    return out


async def test_it_begins_with_the_state_and_goes_on_from_there(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(200, listed(5, obj("a", 1), obj("b", 2))))
    peer.on("WATCH", PATH, answer(200, chunks=[line("MODIFIED", obj("a", 6)), line("DELETED", obj("b", 7)), forever]))
    synced: list[str] = []
    async with client.watch(MAPS, initial="list", on_synced=lambda: synced.append("now")) as events:
        assert await take(events, 2) == [("ADDED", "a", "1", True), ("ADDED", "b", "2", True)]
        assert synced == []
        assert await take(events, 2) == [("MODIFIED", "a", "6", False), ("DELETED", "b", "7", False)]
        assert synced == ["now"]
    [asked] = peer.asked_for("WATCH", PATH)
    assert asked.query["resourceVersion"] == "5"
    assert asked.query["allowWatchBookmarks"] == "true"
    assert 300 <= int(asked.query["timeoutSeconds"]) <= 600


async def test_the_state_can_be_streamed(peer: Any, client: Client, answer: Any) -> None:
    chunks = [line("ADDED", obj("a", 1)), bookmark(4), line("ADDED", obj("b", 2)), bookmark(5, end=True)]
    peer.on("WATCH", PATH, answer(200, chunks=[*chunks, line("ADDED", obj("c", 6)), forever]))
    async with client.watch(MAPS) as events:
        assert await take(events, 3) == [
            ("ADDED", "a", "1", True),
            ("ADDED", "b", "2", True),
            ("ADDED", "c", "6", False),
        ]
    [asked] = peer.asked
    assert asked.query["sendInitialEvents"] == "true"
    assert asked.query["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in asked.query


async def test_a_server_that_refuses_to_stream_the_state_is_listed(peer: Any, client: Client, answer: Any) -> None:
    peer.on("WATCH", PATH, answer(422, UNKNOWN), answer(200, chunks=[forever]))
    peer.on("GET", PATH, answer(200, listed(5, obj("a", 1))))
    async with client.watch(MAPS) as events:
        assert await take(events, 1) == [("ADDED", "a", "1", True)]


async def test_a_server_that_never_ends_the_state_is_listed(
    peer: Any, client: Client, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "INITIAL_SILENCE", 0.05)
    peer.on(
        "WATCH",
        PATH,
        answer(200, chunks=[line("ADDED", obj("a", 1)), forever]),
        answer(200, chunks=[line("ADDED", obj("c", 6)), forever]),
    )
    peer.on("GET", PATH, answer(200, listed(5, obj("a", 1), obj("b", 2))))
    async with client.watch(MAPS) as events:
        assert await take(events, 3) == [
            ("ADDED", "a", "1", True),
            ("ADDED", "b", "2", True),
            ("ADDED", "c", "6", False),
        ]


@pytest.mark.parametrize("cut", [False, True])
async def test_it_resumes_where_the_connection_ended(peer: Any, client: Client, answer: Any, cut: bool) -> None:
    half = line("MODIFIED", obj("a", 9))[:20]
    peer.on(
        "WATCH",
        PATH,
        answer(200, chunks=[line("MODIFIED", obj("a", 6)), bookmark(8), *([half] if cut else [])], cut=cut),
        answer(200, chunks=[line("MODIFIED", obj("a", 9)), forever]),
    )
    failures: list[Exception] = []
    async with client.watch(MAPS, resource_version="5", backoff=QUICK, on_error=failures.append) as events:
        assert await take(events, 2) == [("MODIFIED", "a", "6", False), ("MODIFIED", "a", "9", False)]
        assert events.resource_version == "8"
    assert [asked.query["resourceVersion"] for asked in peer.asked_for("WATCH", PATH)] == ["5", "8"]
    assert [asked.query["resourceVersion"] for asked in peer.asked_for("GET", PATH)] == ["8"] * cut
    assert len(failures) == cut


TOO_LARGE = {
    "kind": "Status",
    "code": 504,
    "reason": "Timeout",
    "message": "Timeout: Too large resource version: 800, current: 3",
    "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
}


@pytest.mark.parametrize("refused", [False, True], ids=["at once", "after 401"])
async def test_a_server_that_has_begun_anew_is_noticed(peer: Any, client: Client, answer: Any, refused: bool) -> None:
    """It was restored from a backup, say: from where the watch has been, nothing would come for a long time."""
    unauthorized = answer(401, {"kind": "Status", "code": 401, "reason": "Unauthorized"})
    peer.on(
        "WATCH",
        PATH,
        answer(
            200, chunks=[line("ADDED", obj("a", 700)), line("ADDED", obj("b", 800)), bookmark(800, end=True)], cut=True
        ),
        *([unauthorized] if refused else []),
        answer(200, chunks=[line("ADDED", obj("a", 3)), bookmark(3, end=True), line("ADDED", obj("c", 4)), forever]),
    )
    peer.on("GET", PATH, *([unauthorized] if refused else []), answer(504, TOO_LARGE))
    async with client.watch(MAPS, backoff=QUICK, on_error=lambda error: None) as events:
        assert await take(events, 5) == [
            ("ADDED", "a", "700", True),
            ("ADDED", "b", "800", True),
            ("MODIFIED", "a", "3", True),
            ("DELETED", "b", "800", True),
            ("ADDED", "c", "4", False),
        ]
    assert "resourceVersion" not in peer.asked_for("WATCH", PATH)[-1].query


async def test_who_may_not_list_may_watch_on(peer: Any, client: Client, answer: Any) -> None:
    peer.on(
        "WATCH",
        PATH,
        answer(200, chunks=[line("MODIFIED", obj("a", 6))], cut=True),
        answer(200, chunks=[line("MODIFIED", obj("a", 9)), forever]),
    )
    peer.on("GET", PATH, answer(403, {"kind": "Status", "code": 403, "reason": "Forbidden"}))
    async with client.watch(MAPS, resource_version="5", backoff=QUICK) as events:
        assert await take(events, 2) == [("MODIFIED", "a", "6", False), ("MODIFIED", "a", "9", False)]


async def test_events_larger_than_any_buffer(peer: Any, client: Client, answer: Any) -> None:
    large = obj("a", 6, data={"x": "y" * 1_500_000})
    peer.on("WATCH", PATH, answer(200, chunks=[line("ADDED", large), forever]))
    async with client.watch(MAPS, resource_version="5") as events:
        event = await anext(events)
    assert event.object == large


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("form", ["http", "event"])
async def test_after_a_gap_what_changed_is_told(
    peer: Any, client: Client, answer: Any, form: str, streamed: bool
) -> None:
    first = [obj("same", 1), obj("changed", 2), obj("gone", 3), obj("anew", 4)]
    second = [obj("same", 1), obj("changed", 8), obj("anew", 9, uid="another"), obj("new", 7)]
    told = [
        ("MODIFIED", "changed", "8", True),
        ("DELETED", "anew", "4", True),
        ("ADDED", "anew", "9", True),
        ("ADDED", "new", "7", True),
        ("DELETED", "gone", "3", True),
    ]
    gap = answer(410, GONE) if form == "http" else answer(200, chunks=[line("ERROR", GONE), forever])
    if streamed:
        states = [
            answer(200, chunks=[*[line("ADDED", o) for o in state], bookmark(version, end=True), *after])
            for state, version, after in ((first, 5, [line("ERROR", GONE)]), (second, 10, [forever]))
        ]
        peer.on("WATCH", PATH, *states)
    else:
        peer.on("GET", PATH, answer(200, listed(5, *first)), answer(200, listed(10, *second)))
        peer.on("WATCH", PATH, gap, answer(200, chunks=[line("MODIFIED", obj("new", 11)), forever]))
    async with client.watch(MAPS, initial="auto" if streamed else "list", backoff=QUICK) as events:
        assert len(await take(events, 4)) == 4
        assert await take(events, 5) == told
        if not streamed:
            assert await take(events, 1) == [("MODIFIED", "new", "11", False)]
            assert peer.asked_for("WATCH", PATH)[-1].query["resourceVersion"] == "10"


async def test_a_server_that_always_forgets_is_asked_ever_more_rarely(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(200, listed(5, obj("a", 1))))
    peer.on("WATCH", PATH, answer(410, GONE))
    backoff = Backoff(steps=1, duration=0.05, factor=2.0, cap=10.0)
    failed = asyncio.Event()
    failures: list[Exception] = []

    def count(error: Exception) -> None:
        failures.append(error)
        if len(failures) == 5:
            failed.set()

    async with client.watch(MAPS, initial="list", backoff=backoff, on_error=count) as events:
        assert await take(events, 1) == [("ADDED", "a", "1", True)]
        waiting = asyncio.ensure_future(anext(events))
        async with asyncio.timeout(10):
            await failed.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
    starts = [asked.at for asked in peer.asked_for("GET", PATH)]
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert [gap >= least for gap, least in zip(gaps, (0.0, 0.05, 0.1, 0.2), strict=True)] == [True] * 4
    assert len(peer.asked) == 10


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered(peer: Any, client: Client, answer: Any) -> None:
    peer.on("WATCH", PATH, answer(200, chunks=[]))
    failures: list[Exception] = []
    backoff = Backoff(steps=1, duration=0.1)
    async with client.watch(MAPS, resource_version="5", backoff=backoff, on_error=failures.append) as events:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.35):
                await anext(events)
    assert 2 <= len(peer.asked) <= 4
    assert all("ended the watch at once" in str(failure) for failure in failures)


@pytest.mark.parametrize("code", [403, 404, 401])
async def test_a_refusal_at_the_beginning_is_raised(peer: Any, client: Client, answer: Any, code: int) -> None:
    peer.on("WATCH", PATH, answer(code, {"kind": "Status", "code": code, "message": "no"}))
    async with client.watch(MAPS) as events:
        with pytest.raises(errors.ApiError, match="no") as caught:
            await anext(events)
    assert caught.value.code == code


async def test_a_kind_that_is_not_served_is_raised(client: Client) -> None:
    async with client.watch(Resource("nowhere.io/v1", "Thing")) as events:
        with pytest.raises(NoMatch):
            await anext(events)


async def test_a_refusal_later_is_waited_out(peer: Any, client: Client, answer: Any) -> None:
    refused = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}
    peer.on("GET", PATH, answer(200, listed(5, obj("a", 1))))
    peer.on(
        "WATCH",
        PATH,
        answer(403, refused),
        answer(silent=True),
        answer(200, chunks=[line("ADDED", obj("b", 6)), forever]),
    )
    failures: list[Exception] = []
    async with client.watch(MAPS, initial="list", backoff=QUICK, on_error=failures.append) as events:
        assert [event[1] for event in await take(events, 2)] == ["a", "b"]
    assert [type(failure) for failure in failures] == [errors.Forbidden]


async def test_a_state_that_cannot_be_read_yet_is_waited_for(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(504, b"gateway"), answer(200, listed(5, obj("a", 1))))
    peer.on("WATCH", PATH, answer(200, chunks=[forever]))
    failures: list[Exception] = []
    async with client.watch(MAPS, initial="list", backoff=QUICK, on_error=failures.append) as events:
        assert await take(events, 1) == [("ADDED", "a", "1", True)]
    assert [getattr(failure, "code", 0) for failure in failures] == [504]


async def test_a_state_cut_short_deletes_nothing(peer: Any, client: Client, answer: Any) -> None:
    whole = [line("ADDED", obj("a", 1)), line("ADDED", obj("b", 2)), bookmark(5, end=True)]
    peer.on(
        "WATCH",
        PATH,
        answer(200, chunks=[*whole, line("ERROR", GONE)]),
        answer(200, chunks=[line("ADDED", obj("a", 6))], cut=True),
        answer(200, chunks=[line("ADDED", obj("a", 6)), line("ADDED", obj("b", 2)), bookmark(7, end=True), forever]),
    )
    async with client.watch(MAPS, backoff=QUICK) as events:
        assert [event[:2] for event in await take(events, 3)] == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a")]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await anext(events)
    assert len(peer.asked) == 3


async def test_a_bookmark_may_hold_next_to_nothing(peer: Any, client: Client, answer: Any) -> None:
    odd = line("BOOKMARK", {"metadata": {"resourceVersion": "8"}, "spec": {"template": None}})
    peer.on("WATCH", PATH, answer(200, chunks=[odd]), answer(200, chunks=[line("ADDED", obj("a", 9)), forever]))
    async with client.watch(MAPS, resource_version="5", backoff=QUICK) as events:
        assert await take(events, 1) == [("ADDED", "a", "9", False)]
    assert peer.asked[1].query["resourceVersion"] == "8"


async def test_a_line_that_is_no_event_is_read_again(peer: Any, client: Client, answer: Any) -> None:
    peer.on(
        "WATCH",
        PATH,
        answer(200, chunks=[line("ADDED", obj("a", 6)), b"<html>\n"]),
        answer(200, chunks=[line("ADDED", obj("b", 7)), forever]),
    )
    failures: list[Exception] = []
    async with client.watch(MAPS, resource_version="5", backoff=QUICK, on_error=failures.append) as events:
        assert [event[1] for event in await take(events, 2)] == ["a", "b"]
    assert [type(failure) for failure in failures] == [DecodeError]
    assert peer.asked[1].query["resourceVersion"] == "6"


class Data(Model):
    size: int = 0


@custom_resource("v1", kind="ConfigMap", plural="configmaps", namespaced=True)
class Typed(CustomResource[Data, Data]): ...


async def test_an_object_that_does_not_fit_its_model_does_not_end_the_watch(
    peer: Any, client: Client, answer: Any
) -> None:
    chunks = [
        line("ADDED", obj("a", 6, spec={"size": 1})),
        line("ADDED", obj("b", 7, spec={"size": "large"})),
        line("ADDED", obj("c", 8, spec={"size": 3})),
    ]
    peer.on("WATCH", PATH, answer(200, chunks=[*chunks, forever]))
    async with client.watch(Typed, resource_version="5") as events:
        assert (await anext(events)).object.spec.size == 1
        with pytest.raises(DecodeError) as caught:
            await anext(events)
        assert caught.value.raw is not None
        assert caught.value.raw["metadata"]["name"] == "b"
        assert (await anext(events)).object.spec.size == 3


async def test_one_object_can_be_watched(peer: Any, client: Client, answer: Any) -> None:
    peer.on("WATCH", "/api/v1/namespaces/apps/configmaps", answer(200, chunks=[bookmark(5, end=True), forever]))
    async with client.watch(MAPS, namespace="apps", name="a", field_selector="x=y", label_selector="p=q") as events:
        waiting = asyncio.ensure_future(anext(events))
        await peer.until("WATCH", "/api/v1/namespaces/apps/configmaps")
        waiting.cancel()
        await asyncio.wait([waiting])
    query = peer.asked[0].query
    assert (query["fieldSelector"], query["labelSelector"]) == ("x=y,metadata.name=a", "p=q")


async def test_waiting_with_a_timeout_does_not_end_the_watch(peer: Any, client: Client, answer: Any) -> None:
    peer.on(
        "WATCH",
        PATH,
        answer(200, chunks=[line("ADDED", obj("a", 6)), forever]),
        answer(200, chunks=[line("ADDED", obj("b", 7)), forever]),
    )
    async with client.watch(MAPS, resource_version="5") as events:
        assert await take(events, 1) == [("ADDED", "a", "6", False)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(events)
        assert await take(events, 1) == [("ADDED", "b", "7", False)]
    assert [asked.query["resourceVersion"] for asked in peer.asked] == ["5", "6"]


async def test_ending_the_watch_ends_its_connection(peer: Any, client: Client, answer: Any) -> None:
    peer.on("WATCH", PATH, answer(200, chunks=[line("ADDED", obj("a", 6)), forever]))
    async with client.watch(MAPS, resource_version="5") as events:
        await anext(events)
    with pytest.raises(StopAsyncIteration):
        await anext(events)
    assert client._transport._pool.users == 0  # type: ignore[attr-defined]
