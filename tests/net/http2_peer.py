"""A scripted HTTP/2 server: what clients send is judged by the h2 library, what they get is said frame by frame."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, RequestReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes, Settings
from hyperframe.frame import Frame, GoAwayFrame

from steersman.net.grpc import CallFailed, Channel

PATH = "/a.Service/Method"
HEADERS = ((":status", "200"), ("content-type", "application/grpc"))
FOR_EVER = (1 << 31) - 1
PATIENCE = 30.0
"""Seconds; nothing that is tested takes so long."""


def framed(*messages: bytes) -> bytes:
    return b"".join(b"\0" + len(message).to_bytes(4, "big") + message for message in messages)


class Peer(asyncio.Protocol):
    """One connection of a client. `events` are all that h2 made of its bytes."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.local_settings = Settings(client=False, initial_values=server.settings)
        self.h2.max_inbound_frame_size = self.h2.local_settings.max_frame_size
        self.events: list[Event] = []
        self.lost = False
        self._news = asyncio.Event()
        self._told: set[int] = set()
        self._held: bytes | None = b""
        self._pings = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.server.peers.append(self)
        if self.server.greets:
            self.greet()
        self.server.news.set()

    def greet(self) -> None:
        self.h2.initiate_connection()
        held, self._held = self._held, None
        self.data_received(held or b"")

    def data_received(self, data: bytes) -> None:
        if self._held is not None:
            self._held += data
            return
        try:
            events = self.h2.receive_data(data)
            for event in events:
                if isinstance(event, DataReceived) and event.flow_controlled_length and self.server.pays:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        except Exception as error:
            self.server.faults.append(error)
            events = []
        self.events += events
        self.flush()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self._news.set()

    def flush(self) -> None:
        self.transport.write(self.h2.data_to_send())
        self._news.set()

    async def until(self, found: Callable[[], Any]) -> Any:
        """What `found` finds, when it finds something."""
        async with asyncio.timeout(PATIENCE):
            while not (it := found()):
                self._news.clear()
                await self._news.wait()
            return it

    async def event(self, kind: type[Event], number: int = 0) -> Any:
        """The first of a kind (of a call), also if it has come already."""

        def found() -> Event | None:
            of_kind = (each for each in self.events if isinstance(each, kind))
            return next((each for each in of_kind if not number or each.stream_id == number), None)

        return await self.until(found)

    async def began(self) -> int:
        """The number of the next call that has begun. Each is told once."""
        return await self._next(RequestReceived)

    async def asked(self) -> int:
        """The number of the next call that has been made in full. Each is told once."""
        return await self._next(StreamEnded)

    async def _next(self, kind: type[Event]) -> int:
        def found() -> Event | None:
            of_kind = (each for each in self.events if isinstance(each, kind))
            return next((each for each in of_kind if each.stream_id not in self._told), None)

        number = (await self.until(found)).stream_id
        self._told.add(number)
        return number

    def headers(self, number: int) -> list[tuple[str, str]]:
        of_call = (each for each in self.events if isinstance(each, RequestReceived) and each.stream_id == number)
        return next(list(each.headers) for each in of_call)

    def body(self, number: int) -> bytes:
        data = (each for each in self.events if isinstance(each, DataReceived) and each.stream_id == number)
        return b"".join(each.data for each in data)

    def begin(self, number: int) -> None:
        self.h2.send_headers(number, HEADERS)
        self.flush()

    def say(self, number: int, *messages: bytes) -> None:
        """Messages that fit in the client's windows."""
        self.h2.send_data(number, framed(*messages))
        self.flush()

    async def pour(self, number: int, data: bytes) -> None:
        """Data of any size, as the client's windows allow."""
        rest = memoryview(data)
        while rest:
            size = await self.until(lambda: self.h2.local_flow_control_window(number))
            piece = bytes(rest[: min(size, self.h2.max_outbound_frame_size)])
            self.h2.send_data(number, piece)
            self.flush()
            rest = rest[len(piece) :]

    def end(self, number: int, status: str = "0", *more: tuple[str, str]) -> None:
        self.h2.send_headers(number, [("grpc-status", status), *more], end_stream=True)
        self.flush()

    def answer(self, number: int, *messages: bytes) -> None:
        """All of an answer."""
        self.begin(number)
        self.say(number, *messages)
        self.end(number)

    def reset(self, number: int, code: int) -> None:
        self.h2.reset_stream(number, code)
        self.flush()

    def change(self, **settings: int) -> None:
        self.h2.update_settings({SettingCodes[name]: value for name, value in settings.items()})
        self.flush()

    def raw(self, *frames: Frame | bytes) -> None:
        """What h2 would not send."""
        self.transport.write(b"".join(each if isinstance(each, bytes) else each.serialize() for each in frames))

    def leave(self, last: int, code: int = 0) -> None:
        """GOAWAY; h2 lets one be followed by nothing."""
        self.raw(GoAwayFrame(0, last_stream_id=last, error_code=code))

    async def answers(self) -> None:
        """All that was sent has been received."""
        self._pings += 1
        question = self._pings.to_bytes(8, "big")
        self.h2.ping(question)
        self.flush()
        await self.until(lambda: any(getattr(each, "ping_data", b"") == question for each in self.events))

    async def until_lost(self) -> None:
        await self.until(lambda: self.lost)

    async def was_reset(self, number: int) -> int:
        """The client's code."""
        return (await self.event(StreamReset, number)).error_code


class Server:
    """Where clients connect to. `greets` at once; `pays`: what has come may be sent again; `settings` are its own."""

    def __init__(self) -> None:
        self.peers: list[Peer] = []
        self.faults: list[Exception] = []
        self.greets = self.pays = True
        self.settings: dict[SettingCodes, int] = {}
        self.news = asyncio.Event()
        self.port = 0

    async def peer(self, place: int = 0) -> Peer:
        """The connection that was the n-th."""
        async with asyncio.timeout(PATIENCE):
            while len(self.peers) <= place:
                self.news.clear()
                await self.news.wait()
        return self.peers[place]


@asynccontextmanager
async def served(context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server; no client may have broken the protocol."""
    server = Server()
    listening = await asyncio.get_running_loop().create_server(lambda: Peer(server), "127.0.0.1", 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for peer in server.peers:
            peer.transport.abort()
            await peer.until_lost()
        await listening.wait_closed()
    assert server.faults == []


def call(channel: Channel, message: bytes = b"?", timeout: float = PATIENCE) -> asyncio.Task[bytes]:
    return asyncio.create_task(channel.unary(PATH, message, timeout=timeout))


async def failure(call: Any) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await call
    return caught.value


async def works(channel: Channel, server: Server, place: int = 0) -> None:
    """The channel can still be used, over the connection that was the n-th."""
    asking = call(channel, b"still?")
    peer = await server.peer(place)
    number = await peer.asked()
    assert peer.body(number) == framed(b"still?")
    peer.answer(number, b"yes")
    assert await asking == b"yes"


async def begun(channel: Channel, server: Server) -> tuple[asyncio.Task[bytes], Peer, int]:
    """A call that waits for its answer."""
    asking = call(channel)
    peer = await server.peer(len(server.peers) - 1 if server.peers else 0)
    return asking, peer, await peer.asked()
