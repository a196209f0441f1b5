"""HTTP messages as the server half sees them: plain values, no sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True)
class Request:
    """One request, its body read. Header names are lower case; a repeated header's values are joined by ", ".

    `path` is the raw path, still percent-encoded; `query` the raw query without "?". `too_large` is set when the
    body was longer than the server's limit: `body` is then empty and the connection closes after the answer.
    `peer_certificate` is the client's verified certificate (DER), None without one. `accepted_at` is the event
    loop's time at which the head had been read.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""
    peer: str = ""
    peer_certificate: bytes | None = None
    too_large: bool = False
    accepted_at: float = 0.0


@dataclass(slots=True)
class Response:
    """One answer. The server adds Content-Length, Date and Connection; `body` parts are sent one after another."""

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


@dataclass(slots=True)
class StreamResponse:
    """An answer of unknown length. `run` is awaited with the open stream; the answer ends when it returns."""

    status: int
    run: Callable[[Stream], Awaitable[None]]
    headers: Sequence[tuple[str, str]] = field(default_factory=tuple)


Handler = Callable[[Request], Awaitable[Response | StreamResponse]]
