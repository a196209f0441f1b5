"""gRPC calls over HTTP/2: one message and one answer, or a stream of both.

Source: grpc `doc/PROTOCOL-HTTP2.md`, `doc/statuscodes.md`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from enum import IntEnum
from urllib.parse import unquote

from steersman._util.tasks import end
from steersman.net.http2.call import Call, ConnectionLost, Headers
from steersman.net.http2.connection import Connection, reason
from steersman.net.http2.frames import encoded

Metadata = Sequence[tuple[str, str]]
_CLOSED = "the connection was closed"
_SILENT = "no answer in time"


class Code(IntEnum):
    """What became of a call."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class CallFailed(Exception):
    """A call was not answered with OK. `untouched`: it is certain that it was not, and will not be, carried out."""

    def __init__(self, code: Code, details: str, *, untouched: bool = False) -> None:
        super().__init__(details)
        self.code = code
        self.details = details
        self.untouched = untouched


class Stream:
    """A call with messages in both directions."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def write(self, message: bytes, *, last: bool = False) -> None:
        """Send a message. Nothing happens when the stream has ended: who reads is told."""
        self._call.write(message, last=last)

    async def read(self) -> bytes | None:
        """The next message; None when the peer has ended the stream well. Raises CallFailed."""
        try:
            message = await self._call.read()
        except ConnectionLost as error:
            raise CallFailed(Code.UNAVAILABLE, str(error)) from None
        if message is None:
            _check(self._call.headers)
        return message

    def cancel(self) -> None:
        """End it; who is reading gets CallFailed."""
        self._call.cancel()


class Channel:
    """Calls to one server; connected when that is needed."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None, connect_within: float) -> None:
        """`context` must offer h2 to the peer (ALPN); `connect_within` is in seconds."""
        self._host, self._port = host, port
        self._context = context
        self._within = connect_within
        self._authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._connection: Connection | None = None
        self._leaving: list[Connection] = []
        self._closed = False
        self._connecting: asyncio.Task[Connection] | None = None
        self._blocks: dict[str, tuple[Metadata, bytes]] = {}

    async def unary(self, path: str, message: bytes, *, timeout: float, metadata: Metadata = ()) -> bytes:
        """The answer to a call. Raises CallFailed."""
        call: Call | None = None
        try:
            async with asyncio.timeout(timeout):
                call = await self._open(path, metadata)
                call.write(message, last=True)
                found = await call.finish()
        except TimeoutError:
            if call is not None:
                call.connection.doubt(call)
            raise CallFailed(Code.DEADLINE_EXCEEDED, _SILENT, untouched=call is None) from None
        except ConnectionLost as error:
            raise CallFailed(Code.UNAVAILABLE, str(error), untouched=error.untouched) from None
        finally:
            if call is not None:
                call.cancel()
        _check(call.headers)
        if len(found) != 1:
            raise CallFailed(Code.INTERNAL, f"{len(found)} messages came in answer to a call")
        return found[0]

    async def stream(self, path: str, metadata: Metadata = ()) -> Stream:
        """A new stream. Raises CallFailed."""
        try:
            return Stream(await self._open(path, metadata))
        except ConnectionLost as error:
            raise CallFailed(Code.UNAVAILABLE, str(error), untouched=error.untouched) from None

    async def close(self) -> None:
        """End all calls, and wait until nothing is left of them."""
        self._closed = True
        while self._connecting is not None:
            await end([self._connecting])
            await asyncio.sleep(0)  # for `_connected`
        for connection in self._connections():
            connection.lose(_CLOSED)
            await connection.gone

    async def _open(self, path: str, metadata: Metadata) -> Call:
        connection = self._connection
        if connection is None or not connection.usable:
            connection = await self._another()
        return await connection.open(self._block(path, metadata))

    async def _another(self) -> Connection:
        """One connection for all who need one."""
        if self._closed:
            raise ConnectionLost(_CLOSED, untouched=True)
        connecting = self._connecting
        if connecting is None:
            connecting = self._connecting = asyncio.create_task(self._connect())
            connecting.add_done_callback(self._connected)
        await asyncio.wait([connecting])
        if connecting.cancelled():
            raise ConnectionLost(_CLOSED, untouched=True)
        return connecting.result()

    def _connected(self, task: asyncio.Task[Connection]) -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._leaving = self._connections()
            self._connection = task.result()

    def _connections(self) -> list[Connection]:
        """The one for new calls, and those that the peer has called to an end, but that have calls still."""
        known = self._leaving if self._connection is None else [*self._leaving, self._connection]
        return [each for each in known if not each.gone.done()]

    async def _connect(self) -> Connection:
        loop, name = asyncio.get_running_loop(), self._host if self._context is not None else None
        try:
            async with asyncio.timeout(self._within):
                _, connection = await loop.create_connection(
                    Connection, self._host, self._port, ssl=self._context, server_hostname=name
                )
                try:
                    await connection.ready
                except BaseException:
                    connection.lose(_SILENT)
                    await connection.gone
                    raise
                return connection
        except TimeoutError:
            raise ConnectionLost(_SILENT, untouched=True) from None
        except (OSError, UnicodeError) as error:  # the latter for names that can't be those of hosts
            raise ConnectionLost(reason(error), untouched=True) from None

    def _block(self, path: str, metadata: Metadata) -> bytes:
        """A call's headers; as they hardly ever change, they are kept."""
        kept = self._blocks.get(path)
        if kept is None or kept[0] != metadata:
            kept = self._blocks[path] = (
                metadata,
                encoded(
                    (
                        (":method", "POST"),
                        (":scheme", "http" if self._context is None else "https"),
                        (":path", path),
                        (":authority", self._authority),
                        ("te", "trailers"),
                        ("content-type", "application/grpc"),
                        ("user-agent", "steersman"),
                        *metadata,
                    )
                ),
            )
        return kept[1]


def _check(headers: Headers) -> None:
    """Raises CallFailed for an answer that says that the call failed."""
    status = headers.get("grpc-status")
    if status == "0":
        return
    if status is None:
        raise CallFailed(
            Code.UNKNOWN, f"it answers as a web server does (HTTP {headers.get(':status', 'without status')})"
        )
    code = next((each for each in Code if str(int(each)) == status), Code.UNKNOWN)
    raise CallFailed(code, unquote(headers.get("grpc-message", "")) or code.name.lower())
