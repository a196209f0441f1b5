"""Outgoing calls: POST over HTTPS with kept-alive connections. Failures are worded as Go's net/http words them."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

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


class CallTimeout(CallError):
    """No answer in time."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    content_type: str
    body: bytes


class Caller:
    """Sends calls and keeps their connections; those to one host with one authority are used again."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self, url: str, body: bytes, *, ca: bytes | None, address: tuple[str, int] | None, timeout: float
    ) -> Reply:
        """POST JSON to an https URL; redirects are not followed.

        `ca` is a PEM bundle to trust instead of the system's authorities. `address` is where to connect when it is not
        where the URL's host leads to: the certificate must still be for that host. `timeout` is in seconds, for the
        whole call. Raises CallTimeout and CallError.
        """
        try:
            async with asyncio.timeout(timeout):
                try:
                    return await self._post(url, body, ca, address)
                except ConnectionError:
                    # A kept connection that its server has closed meanwhile; a new one tells.
                    return await self._post(url, body, ca, address)
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

    async def _post(self, url: str, body: bytes, ca: bytes | None, address: tuple[str, int] | None) -> Reply:
        import yarl

        headers = {"Content-Type": "application/json", "Accept": "application/json, */*"}
        name: str | None = None
        target = yarl.URL(url, encoded=True)
        if address is not None:
            name, headers["Host"] = target.host, target.raw_authority
            target = target.with_host(address[0]).with_port(address[1])
        async with self._opened().post(
            target,
            data=body,
            headers=headers,
            ssl=_context(ca),
            server_hostname=name,
            allow_redirects=False,
        ) as response:
            return Reply(response.status, response.headers.get("Content-Type", ""), await _read(response))

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
def _context(ca: bytes | None) -> ssl.SSLContext:
    try:
        return client_ssl_context(ca)
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
        return CallError("unexpected EOF")
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
