"""One call on an HTTP/2 connection: the messages of gRPC, in pieces as they come.

Source: grpc `doc/PROTOCOL-HTTP2.md`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steersman.net.http2.connection import Connection

Headers = dict[str, str]


class ConnectionLost(Exception):
    """The call's connection has ended, or the peer has ended the call.

    `untouched`: it is certain that it was not, and will not be, carried out.
    """

    def __init__(self, why: str, *, untouched: bool = False) -> None:
        super().__init__(why)
        self.untouched = untouched


class Call:
    """One call: `read` its answer's messages, `write` more of its own, or `cancel` it. One task may wait at a time."""

    __slots__ = (
        "_buffer",
        "_waiter",
        "before",
        "began",
        "connection",
        "ended",
        "headers",
        "id",
        "messages",
        "owed",
        "spoken",
        "unsent",
        "window",
    )

    def __init__(self, connection: Connection, number: int, window: int, began: float, before: int) -> None:
        """`before` is how many pieces had come on the connection when the call began."""
        self.id = number
        self.began = began
        self.before = before
        self.window = window
        self.unsent: deque[tuple[memoryview, bool]] = deque()
        self.owed = 0
        self.spoken = False
        self.headers: Headers = {}
        self.messages: deque[bytes] = deque()
        self.ended: ConnectionLost | bool = False
        self.connection = connection
        self._buffer = bytearray()
        self._waiter: asyncio.Future[None] | None = None

    async def read(self) -> bytes | None:
        """The next message; None when all have been read and `headers` are complete. Raises ConnectionLost."""
        while not self.messages:
            if self.ended:
                if isinstance(self.ended, ConnectionLost):
                    raise self.ended
                return None
            await self._change()
        message = self.messages.popleft()
        if self.owed:
            self.connection.pay(self)
        return message

    async def finish(self) -> list[bytes]:
        """All messages, when the answer is complete. Raises ConnectionLost."""
        while not self.ended:
            await self._change()
        if isinstance(self.ended, ConnectionLost):
            raise self.ended
        return list(self.messages)

    def write(self, message: bytes, *, last: bool = False) -> None:
        """Send a message. Nothing happens when the call has ended: who reads is told."""
        if not self.ended:
            self.connection.send(self, message, last=last)

    def cancel(self) -> None:
        """End it; who is reading gets ConnectionLost."""
        self.connection.cancel(self)

    def take(self, data: bytes) -> None:
        """For the connection: a piece of the answer."""
        if not self._buffer and len(data) > 4 and int.from_bytes(data[1:5], "big") == len(data) - 5 and not data[0]:
            self.messages.append(data[5:])
        else:
            self._buffer += data
            self._split()
        self.wake()

    def _split(self) -> None:
        buffer, start = self._buffer, 0
        while len(buffer) - start >= 5:
            end = start + 5 + int.from_bytes(buffer[start + 1 : start + 5], "big")
            if buffer[start]:
                self.connection.cancel(self, "it compresses messages, which was not agreed on")
                return
            if end > len(buffer):
                break
            self.messages.append(bytes(memoryview(buffer)[start + 5 : end]))
            start = end
        del buffer[:start]

    def end(self, why: ConnectionLost | None = None) -> None:
        """For the connection: nothing comes any more."""
        if why is None and self._buffer:
            why = ConnectionLost("a message was cut off")
        self.ended = why or True
        self.unsent.clear()
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _change(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
