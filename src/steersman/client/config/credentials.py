"""Who the client is: sources of an Authorization header and of a client certificate."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from steersman._util.clock import steady
from steersman.client.errors import CredentialsError

TOKEN_PERIOD = 60.0
"""Seconds for which a token read from a file is used (client-go `transport/token_source.go`: one minute)."""

CERTIFICATE_PERIOD = 60.0
"""Seconds between looks at client certificate files for a rotated pair."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate chain and its private key, PEM. Two are equal when their bytes are."""

    certificate: bytes
    key: bytes = field(repr=False)


class Credentials(Protocol):
    """A source of credentials, asked before every request. Raises CredentialsError."""

    async def authorization(self) -> str | None:
        """The Authorization header's value, None for none."""
        ...

    async def certificate(self) -> Certificate | None:
        """The client certificate to use for new connections."""
        ...

    async def refused(self, authorization: str | None, certificate: Certificate | None = None) -> bool:
        """The server answered 401 to `authorization`, on a connection that showed `certificate`: get new credentials.

        False when there are none to be had; True also when another request has got them already.
        """
        ...


class Anonymous:
    """No credentials."""

    async def authorization(self) -> str | None:
        return None

    async def certificate(self) -> Certificate | None:
        return None

    async def refused(self, authorization: str | None, certificate: Certificate | None = None) -> bool:
        return False


class StaticCredentials(Anonymous):
    """A fixed Authorization header, a client certificate, or both."""

    def __init__(self, authorization: str | None = None, certificate: Certificate | None = None) -> None:
        self._authorization = authorization
        self._certificate = certificate

    @classmethod
    def bearer(cls, token: str) -> StaticCredentials:
        return cls(f"Bearer {token}")

    @classmethod
    def basic(cls, username: str, password: str) -> StaticCredentials:
        return cls("Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())

    async def authorization(self) -> str | None:
        return self._authorization

    async def certificate(self) -> Certificate | None:
        return self._certificate


class TokenFile(Anonymous):
    """A bearer token in a file that somebody else renews: read again every minute, and at once after a 401.

    While the file cannot be read the last token that was read stays in use.
    """

    def __init__(self, path: str | Path, clock: Callable[[], float] = steady) -> None:
        self._path = Path(path)
        self._clock = clock
        self._token = ""
        self._read_at = -TOKEN_PERIOD

    async def authorization(self) -> str | None:
        if not self._token or self._clock() - self._read_at >= TOKEN_PERIOD:
            self._read()
        return f"Bearer {self._token}"

    async def refused(self, authorization: str | None, certificate: Certificate | None = None) -> bool:
        if authorization == f"Bearer {self._token}":
            self._read()
        return authorization != f"Bearer {self._token}"

    def _read(self) -> None:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except OSError as error:
            if self._token:
                return
            raise CredentialsError(f"cannot read the token file {self._path}: {error.strerror}") from error
        if not token and not self._token:
            raise CredentialsError(f"the token file {self._path} is empty")
        self._token = token or self._token
        self._read_at = self._clock()


class CertificateFiles(Anonymous):
    """A client certificate in files that somebody else renews: looked at once a minute, and at once after a 401.

    While only one of the files is new, the pair before stays in use.
    """

    def __init__(self, certificate: Path, key: Path, clock: Callable[[], float] = steady) -> None:
        self._paths = (certificate, key)
        self._clock = clock
        self._pair: Certificate | None = None
        self._read_at = -CERTIFICATE_PERIOD

    async def certificate(self) -> Certificate | None:
        if self._pair is None or self._clock() - self._read_at >= CERTIFICATE_PERIOD:
            self._read()
        return self._pair

    async def refused(self, authorization: str | None, certificate: Certificate | None = None) -> bool:
        if certificate is self._pair:
            self._read()
        return certificate is not self._pair

    def _read(self) -> None:
        from steersman.client.tls import goes_together  # which needs this module

        self._read_at = self._clock()
        try:
            fresh = Certificate(self._paths[0].read_bytes(), self._paths[1].read_bytes())
        except OSError as error:
            if self._pair is None:
                message = f"cannot read the client certificate {error.filename}: {error.strerror}"
                raise CredentialsError(message) from error
            return
        if fresh == self._pair:
            return  # the same object for the same bytes: connections are made anew only when the pair really changed
        if self._pair is None or goes_together(fresh):
            self._pair = fresh
        else:
            self._read_at += 1 - CERTIFICATE_PERIOD  # the other file comes soon


class Combined:
    """An Authorization header from one source, a client certificate from another."""

    def __init__(self, header: Credentials, certificate: Credentials) -> None:
        self._header = header
        self._certificate = certificate

    async def authorization(self) -> str | None:
        return await self._header.authorization()

    async def certificate(self) -> Certificate | None:
        return await self._certificate.certificate()

    async def refused(self, authorization: str | None, certificate: Certificate | None = None) -> bool:
        renewed = await self._header.refused(authorization, certificate)
        return await self._certificate.refused(authorization, certificate) or renewed
