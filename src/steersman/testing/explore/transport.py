"""The client's transport over the explored network, into a server on the same event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from steersman._util.tasks import end
from steersman.apimachinery.request_info import RequestInfo, parse_request
from steersman.client.options import default_user_agent
from steersman.client.transport import ConnectError, Headers, RawResponse, RawStream, TransportError, TransportTimeout
from steersman.client.transport import header as header_of
from steersman.net.http import Handler, Request, Response, StreamResponse
from steersman.testing.explore import story
from steersman.testing.explore.network import Flow, Network

_BROKEN = "the connection broke"


@dataclass(slots=True)
class Wire:
    """What all clients of a run share. `handle` is None while the server is away."""

    network: Network
    handle: Handler | None = None
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    open: set[Pipe] = field(default_factory=set)
    clients: dict[str, int] = field(default_factory=dict)

    def name(self, agent: str) -> str:
        """What a client is called in the story: by its user agent, with a number where others have the same."""
        name = "client" if agent == default_user_agent() else agent.split(" ")[0].split("/")[0]
        number = self.clients[name] = self.clients.get(name, 0) + 1
        return name if number == 1 else f"{name}#{number}"


class ExploredTransport:
    """See `steersman.client.transport.Transport`. What is sent stays in flight when the client gives up waiting."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._name = ""

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Headers = (),
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> RawResponse:
        """See `Transport.request`."""
        pipe = self._send(method, path, query, headers, body)
        try:
            async with asyncio.timeout(timeout):
                status, answered = await pipe.head
                return RawResponse(status, answered, b"".join([chunk async for chunk in pipe.chunks()]))
        except TimeoutError:
            raise TransportTimeout(f"{method} {path}: no answer within {timeout} seconds") from None
        finally:
            pipe.leave()

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Headers = (),
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[RawStream]:
        """See `Transport.stream`."""
        pipe = self._send(method, path, query, headers, body)
        try:
            try:
                async with asyncio.timeout(timeout):
                    status, answered = await pipe.head
            except TimeoutError:
                raise TransportTimeout(f"{method} {path}: no answer within {timeout} seconds") from None
            yield RawStream(status, answered, pipe.chunks())
        finally:
            pipe.leave()

    async def close(self) -> None:
        """There is no connection to close."""

    def _send(self, method: str, path: str, query: str, headers: Headers, body: bytes | None) -> Pipe:
        wire, info = self._wire, parse_request(method, path, query)
        if not self._name:
            self._name = wire.name(header_of(headers, "User-Agent") or "")
        if wire.handle is None:
            raise ConnectError(f"{method} {path}: connection refused")
        folded = {name.lower(): value for name, value in headers}
        request = Request(method, path, query, folded, body or b"")
        pipe = Pipe(wire, wire.network.flow(self._name), info)
        pipe.send(partial(story.request, info, body), partial(pipe.serve, request))
        return pipe


class Pipe:
    """One request's way to the server and its answer's way back. To the server, it is the answer's `Stream`."""

    def __init__(self, wire: Wire, flow: Flow, info: RequestInfo) -> None:
        self.head: asyncio.Future[tuple[int, Headers]] = asyncio.get_running_loop().create_future()
        self._wire = wire
        self._flow = flow
        self._info = info
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._gone = asyncio.Event()
        self._size = 0
        self._broken = False
        self._left = False
        wire.open.add(self)

    def send(self, text: partial[str], arrive: partial[None]) -> None:
        """Send over the network; discovery, which every client begins with, arrives at once and is not told."""
        if self._info.is_resource:
            self._wire.network.send(self._flow, text, arrive, self._cut)
        else:
            arrive()

    def serve(self, request: Request) -> None:
        """The request has arrived: it is carried out, whether its client still waits or not."""
        task = asyncio.get_running_loop().create_task(self._serve(request))
        self._wire.tasks.add(task)
        task.add_done_callback(self._wire.tasks.discard)

    async def _serve(self, request: Request) -> None:
        handle = self._wire.handle
        if handle is None or self._broken:
            self.abort()
            return
        answer = await handle(request)
        if isinstance(answer, Response):
            body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
            told = partial(story.answer, self._info, answer.status, body)
            self.send(told, partial(self._whole, answer.status, answer.headers, body))
            return
        if answer.status == 200 and self._info.verb == "watch":
            begun = partial(story.answer, self._info, answer.status, b"")
            self.send(begun, partial(self._begun, answer.status, answer.headers))
        await self._run(answer)

    async def _run(self, answer: StreamResponse) -> None:
        try:
            await answer.run(self)
        finally:
            if not self._broken:
                self.send(partial(story.ended, self._info), partial(self._end, answer))

    def _whole(self, status: int, headers: Headers, body: bytes) -> None:
        self._begun(status, headers)
        self._arrived.put_nowait(body)
        self._arrived.put_nowait(None)

    def _begun(self, status: int, headers: Headers) -> None:
        if not self.head.done():
            self.head.set_result((status, headers))

    def _end(self, answer: StreamResponse) -> None:
        self._begun(answer.status, answer.headers)
        self._arrived.put_nowait(None)

    def write(self, data: bytes) -> None:
        """See `Stream.write`."""
        if self._broken or self._left:
            return
        self._size += len(data)
        told = partial(story.events, self._info, data) if self._info.verb == "watch" else partial(str, "~~> data")
        self.send(told, partial(self._take, data))

    def write_chunk(self, chunk: bytes) -> None:
        """See `Stream.write_chunk`; it may be several chunks."""
        self.write(b"".join(_chunks(chunk)))

    @property
    def buffered(self) -> int:
        """See `Stream.buffered`."""
        return self._size

    def abort(self) -> None:
        """See `Stream.abort`: what was sent before may still arrive, and then the connection breaks."""
        if not self._broken:
            self._broken = True
            self._gone.set()
            self.send(partial(story.failure, self._info, _BROKEN), partial(self._break))

    async def closed(self) -> None:
        """See `Stream.closed`."""
        await self._gone.wait()

    def leave(self) -> None:
        """The client does not wait any more."""
        self._left = True
        self._gone.set()
        self.head.cancel()
        self._wire.open.discard(self)

    async def chunks(self) -> AsyncIterator[bytes]:
        """What arrives of the body. Raises TransportError when the connection breaks."""
        while (data := await self._arrived.get()) is not None:
            yield data
        if self._broken:
            raise TransportError(f"{self._info.method} {self._info.path}: {_BROKEN}")

    def _cut(self) -> None:
        """The network has broken the connection: both sides find out."""
        self._broken = True
        self._gone.set()
        self._break()

    def _take(self, data: bytes) -> None:
        self._size -= len(data)
        self._arrived.put_nowait(data)

    def _break(self) -> None:
        if not self.head.done():
            self.head.set_exception(TransportError(f"{self._info.method} {self._info.path}: {_BROKEN}"))
        self._arrived.put_nowait(None)


async def cut(wire: Wire) -> None:
    """Break all connections; what the server still does for them is cancelled."""
    wire.handle = None
    for pipe in list(wire.open):
        pipe.abort()
    await end(wire.tasks)


def _chunks(framed: bytes) -> list[bytes]:
    """The contents of HTTP/1.1 chunks."""
    found, at = [], 0
    while at < len(framed):
        line = framed.index(b"\r\n", at)
        size = int(framed[at:line], 16)
        found.append(framed[line + 2 : line + 2 + size])
        at = line + size + 4
    return found
