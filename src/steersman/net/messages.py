"""Streams as WebSocket messages (RFC 6455): each event is one, and what the client says is not listened to.

Source: golang.org/x/net `websocket/{hybi,server}.go`, apimachinery `pkg/util/httpstream/wsstream/conn.go`.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha1
from typing import TYPE_CHECKING

from .http import Messages, Request, Response
from .stream import ChunkedStream
from .wire import unframe

if TYPE_CHECKING:
    from .connection import Connection

_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_NORMAL, _PROTOCOL_ERROR = (code.to_bytes(2, "big") for code in (1000, 1002))
_MAX_CONTROL = 125
_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def are_wanted(headers: Mapping[str, str]) -> bool:
    """Whether a request with these headers (in lower case) asks for a WebSocket."""
    options = (option.strip() for option in headers.get("connection", "").lower().split(","))
    return headers.get("upgrade", "").lower() == "websocket" and "upgrade" in options


def refusal(headers: Mapping[str, str]) -> Response | None:
    """The answer to a handshake that cannot be completed; None if it can."""
    if headers.get("sec-websocket-version") != "13":
        return Response(400, (("Sec-WebSocket-Version", "13"),), b"missing or bad WebSocket Version")
    if not headers.get("sec-websocket-key"):
        return Response(400, (), b"mismatch challenge/response")
    if not headers.get("origin"):
        return Response(403)
    return None


def _handshake(request: Request) -> bytes:
    key = request.headers.get("sec-websocket-key", "")
    accepted = b64encode(sha1(f"{key}{_SUFFIX}".encode(), usedforsecurity=False).digest()).decode()
    head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += f"Sec-WebSocket-Accept: {accepted}\r\n"
    if protocol := request.headers.get("sec-websocket-protocol"):
        head += f"Sec-WebSocket-Protocol: {protocol}\r\n"
    return f"{head}\r\n".encode()


def _frame(kind: int, payload: bytes) -> bytes:
    size = len(payload)
    first = 0x80 | kind
    if size <= _MAX_CONTROL:
        return b"%c%c%b" % (first, size, payload)
    if size < 1 << 16:
        return b"%c\x7e%b%b" % (first, size.to_bytes(2, "big"), payload)
    return b"%c\x7f%b%b" % (first, size.to_bytes(8, "big"), payload)


class MessageStream(ChunkedStream):
    """A `Stream` to a client that has asked for a WebSocket."""

    __slots__ = ("_kind", "_received", "_skip", "_split")

    def __init__(self, connection: Connection, request: Request, messages: Messages) -> None:
        super().__init__(connection, _handshake(request), framed=False)
        self._split = messages.split
        self._kind = _TEXT if messages.text else _BINARY
        self._received = b""
        self._skip = 0

    def write(self, data: bytes) -> None:
        """Sends each message that `data` has; never blocks."""
        for message in self._split(data):
            self._append(_frame(self._kind, message))

    def write_chunk(self, chunk: bytes) -> None:
        """Sends each message in bytes that are framed by `http.chunk()`."""
        self.write(unframe(chunk))

    def receive(self, data: bytes) -> None:
        """Takes what was read from the client: a ping is answered, and a goodbye ends the stream."""
        for kind, payload in self._control_frames(data):
            if kind == _PING:
                self._append(_frame(_PONG, payload))
            elif kind == _CLOSE:
                self._leave()

    def _control_frames(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        data = self._received + data
        at = 0
        while True:
            skipped = min(self._skip, len(data) - at)
            self._skip -= skipped
            at += skipped
            found = _head(data, at)
            if self._skip or found is None:
                self._received = data[at:]
                return
            kind, size, start = found
            if size < 0 or (kind >= _CLOSE and size > _MAX_CONTROL):
                self._append(_frame(_CLOSE, _PROTOCOL_ERROR))
                self._leave()
                return
            if kind < _CLOSE:
                self._skip = size
                at = start
            elif start + size > len(data):
                self._received = data[at:]
                return
            else:
                mask = data[start - 4 : start]
                yield kind, bytes(byte ^ mask[i & 3] for i, byte in enumerate(data[start : start + size]))
                at = start + size

    def _leave(self) -> None:
        if self._closed is None:
            self._closed = asyncio.Event()
        self._closed.set()

    def finish(self) -> list[bytes]:
        """Ends the stream: returns what is still to be sent, a goodbye included."""
        self._append(_frame(_CLOSE, _NORMAL))
        return super().finish()


def _head(data: bytes, at: int) -> tuple[int, int, int] | None:
    """A frame's kind, the payload's size (-1 if it is not masked) and where it starts; None if data ends before."""
    if len(data) < at + 2:
        return None
    kind, size, start = data[at] & 15, data[at + 1] & 127, at + 2
    if not data[at + 1] & 128:
        return kind, -1, start
    if size > _MAX_CONTROL:
        width = 2 if size == 126 else 8
        size = int.from_bytes(data[start : start + width], "big")
        start += width
    start += 4
    return (kind, size, start) if len(data) >= start else None
