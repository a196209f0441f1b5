"""Watches over WebSockets: an event is a message, text or, in protobuf, binary."""

from __future__ import annotations

import aiohttp

from ...conftest import RunningServer

MAPS = "/api/v1/namespaces/default/configmaps"
WATCH = f"{MAPS}?watch=true&fieldSelector=metadata.name%3Dtold"


async def test_events_are_messages(apiserver: RunningServer) -> None:
    made = await apiserver.request("POST", MAPS, {"metadata": {"name": "told"}})
    async with apiserver.session() as session, session.ws_connect(WATCH, origin="https://example.com") as socket:
        added = await socket.receive_json()
        assert (added["type"], added["object"]["metadata"]["uid"]) == ("ADDED", made.body["metadata"]["uid"])
        await apiserver.request("DELETE", f"{MAPS}/told")
        assert (await socket.receive_json())["type"] == "DELETED"


async def test_the_time_limit_ends_it_with_a_goodbye(apiserver: RunningServer) -> None:
    async with apiserver.session() as session, session.ws_connect(f"{WATCH}&timeoutSeconds=1", origin="x") as socket:
        ended = await socket.receive()
        assert (ended.type, ended.data) == (aiohttp.WSMsgType.CLOSE, 1000)


async def test_protobuf_is_binary(apiserver: RunningServer) -> None:
    await apiserver.request("POST", MAPS, {"metadata": {"name": "told"}})
    headers = {"Accept": "application/vnd.kubernetes.protobuf"}
    async with apiserver.session() as session, session.ws_connect(WATCH, origin="x", headers=headers) as socket:
        assert (await socket.receive_bytes()).startswith(b"\n\x05ADDED")
