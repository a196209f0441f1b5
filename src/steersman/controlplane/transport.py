"""The client's transport into a server of the same process: no sockets, no TLS, and a user that is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from steersman._util.tasks import end
from steersman.apiserver.authn.authenticator import Authenticator
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.filters.stack import Filters
from steersman.apiserver.server import APIServer
from steersman.client.transport import RawResponse, RawStream, TransportError, TransportTimeout
from steersman.net.http import Request, Response, StreamResponse

Headers = Sequence[tuple[str, str]]


class _Known:
    """Takes every request for one user's."""

    def __init__(self, user: UserInfo) -> None:
        self._user = user

    async def authenticate(self, request: Request) -> UserInfo | None:
        return self._user


class InProcessTransport:
    """Requests go through the server's filters as `user`, by the same authorizer as everyone's."""

    def __init__(self, server: APIServer, user: UserInfo) -> None:
        outer = server.filters
        self._filters = Filters(server.core, Authenticator([_Known(user)]), outer.authorizer)

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Headers = (),
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> RawResponse:
        answer = await self._handle(method, path, query, headers, body, timeout)
        if not isinstance(answer, Response):
            raise TransportError("the answer is a stream")
        return RawResponse(answer.status, list(answer.headers), _whole(answer))

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
        answer = await self._handle(method, path, query, headers, body, timeout)
        if isinstance(answer, Response):
            yield RawStream(answer.status, list(answer.headers), _once(_whole(answer)))
            return
        pipe = _Pipe()
        task = asyncio.ensure_future(answer.run(pipe))
        task.add_done_callback(lambda _: pipe.end())
        try:
            yield RawStream(answer.status, list(answer.headers), pipe.chunks())
        finally:
            pipe.abort()
            await end([task])

    async def close(self) -> None:
        """There is no connection to close."""

    async def _handle(
        self, method: str, path: str, query: str, headers: Headers, body: bytes | None, timeout: float | None
    ) -> Response | StreamResponse:
        folded = {name.lower(): value for name, value in headers}
        try:
            async with asyncio.timeout(timeout):
                return await self._filters.handle(Request(method, path, query, folded, body or b""))
        except TimeoutError:
            raise TransportTimeout(f"no answer within {timeout} seconds") from None


def _whole(answer: Response) -> bytes:
    return answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


class _Pipe:
    """A stream whose chunks are read in this process."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._gone = asyncio.Event()
        self._size = 0

    def write(self, data: bytes) -> None:
        self._size += len(data)
        self._queue.put_nowait(data)

    def write_chunk(self, chunk: bytes) -> None:
        self.write(chunk[chunk.index(b"\r\n") + 2 : -2])

    @property
    def buffered(self) -> int:
        return self._size

    def abort(self) -> None:
        self._gone.set()

    async def closed(self) -> None:
        await self._gone.wait()

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def chunks(self) -> AsyncIterator[bytes]:
        while (data := await self._queue.get()) is not None:
            self._size -= len(data)
            yield data
