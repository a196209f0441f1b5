"""Users by client certificate: the common name is the user, the organizations are the groups.

Source: apiserver `pkg/authentication/request/x509/x509.go` (CommonNameUserConversion).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from steersman._util import clock
from steersman.apimachinery.errors import Unauthorized
from steersman.apiserver.authn.user import CREDENTIAL_ID, UserInfo
from steersman.net.http import Request

_UID_OID = "1.3.6.1.4.1.57683.2"
_MAX_CACHED = 1024


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
        der = request.peer_certificate
        if der is None:
            return None
        known = self._known.get(der)
        if known is None:
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            known = self._known[der] = parse_certificate(der)
        user, not_after = known
        if self._now() > not_after:
            raise Unauthorized("the client certificate has expired")
        return user


def parse_certificate(der: bytes) -> tuple[UserInfo | None, float]:
    """The user of a DER certificate (None without a common name), and the end of its validity (epoch seconds).

    Raises Unauthorized when it cannot be read.
    """
    from cryptography import x509  # deferred: its import takes longer than the whole server's start may
    from cryptography.x509.oid import NameOID, ObjectIdentifier

    try:
        certificate = x509.load_der_x509_certificate(der)
        subject = certificate.subject
    except ValueError:
        raise Unauthorized("the client certificate is malformed") from None
    not_after = certificate.not_valid_after_utc.timestamp()
    # Go keeps the last of several common names.
    names = [str(part.value) for part in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not names or not names[-1]:
        return None, not_after
    uids = [part.value for part in subject.get_attributes_for_oid(ObjectIdentifier(_UID_OID))]
    if len(uids) > 1 or "" in uids:
        raise Unauthorized("the client certificate must have at most one user UID, and none that is empty")
    groups = tuple(str(part.value) for part in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    extra = {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    return UserInfo(names[-1], str(uids[0]) if uids else "", groups, extra), not_after
