import contextlib
import datetime
import hashlib
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier

from steersman.apimachinery.errors import Unauthorized
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authn.x509 import ClientCertificates
from steersman.net.http import PeerCertificate, Request
from steersman.net.tls import client_ssl_context, server_ssl_context

START = datetime.datetime(2020, 11, 2, 3, 4, 5, tzinfo=datetime.UTC)
END = datetime.datetime(2120, 11, 2, 3, 4, 5, tzinfo=datetime.UTC)
USER_UID = ObjectIdentifier("1.3.6.1.4.1.57683.2")
KEY = ec.generate_private_key(ec.SECP256R1())
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()


def certificate(*parts: tuple[ObjectIdentifier, str] | x509.NameAttribute) -> PeerCertificate:
    """One with these parts in its subject, as the server's end of a connection has it."""
    attributes = [part if isinstance(part, x509.NameAttribute) else x509.NameAttribute(*part) for part in parts]
    name = x509.Name(attributes)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key())
    builder = builder.serial_number(7).not_valid_before(START).not_valid_after(END)
    pem = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    server, client = server_ssl_context(pem, PEM.encode(), client_ca=pem), client_ssl_context(pem, pem, PEM.encode())
    client.check_hostname = False
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking, asked = client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)
    for end in (asking, asked, asking, asked):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    der = asked.getpeercert(binary_form=True)
    assert der is not None
    return PeerCertificate(der, asked.getpeercert)


async def authenticate(shown: PeerCertificate | None, now: datetime.datetime = START) -> UserInfo | None:
    return await ClientCertificates(now.timestamp).authenticate(Request("GET", "/", "", {}, peer_certificate=shown))


async def test_the_common_name_is_the_user_and_organizations_are_groups() -> None:
    shown = certificate(
        (NameOID.ORGANIZATION_NAME, "system:masters"), (NameOID.ORGANIZATION_NAME, "b"), (NameOID.COMMON_NAME, "ann")
    )
    identity = f"X509SHA256={hashlib.sha256(shown.der).hexdigest()}"
    assert await authenticate(shown) == UserInfo(
        "ann", "", ("system:masters", "b"), {"authentication.kubernetes.io/credential-id": (identity,)}
    )


async def test_no_certificate_or_no_common_name_is_no_user() -> None:
    assert await authenticate(None) is None
    assert await authenticate(certificate((NameOID.ORGANIZATION_NAME, "system:masters"))) is None


async def test_a_user_uid_in_the_subject() -> None:
    user = await authenticate(certificate((NameOID.COMMON_NAME, "ann"), (USER_UID, "u-1")))
    assert user is not None
    assert user.uid == "u-1"
    for uids in (("u-1", "u-2"), ("",)):
        shown = certificate((NameOID.COMMON_NAME, "ann"), *(x509.NameAttribute(USER_UID, uid) for uid in uids))
        with pytest.raises(Unauthorized):
            await authenticate(shown)


async def test_the_last_of_several_common_names_counts() -> None:
    user = await authenticate(certificate((NameOID.COMMON_NAME, "ann"), (NameOID.COMMON_NAME, "bob")))
    assert user is not None
    assert user.name == "bob"


@pytest.mark.parametrize("kind", [_ASN1Type.UTF8String, _ASN1Type.BMPString, _ASN1Type.UniversalString])
async def test_names_beyond_ascii(kind: _ASN1Type) -> None:
    shown = certificate(
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Bötchen", kind),
        x509.NameAttribute(NameOID.COMMON_NAME, "Åsa ☃", kind),
    )
    user = await authenticate(shown)
    assert user is not None
    assert (user.name, user.groups) == ("Åsa ☃", ("Bötchen",))


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
    def fail() -> None:
        raise ssl.SSLError("[ASN1] invalid utf8string")

    with pytest.raises(Unauthorized, match="malformed"):
        await authenticate(PeerCertificate(b"not DER", fail))
