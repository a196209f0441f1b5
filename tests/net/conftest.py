"""Servers on real sockets, on both event loops, and a client that sends bytes as they are."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest
import uvloop

from steersman.net.grpc import Channel
from steersman.net.http import AnyHandler, Request, Response
from steersman.net.server import Server

from .http2_peer import PATIENCE, served
from .http2_peer import Server as HTTP2Server

Start = Callable[..., Awaitable[Server]]
Talk = Callable[..., Awaitable[bytes]]


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts servers that are stopped at the test's end."""
    servers: list[Server] = []

    async def start_one(handler: AnyHandler, **options: Any) -> Server:
        servers.append(await Server.start(handler, **options))
        return servers[-1]

    yield start_one
    for server in servers:
        await server.stop(grace=0)


@pytest.fixture
def talk() -> Talk:
    """Sends bytes (or several pieces) to a server and returns all it answers until it closes."""

    async def exchange(server: Server, *pieces: bytes, tls: ssl.SSLContext | None = None, eof: bool = False) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            if eof:
                writer.write_eof()
            async with asyncio.timeout(20):
                return await reader.read()
        finally:
            writer.transport.abort()

    return exchange


@pytest.fixture
def echo() -> AnyHandler:
    """Answers with what it was asked."""

    async def handle(request: Request) -> Response:
        text = f"{request.method} {request.path} ?{request.query} {len(request.body)}:".encode()
        extra = "".join(f"{k}={v};" for k, v in sorted(request.headers.items()) if k.startswith("x-"))
        if request.too_large:
            return Response(413, (("Content-Type", "text/plain"),), b"too large")
        return Response(200, (("Content-Type", "text/plain"),), text + request.body + extra.encode())

    return handle


@pytest.fixture
async def server() -> AsyncIterator[HTTP2Server]:
    async with served() as server:
        yield server


@pytest.fixture
async def channel(server: HTTP2Server) -> AsyncIterator[Channel]:
    """Nothing may be left of it, and nothing may have gone wrong unseen."""
    unseen: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unseen.append(context))
    channel = Channel("127.0.0.1", server.port, None, connect_within=PATIENCE)
    yield channel
    await channel.close()
    assert [task for task in asyncio.all_tasks() if task.get_coro().__qualname__.startswith("Channel.")] == []
    gc.collect()
    assert unseen == []
