"""A peer for the client: a real HTTP server on a socket that answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from steersman.client import Client, Config


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    connection: int
    at: float


@dataclass
class Answer:
    """What to answer. `chunks` makes a chunked answer: bytes are sent, awaitables awaited. `cut` ends the connection at
    the end, in the middle of the message; `silent` says nothing at all before that."""

    status: int = 200
    body: Any = None
    headers: Sequence[tuple[str, str]] = ()
    chunks: Sequence[bytes | Callable[[], Awaitable[Any]]] | None = None
    cut: bool = False
    silent: bool = False
    wait: Callable[[], Awaitable[Any]] | None = None


@dataclass
class Peer:
    """Answers by (verb, path), where the verb of a watch is WATCH; the last answer of a sequence is repeated."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: dict[tuple[str, str], deque[Answer]] = field(default_factory=lambda: defaultdict(deque))
    connections: int = 0
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def on(self, verb: str, path: str, *answers: Answer) -> None:
        self.answers[verb, path].extend(answers)

    def asked_for(self, verb: str, path: str) -> list[Asked]:
        return [asked for asked in self.asked if (_verb(asked), asked.path) == (verb, path)]

    async def until(self, verb: str, path: str, count: int = 1) -> None:
        """Returns when so many requests have arrived."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.asked_for(verb, path)) >= count)

    def client(self, **options: Any) -> Client:
        return Client(Config(self.url, **options.pop("config", {})), **options)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._writers.add(writer)
        try:
            while (asked := await _read(reader, number)) is not None:
                async with self.arrived:
                    self.asked.append(asked)
                    self.arrived.notify_all()
                if not await self._answer(asked, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        queue = self.answers.get((_verb(asked), asked.path))
        if not queue:
            answer = Answer(404, {"kind": "Status", "reason": "NotFound", "details": {}, "message": "not scripted"})
        else:
            answer = queue.popleft() if len(queue) > 1 else queue[0]
        if answer.wait is not None:
            await answer.wait()
        if answer.silent:
            return False
        body = answer.body if isinstance(answer.body, bytes) else orjson.dumps(answer.body)
        length = "Transfer-Encoding: chunked" if answer.chunks is not None else f"Content-Length: {len(body)}"
        head = [f"HTTP/1.1 {answer.status} Scripted", "Content-Type: application/json", length]
        head += [f"{key}: {value}" for key, value in answer.headers]
        writer.write("\r\n".join([*head, "", ""]).encode())
        if answer.chunks is None:
            writer.write(body)
        for chunk in answer.chunks or ():
            if isinstance(chunk, bytes):
                writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                await writer.drain()
            else:
                await chunk()
        if answer.chunks is not None and not answer.cut:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return not answer.cut

    def close_connections(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


def _verb(asked: Asked) -> str:
    return "WATCH" if asked.query.get("watch") == "true" else asked.method


async def _read(reader: asyncio.StreamReader, number: int) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")[:-2]
    method, target, _ = first.split(" ")
    headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    query = {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
    now = asyncio.get_running_loop().time()
    return Asked(method, parts.path, query, headers, orjson.loads(body) if body else None, number, now)


@contextlib.asynccontextmanager
async def serving(context: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    peer = Peer()
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=context, limit=2**22)
    port = server.sockets[0].getsockname()[1]
    peer.url = f"http{'s' if context else ''}://127.0.0.1:{port}"
    try:
        yield peer
    finally:
        server.close()
        peer.close_connections()
        await server.wait_closed()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A scripted server over plain HTTP."""
    async with serving() as peer:
        yield peer


@pytest.fixture
def tls_peer() -> Callable[[ssl.SSLContext], contextlib.AbstractAsyncContextManager[Peer]]:
    """Makes scripted servers over TLS."""
    return serving


@pytest.fixture
def answer() -> type[Answer]:
    return Answer


@pytest.fixture
async def client(peer: Peer) -> AsyncIterator[Client]:
    """A client of the scripted server."""
    async with peer.client() as client:
        yield client
