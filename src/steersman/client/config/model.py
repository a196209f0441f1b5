"""How to reach one cluster as one user: plain values, whatever file they came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steersman.client.config.credentials import Anonymous, Credentials

if TYPE_CHECKING:
    from steersman.client.transport import Transport


@dataclass(frozen=True, slots=True)
class Tls:
    """`ca_data` is PEM, None for the system's certificate authorities; `server_name` replaces the URL's host in the
    check of the server's certificate."""

    ca_data: str | None = field(default=None, repr=False)
    insecure: bool = False
    server_name: str | None = None


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom to act as; sent as Impersonate-* headers."""

    user: str
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def headers(self) -> list[tuple[str, str]]:
        """Source: client-go `transport/round_trippers.go` (impersonatingRoundTripper, headerKeyEscape)."""
        out = [("Impersonate-User", self.user)]
        if self.uid:
            out.append(("Impersonate-Uid", self.uid))
        out += [("Impersonate-Group", group) for group in self.groups]
        for key, values in self.extra.items():
            out += [(f"Impersonate-Extra-{_header_key(key)}", value) for value in values]
        return out


@dataclass(slots=True)
class Config:
    """A cluster's address, how to check it, who we are, and the namespace that is meant when none is named.

    `connect` makes what carries the requests, None for HTTP.
    """

    server: str
    namespace: str = "default"
    tls: Tls = field(default_factory=Tls)
    credentials: Credentials = field(default_factory=Anonymous)
    impersonate: Impersonation | None = None
    proxy_url: str | None = None
    disable_compression: bool = False
    connect: Callable[[Config], Transport] | None = field(default=None, repr=False)


_HEADER_SAFE = frozenset("!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _header_key(key: str) -> str:
    """Percent-encodes what a header name may not hold, and the percent sign itself."""
    return "".join(c if c in _HEADER_SAFE else "".join(f"%{byte:02X}" for byte in c.encode()) for c in key)
