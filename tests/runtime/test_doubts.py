"""Writes of which it is not known what they have come to: the next read asks the server, until it has heard."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.kit import MAPS, Lab, Sent, heard_of
from tests.runtime.test_client import cached

from steersman.apimachinery.errors import ApiError, NotFound
from steersman.client.transport import RawResponse, TransportError

FAILURE = RawResponse(500, (), b'{"kind": "Status", "apiVersion": "v1", "code": 500, "reason": "InternalError"}')


def losing(method: str) -> Any:
    def refuse(sent: Sent) -> RawResponse | None:
        return FAILURE if sent.method == method and not sent.watch else None

    return refuse


@pytest.mark.parametrize("error", [TransportError("the answer is lost"), None], ids=["lost", "500"])
async def test_a_write_whose_answer_is_lost_is_read_from_the_server(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    await lab.map("a", {"x": "1"})
    async with cached(lab) as (client, wire):
        wire.events.close()
        inner = wire.request

        async def request(method: str, *rest: Any, **more: Any) -> RawResponse:
            answer = await inner(method, *rest, **more)
            if method != "PATCH":
                return answer
            if error is not None:
                raise error
            return FAILURE

        monkeypatch.setattr(wire, "request", request)
        with pytest.raises((TransportError, ApiError)):
            await client.patch(MAPS, "a", {"data": {"x": "2"}})
        assert (await client.get(MAPS, "a"))["data"] == {"x": "2"}
        assert len(wire.reads("/configmaps/a")) == 1
        await client.get(MAPS, "a")
        assert len(wire.reads("/configmaps/a")) == 1, "the cache has heard of it"


async def test_a_write_that_is_refused_leaves_no_doubt(lab: Lab) -> None:
    await lab.map("a", {"x": "1"})
    async with cached(lab) as (client, wire):
        with pytest.raises(ApiError):
            await client.patch(MAPS, "a", {"data": {"not a key!": "2"}})
        assert (await client.get(MAPS, "a"))["data"] == {"x": "1"}
        assert wire.reads() == []


async def test_a_doubt_lasts_until_the_server_has_answered(lab: Lab) -> None:
    await lab.make("a")
    async with cached(lab) as (client, wire):
        wire.events.close()
        scale = await client.get_scale(lab.widget, "a")
        scale["spec"]["replicas"] = 9
        await client.update_scale(lab.widget, "a", scale)
        wire.refuse = losing("GET")
        for _ in range(2):
            with pytest.raises(ApiError):
                await client.get(lab.widget, "a")
        wire.refuse = lambda sent: None
        assert (await client.get(lab.widget, "a"))["spec"] == {"replicas": 9}


async def test_lists_are_not_older_than_a_scale(lab: Lab) -> None:
    for name in ("a", "b"):
        await lab.make(name)
    async with cached(lab) as (client, wire):
        wire.events.close()
        scale = await client.get_scale(lab.widget, "a")
        scale["spec"]["replicas"] = 9
        await client.update_scale(lab.widget, "a", scale)
        wire.sent.clear()
        listed = [each["spec"]["replicas"] async for each in client.list(lab.widget, namespace=lab.namespace)]
        assert listed == [9, 1]
        assert len(wire.reads()) == 1
        assert [each async for each in client.list(lab.widget, namespace=lab.namespace)]
        assert len(wire.reads()) == 1


@pytest.mark.parametrize("count", [3, 20])
async def test_a_deleted_collection_is_gone_at_once(lab: Lab, count: int) -> None:
    """Be it few objects, of which each is asked for, or many, where a list is the better question."""
    for number in range(count):
        await lab.make(f"w{number}")
    await lab.make("held", finalizers=["example.com/hold"])
    async with cached(lab) as (client, wire):
        wire.events.close()
        await client.delete_collection(lab.widget)
        [held] = [each async for each in client.list(lab.widget, namespace=lab.namespace)]
        assert held["metadata"]["name"] == "held"
        assert held["metadata"]["deletionTimestamp"]
        with pytest.raises(NotFound):
            await client.get(lab.widget, "w0")
        assert (await client.get(lab.widget, "held"))["metadata"]["deletionTimestamp"]
        wire.events.open()
        await heard_of(client.cache.kind(lab.widget).informers[0], await lab.make("later"))
        wire.sent.clear()
        names = [each["metadata"]["name"] async for each in client.list(lab.widget, namespace=lab.namespace)]
        assert names == ["held", "later"]
        assert wire.reads() == []
