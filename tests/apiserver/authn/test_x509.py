import datetime
import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID, ObjectIdentifier

from steersman.apimachinery.errors import Unauthorized
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authn.x509 import ClientCertificates
from steersman.net.http import Request

START = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
END = START + datetime.timedelta(days=1)
USER_UID = ObjectIdentifier("1.3.6.1.4.1.57683.2")
KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(*parts: tuple[ObjectIdentifier, str]) -> bytes:
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key())
    builder = builder.serial_number(7).not_valid_before(START).not_valid_after(END)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


async def authenticate(der: bytes | None, now: datetime.datetime = START) -> UserInfo | None:
    return await ClientCertificates(now.timestamp).authenticate(Request("GET", "/", "", {}, peer_certificate=der))


async def test_the_common_name_is_the_user_and_organizations_are_groups() -> None:
    der = certificate(
        (NameOID.ORGANIZATION_NAME, "system:masters"), (NameOID.ORGANIZATION_NAME, "b"), (NameOID.COMMON_NAME, "ann")
    )
    identity = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
    assert await authenticate(der) == UserInfo(
        "ann", "", ("system:masters", "b"), {"authentication.kubernetes.io/credential-id": (identity,)}
    )


async def test_no_certificate_or_no_common_name_is_no_user() -> None:
    assert await authenticate(None) is None
    assert await authenticate(certificate((NameOID.ORGANIZATION_NAME, "system:masters"))) is None


async def test_a_user_uid_in_the_subject() -> None:
    user = await authenticate(certificate((NameOID.COMMON_NAME, "ann"), (USER_UID, "u-1")))
    assert user is not None
    assert user.uid == "u-1"
    with pytest.raises(Unauthorized):
        await authenticate(certificate((NameOID.COMMON_NAME, "ann"), (USER_UID, "u-1"), (USER_UID, "u-2")))


async def test_a_certificate_that_expires_while_its_connection_is_open_is_refused() -> None:
    clock = [START.timestamp()]
    certificates = ClientCertificates(lambda: clock[0])
    request = Request("GET", "/", "", {}, peer_certificate=certificate((NameOID.COMMON_NAME, "ann")))
    first = await certificates.authenticate(request)
    assert await certificates.authenticate(request) is first
    clock[0] = END.timestamp() + 1
    with pytest.raises(Unauthorized, match="expired"):
        await certificates.authenticate(request)


async def test_a_malformed_certificate_is_refused() -> None:
    with pytest.raises(Unauthorized, match="malformed"):
        await authenticate(b"not DER")
