"""Users by client certificate: the common name is the user, the organizations are the groups.

Source: apiserver `pkg/authentication/request/x509/x509.go` (CommonNameUserConversion).
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable
from datetime import datetime

from steersman._util import clock
from steersman.apimachinery.errors import Unauthorized
from steersman.apiserver.authn.user import CREDENTIAL_ID, UserInfo
from steersman.net.http import PeerCertificate, Request

_UID_OID = "1.3.6.1.4.1.57683.2"
_MAX_CACHED = 1024
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class ClientCertificates:
    """Authenticates the peer certificate that the TLS layer verified against the client CA.

    A certificate is parsed once; that it has not expired is checked at every request, since a connection may
    outlive its certificate. `now` gives seconds since the epoch.
    """

    def __init__(self, now: Callable[[], float] = clock.now) -> None:
        self._now = now
        self._known: dict[bytes, tuple[UserInfo | None, float]] = {}

    async def authenticate(self, request: Request) -> UserInfo | None:
        """The certificate's user; None without a certificate or without a common name in it.

        Raises Unauthorized for one that has expired, is malformed, or names several user UIDs.
        """
        certificate = request.peer_certificate
        if certificate is None:
            return None
        known = self._known.get(certificate.der)
        if known is None:
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            known = self._known[certificate.der] = _read(certificate)
        user, not_after = known
        if self._now() > not_after:
            raise Unauthorized("the client certificate has expired")
        return user


def _read(certificate: PeerCertificate) -> tuple[UserInfo | None, float]:
    """The user of a certificate (None without a common name), and the end of its validity (epoch seconds)."""
    try:
        content = certificate.content() or {}
        not_after = _seconds(content["notAfter"])
    except (KeyError, ValueError, ssl.SSLError):
        raise Unauthorized("the client certificate is malformed") from None
    subject = [attribute for part in content.get("subject", ()) for attribute in part]
    # Go keeps the last of several common names.
    names = [value for kind, value in subject if kind == "commonName"]
    if not names or not names[-1]:
        return None, not_after
    uids = [value for kind, value in subject if kind == _UID_OID]
    if len(uids) > 1 or "" in uids:
        raise Unauthorized("the client certificate must have at most one user UID, and none that is empty")
    groups = tuple(value for kind, value in subject if kind == "organizationName")
    extra = {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(certificate.der).hexdigest()}",)}
    return UserInfo(names[-1], uids[0] if uids else "", groups, extra), not_after


def _seconds(text: str) -> float:
    """A time as OpenSSL prints it, such as `Nov  2 06:18:36 2036 GMT`; `ssl.cert_time_to_seconds` loads far more."""
    month, day, clock_time, year, _ = text.split()
    date = f"{int(year):04}-{_MONTHS.index(month) + 1:02}-{int(day):02}T{clock_time}+00:00"
    return datetime.fromisoformat(date).timestamp()
