"""Outgoing calls over HTTPS, with kept-alive connections. Failures are worded as Go's net/http words them."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from steersman._util.dataclass import dataclass
from steersman.net.tls import client_ssl_context

if TYPE_CHECKING:
    import aiohttp

KEEP_ALIVE = 60.0
"""Seconds after which an unused connection is closed."""
MAX_ANSWER = 32 * 1024 * 1024
_UNKNOWN_AUTHORITY = {18, 19, 20, 21}
_OUT_OF_TIME = {9, 10}
_WRONG_NAME = {62, 64}


class CallError(Exception):
    """The call came to no answer; the text says why."""


class BrokenAnswer(CallError):
    """The answer has begun, but its body could not be read; the text says why."""


class CallTimeout(CallError):
    """No answer in time."""


@dataclass(frozen=True, slots=True)
class Trust:
    """How a server is known, and how it knows us; all texts are PEM.

    `ca`: the authorities to trust instead of the system's. `cert` and `key`: what is shown to the server. `name`: whom
    its certificate must be for, if not the URL's host. `verify` False takes any certificate.
    """

    ca: bytes | None = None
    cert: bytes | None = None
    key: bytes | None = None
    name: str = ""
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, its body read."""

    status: int
    content_type: str
    body: bytes
    cache_control: str = ""
    retry_after: str = ""


class Caller:
    """Sends calls and keeps their connections; those to one host with one authority are used again."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        ca: bytes | None,
        address: tuple[str, int] | None,
        timeout: float,
        headers: Mapping[str, str] = MappingProxyType({}),
        tls: ssl.SSLContext | None = None,
    ) -> Reply:
        """POST JSON to an https URL; redirects are not followed.

        `ca` is a PEM bundle to trust instead of the system's authorities. `address` is where to connect when it is not
        where the URL's host leads to: the certificate must still be for that host. `timeout` is in seconds, for the
        whole call. `tls` is used instead of `ca`, if it is given. Raises CallTimeout and CallError.
        """
        trust = Trust(ca) if tls is None else tls
        return await self.send("POST", url, body, trust=trust, address=address, timeout=timeout, headers=headers)

    async def send(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        *,
        trust: Trust | ssl.SSLContext,
        timeout: float,
        headers: Mapping[str, str] | None = None,
        address: tuple[str, int] | None = None,
        redirects: bool = False,
    ) -> Reply:
        """As `post`, with any method, headers and `trust`; a `body` is JSON."""
        sent = {"Accept": "application/json, */*", **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            async with asyncio.timeout(timeout):
                try:
                    return await self._send(method, url, body, sent, trust, address, redirects)
                except ConnectionError:
                    # A kept connection that its server has closed meanwhile; a new one tells.
                    return await self._send(method, url, body, sent, trust, address, redirects)
        except TimeoutError:
            raise CallTimeout("context deadline exceeded") from None
        except CallError:
            raise
        except Exception as error:
            raise _worded(error, url) from error

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: dict[str, str],
        trust: Trust | ssl.SSLContext,
        address: tuple[str, int] | None,
        redirects: bool,
    ) -> Reply:
        import yarl

        name: str | None = (trust.name or None) if isinstance(trust, Trust) else None
        target = yarl.URL(url, encoded=True)
        if address is not None:
            name, headers["Host"] = name or target.host, target.raw_authority
            target = target.with_host(address[0]).with_port(address[1])
        async with self._opened().request(
            method,
            target,
            data=body,
            headers=headers,
            ssl=_context(trust) if isinstance(trust, Trust) else trust,
            server_hostname=name,
            allow_redirects=redirects,
        ) as response:
            told = response.headers.get
            body = await _read(response)
            kept, later = told("Cache-Control", ""), told("Retry-After", "")
            return Reply(response.status, told("Content-Type", ""), body, kept, later)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE),
                timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("User-Agent", "Accept-Encoding"),
            )
        return self._session


async def _read(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MAX_ANSWER:
            response.close()
            raise CallError(f"the answer is larger than {MAX_ANSWER} bytes")
        parts.append(part)
    return b"".join(parts)


@lru_cache(maxsize=256)
def _context(trust: Trust) -> ssl.SSLContext:
    try:
        return client_ssl_context(trust.ca, trust.cert, trust.key, verify=trust.verify)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise CallError(f"unable to load root certificates: {error}") from None


def _worded(error: Exception, url: str) -> CallError:
    import aiohttp

    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 443
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return CallError(_certificate_text(error.certificate_error, host))
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return CallError(f"dial tcp: lookup {host}: no such host")
    if isinstance(error, aiohttp.ClientSSLError):
        return CallError(_handshake_text(error))
    if isinstance(error, aiohttp.ClientConnectorError):
        return CallError(_dial_text(error.os_error, error.host, error.port or port))
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return CallError("EOF")
    if isinstance(error, aiohttp.ClientPayloadError):
        return BrokenAnswer("gzip: invalid header" if "content-encoding" in str(error) else "unexpected EOF")
    if isinstance(error, aiohttp.ClientResponseError):
        return CallError("net/http: HTTP/1.x transport connection broken: malformed HTTP response")
    if isinstance(error, OSError) and error.errno == errno.ECONNRESET:
        return CallError("read: connection reset by peer")
    return CallError(str(error) or type(error).__name__)


def _certificate_text(error: Exception, host: str) -> str:
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else 0
    if code in _UNKNOWN_AUTHORITY:
        why = "certificate signed by unknown authority"
    elif code in _OUT_OF_TIME:
        why = "certificate has expired or is not yet valid"
    elif code in _WRONG_NAME or (isinstance(error, ssl.CertificateError) and not code):
        why = f"certificate is not valid for {host}"
    else:
        why = str(error)
    return f"tls: failed to verify certificate: x509: {why}"


def _handshake_text(error: Exception) -> str:
    if any(word in str(error) for word in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")):
        return "http: server gave HTTP response to HTTPS client"
    return f"tls: {error}"


def _dial_text(error: OSError, host: str, port: int) -> str:
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: no such host"
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    reasons = {
        errno.ECONNREFUSED: "connect: connection refused",
        errno.ENETUNREACH: "connect: network is unreachable",
        errno.EHOSTUNREACH: "connect: no route to host",
        errno.ETIMEDOUT: "i/o timeout",
    }
    return f"dial tcp {shown}: {reasons.get(error.errno or 0, str(error))}"
