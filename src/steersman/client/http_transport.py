"""Requests over HTTP/1.1 with a pool of kept-alive connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from steersman.client.config.credentials import Certificate
from steersman.client.config.model import Config
from steersman.client.tls import ssl_context
from steersman.client.transport import (
    ConnectError,
    Headers,
    RawResponse,
    RawStream,
    TlsError,
    TransportError,
    TransportTimeout,
)

if TYPE_CHECKING:
    import aiohttp

CONNECT_TIMEOUT = 30.0
"""Seconds for opening a connection (client-go's dialer: 30)."""

IDLE_CONNECTION = 30.0
"""Seconds after which an unused connection is closed: well before a server would (kube-apiserver: 90)."""


@dataclass(slots=True)
class _Pool:
    """The connections made with one client certificate."""

    session: aiohttp.ClientSession
    users: int = 0
    retired: bool = False


class HttpTransport:
    """A `Transport` for the cluster that a `Config` describes.

    Connections are opened when they are needed, without a bound on their number: every watch holds one. When the client
    certificate changes (an exec plugin's, or a rotated file), new requests use new connections that present it, and
    requests under way finish on the old ones.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        parts = urlsplit(config.server)
        self._base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._secure = parts.scheme == "https"
        self._proxy = config.proxy_url or _environment_proxy(parts.scheme, parts.hostname or "")
        self._pool: _Pool | None = None
        self._retired: list[_Pool] = []
        self._certificate: Certificate | None = None
        self._closed = False

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
        pool = await self._lease()
        try:
            async with asyncio.timeout(timeout):
                response = await self._open(pool.session, method, path, query, headers, body)
                try:
                    data = await response.read()
                finally:
                    _finish(response)
        except Exception as error:
            _raise(error, f"{method} {path}", timeout)
        finally:
            await self._give_back(pool)
        return RawResponse(response.status, tuple(response.headers.items()), data)

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
        what = f"{method} {path}"
        pool = await self._lease()
        try:
            try:
                async with asyncio.timeout(timeout):
                    response = await self._open(pool.session, method, path, query, headers, body)
            except Exception as error:
                _raise(error, what, timeout)
            try:
                yield RawStream(response.status, tuple(response.headers.items()), _chunks(response, what))
            finally:
                _finish(response)
        finally:
            await self._give_back(pool)

    async def close(self) -> None:
        """Close all connections, also those of streams that are still open."""
        self._closed = True
        pools = [*self._retired, *([self._pool] if self._pool else [])]
        self._pool, self._retired = None, []
        for pool in pools:
            await pool.session.close()

    async def _open(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        query: str,
        headers: Headers,
        body: bytes | None,
    ) -> aiohttp.ClientResponse:
        import yarl

        return await session.request(
            method,
            yarl.URL(f"{self._base}{path}{'?' if query else ''}{query}", encoded=True),
            headers=list(headers),
            data=body,
            allow_redirects=False,
            proxy=self._proxy,
            server_hostname=self._config.tls.server_name if self._secure else None,
            middlewares=(_once,),
        )

    async def _lease(self) -> _Pool:
        """The pool for a request; it is to be given back."""
        certificate = await self._config.credentials.certificate() if self._secure else None
        if self._closed:
            raise ConnectError("the client is closed")
        if self._pool is None or certificate is not self._certificate:
            await self._replace(certificate)
        pool = self._pool
        assert pool is not None
        pool.users += 1
        return pool

    async def _give_back(self, pool: _Pool) -> None:
        pool.users -= 1
        if pool.retired:
            await self._drop_unused(pool)

    async def _replace(self, certificate: Certificate | None) -> None:
        old, self._pool = self._pool, _Pool(self._new_session(certificate))
        self._certificate = certificate
        if old is not None:
            old.retired = True
            self._retired.append(old)
            await self._drop_unused(old)

    async def _drop_unused(self, pool: _Pool) -> None:
        if pool.retired and not pool.users and pool in self._retired:
            self._retired.remove(pool)
            await pool.session.close()

    def _new_session(self, certificate: Certificate | None) -> aiohttp.ClientSession:
        import aiohttp

        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=IDLE_CONNECTION,
            ssl=ssl_context(self._config.tls, certificate) if self._secure else True,
            socket_factory=_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=CONNECT_TIMEOUT),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "identity" if self._config.disable_compression else "gzip"},
            read_bufsize=2**18,
        )


async def _once(request: Any, send: Callable[[Any], Awaitable[Any]]) -> Any:
    """Sends once. aiohttp repeats a PUT or DELETE by itself when a kept connection breaks; the server may have carried
    the first one out, and the repeated one would then be told Conflict because of its own success."""
    import aiohttp

    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        _raise(error, f"{request.method} {request.url.raw_path}")


def _finish(response: aiohttp.ClientResponse) -> None:
    """A connection whose answer was read to its end is back in the pool; any other one is cut off here, for a farewell
    over TLS would wait for a peer that goes on sending."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def _chunks(response: aiohttp.ClientResponse, what: str) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except Exception as error:
        _raise(error, what)


def _raise(error: Exception, what: str, timeout: float | None = None) -> NoReturn:
    """Raises the transport's error for aiohttp's, and any other error as it is."""
    import aiohttp

    text = f"{what}: {str(error) or type(error).__name__}"
    if isinstance(error, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError)):
        raise TlsError(text) from error
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
        raise ConnectError(text) from error
    if isinstance(error, TimeoutError):
        raise TransportTimeout(f"{what}: no answer within {timeout} seconds") from error
    if isinstance(error, (aiohttp.ClientError, OSError)):
        raise TransportError(text) from error
    raise error


def _socket(address: Any) -> socket.socket:
    """A socket that notices, in a minute or so, that its peer has vanished without a word: a watch may be silent."""
    family, kind, protocol, *_ = address
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock


def _environment_proxy(scheme: str, host: str) -> str | None:
    """$HTTPS_PROXY and its kin, with $NO_PROXY, as client-go honours them; loopback is never proxied."""
    if not host or host in ("localhost", "::1") or host.startswith("127.") or proxy_bypass(host):
        return None
    return getproxies().get(scheme)
