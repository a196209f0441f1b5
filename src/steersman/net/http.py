"""HTTP messages as the server half sees them: plain values, no sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from steersman._util.dataclass import dataclass


def decode_value(value: bytes) -> str:
    """A header's value as text: UTF-8, with U+FFFD for other bytes; the white space that surrounds it is dropped."""
    return str(value, "utf-8", "replace").strip(" \t")


class PeerCertificate(NamedTuple):
    """A client's verified certificate.

    `content` tells what is in it as `SSLObject.getpeercert()` does, or raises ssl.SSLError or ValueError.
    """

    der: bytes
    content: Callable[[], Mapping[str, Any] | None]


@dataclass(slots=True)
class Request:
    """One request, its body read. Header names are lower case; a repeated header's values are joined by ", ".

    `path` is the raw path, still percent-encoded; `query` the raw query without "?". `too_large` is set when the
    body was longer than the server's limit: `body` is then empty and the connection closes after the answer.
    `peer` is the client's "address:port" (IPv6 in brackets). `accepted_at` is the event loop's time, in seconds, at
    which the head had been read. `raw_headers` are the headers as they came, in order: `header_values()` reads a
    repeated header from them.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""
    peer: str = ""
    peer_certificate: PeerCertificate | None = None
    too_large: bool = False
    accepted_at: float = 0.0
    raw_headers: Sequence[tuple[bytes, bytes]] = ()

    def header_values(self, name: str) -> list[str]:
        """Every value of the header `name` (lower case), in order: values that contain commas stay whole."""
        if not self.raw_headers:
            return [self.headers[name]] if name in self.headers else []
        wanted = name.encode()
        return [decode_value(value) for key, value in self.raw_headers if key.lower() == wanted]


@dataclass(slots=True)
class Response:
    """One answer. The server adds Content-Length, Date and Connection; `body` parts are sent one after another.

    The answer to a HEAD request has the body that GET would have: the server counts it and leaves it out.
    """

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | Sequence[bytes] = b""


class Stream(Protocol):
    """An open chunked answer."""

    def write(self, data: bytes) -> None:
        """Send one chunk; never blocks."""
        ...

    def write_chunk(self, chunk: bytes) -> None:
        """Send bytes already framed by `chunk()`: the same bytes may go to many streams."""
        ...

    @property
    def buffered(self) -> int:
        """Bytes accepted but not yet taken by the kernel: the caller decides when a reader is too slow."""
        ...

    def abort(self) -> None:
        """Drop the connection now, with what is buffered."""
        ...

    async def closed(self) -> None:
        """Returns when the client has gone, the stream was aborted, or the server is shutting down."""
        ...


def chunk(data: bytes) -> bytes:
    """`data` framed as one HTTP/1.1 chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


@dataclass(frozen=True, slots=True)
class Messages:
    """How what is written to a stream becomes messages: `split` tells them apart; they are text, or binary."""

    split: Callable[[bytes], Iterable[bytes]]
    text: bool


@dataclass(slots=True)
class StreamResponse:
    """An answer of unknown length. `run` is awaited with the open stream; the answer ends when it returns.

    With `messages` it is sent over a WebSocket, for which the request must have asked; the headers are left out.
    """

    status: int
    run: Callable[[Stream], Awaitable[None]]
    headers: Sequence[tuple[str, str]] = field(default_factory=tuple)
    messages: Messages | None = None


Handler = Callable[[Request], Awaitable[Response | StreamResponse]]

# What the server calls: an async handler, or one that answers some requests without awaiting anything.
AnyHandler = Callable[[Request], Response | StreamResponse | Awaitable[Response | StreamResponse]]
