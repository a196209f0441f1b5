"""The seam between the client and the wire: requests and answers as plain values.

Everything above this module knows the Kubernetes API but no sockets. `HttpTransport` carries requests over HTTP/1.1;
the in-process server brings a transport of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from steersman.client.errors import ClientError

Headers = Sequence[tuple[str, str]]


class TransportError(ClientError):
    """No answer: the server could not be reached, or the connection ended before the answer was complete."""


class ConnectError(TransportError):
    """The connection could not be opened: nothing was sent, so the request may be sent again."""


class TlsError(ConnectError):
    """The server's certificate was refused, or the server refused ours: trying again will not help."""


class TransportTimeout(TransportError):
    """The answer did not arrive in time; the server may still carry the request out."""


def header(headers: Headers, name: str) -> str | None:
    """The first value of a header; names compare without case."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)


def header_values(headers: Headers, name: str) -> list[str]:
    """All values of a header that may be repeated, in order."""
    wanted = name.lower()
    return [value for key, value in headers if key.lower() == wanted]


@dataclass(frozen=True, slots=True)
class RawResponse:
    """A complete answer."""

    status: int
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class RawStream:
    """An answer whose body arrives in pieces of any size. `chunks` raises TransportError when the connection breaks."""

    status: int
    headers: Headers
    chunks: AsyncIterator[bytes]


class Transport(Protocol):
    """Sends requests to one server. All methods may be called concurrently from tasks of one event loop.

    `path` is percent-encoded and starts with "/"; `query` is encoded, without "?", "" for none; `body` is None when the
    request has none. `timeout` is in seconds: for `request` until the whole answer has arrived, for `stream` until the
    answer's head has arrived; None waits for ever. Redirects are answers like any other.
    """

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Headers = (),
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> RawResponse:
        """Send a request and read the whole answer. Raises TransportError."""
        ...

    def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Headers = (),
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[RawStream]:
        """Send a request and give the answer as it arrives; leaving the context ends it. Raises TransportError."""
        ...

    async def close(self) -> None:
        """Close all connections. Closing twice is allowed."""
        ...
