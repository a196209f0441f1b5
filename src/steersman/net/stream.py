"""Open answers: what is written in one turn of the event loop goes out together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .http import chunk
from .wire import BLOCK, unframe

if TYPE_CHECKING:
    from .connection import Connection


class ChunkedStream:
    """The server's `Stream`. To an HTTP/1.0 client the data goes unframed and ends with the connection."""

    __slots__ = ("_closed", "_connection", "_ended", "_framed", "_out", "_scheduled", "_size")

    def __init__(self, connection: Connection, head: bytes, framed: bool) -> None:
        self._connection = connection
        self._framed = framed
        self._out = [head]
        self._size = len(head)
        self._ended = False
        self._closed: asyncio.Event | None = None
        self._scheduled = True
        connection.context.flush_soon(self)

    def write(self, data: bytes) -> None:
        """Sends one chunk; never blocks. Dropped once the stream has ended; empty data sends nothing."""
        if data:
            self._append(chunk(data) if self._framed else data)

    def write_chunk(self, chunk: bytes) -> None:
        """Sends bytes already framed by `http.chunk()`."""
        self._append(chunk if self._framed else unframe(chunk))

    def _append(self, data: bytes) -> None:
        if self._ended:
            return
        self._out.append(data)
        self._size += len(data)
        if not self._scheduled:
            self._scheduled = True
            self._connection.context.flush_soon(self)

    @property
    def buffered(self) -> int:
        """Bytes accepted but not yet taken by the kernel. Behind TLS up to about 128 KiB of them escape the count."""
        return self._size + self._connection.unsent()

    def abort(self) -> None:
        """Drops the connection now, with what is buffered."""
        self._connection.abort()

    async def closed(self) -> None:
        """Returns when the client has gone, the stream was aborted, or the server is shutting down."""
        if self._closed is None:
            self._closed = asyncio.Event()
            if self._ended or self._connection.context.stopping:
                self._closed.set()
        await self._closed.wait()

    def flush(self) -> None:
        """Hands what is buffered to the transport, as far as the client keeps up."""
        self._scheduled = False
        if self._ended or not self._size:
            return
        out = self._out
        if self._size <= BLOCK:
            if not self._connection.paused:
                self._out = []
                self._size = 0
                self._connection.write(out[0] if len(out) == 1 else b"".join(out))
            return
        taken = 0
        while taken < len(out) and not self._connection.paused:
            start, size = taken, 0
            while taken < len(out) and (not size or size + len(out[taken]) <= BLOCK):
                size += len(out[taken])
                taken += 1
            self._size -= size
            self._connection.write(b"".join(out[start:taken]))
        del out[:taken]

    def finish(self) -> list[bytes]:
        """Ends the stream: takes no more; returns what is still to be sent, the last chunk included."""
        rest = [] if self._ended else self._out
        if self._framed and not self._ended:
            rest.append(b"0\r\n\r\n")
        self.drop()
        return rest

    def drop(self) -> None:
        """The client has gone: forgets what is buffered."""
        self._ended = True
        self._out = []
        self._size = 0
        self.tell_closed()

    def tell_closed(self) -> None:
        """Lets closed() return."""
        if self._closed is not None:
            self._closed.set()
