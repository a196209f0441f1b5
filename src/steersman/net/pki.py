"""Certificates: a small authority for a server and its clients, kept in a directory; subjects of peers.

EC P-256 keys, PEM everywhere. `cryptography` is imported on first use: its import costs more than its work.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from steersman._util.dataclass import dataclass
from steersman._util.durable import open_beside

from .tls import client_ssl_context, peer_certificate, server_ssl_context

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

CA_DAYS = 3650
LEAF_DAYS = 365
RENEW_DAYS = 30
_SKEW = datetime.timedelta(minutes=5)  # a client's clock may be behind


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key (PEM, PKCS #8)."""

    cert: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """What `load_or_create()` keeps: the authority's and the server's certificate and key, and where they are."""

    directory: Path
    ca: KeyPair
    server: KeyPair

    @property
    def cert(self) -> bytes:
        return self.server.cert

    @property
    def key(self) -> bytes:
        return self.server.key


@dataclass(frozen=True, slots=True)
class Subject:
    """Who a certificate is for: its common name, its organizations, and its user id (RFC 4519 `uid`), "" if absent."""

    common_name: str
    organizations: tuple[str, ...]
    user_id: str


def create_ca(common_name: str, days: float = CA_DAYS) -> KeyPair:
    """A new self-signed authority."""
    return _issue(None, common_name, days=days)


def create_server_certificate(ca: KeyPair, hosts: Iterable[str], days: float = LEAF_DAYS) -> KeyPair:
    """A certificate for a server that is reached at `hosts`: DNS names and IP addresses."""
    hosts = list(hosts)
    return _issue(ca, hosts[0] if hosts else "server", hosts=hosts, days=days)


def create_client_certificate(
    ca: KeyPair, common_name: str, organizations: Sequence[str] = (), days: int = LEAF_DAYS
) -> KeyPair:
    """A certificate that names a client: its common name, and its organizations (groups)."""
    return _issue(ca, common_name, organizations=organizations, days=days)


def _issue(
    ca: KeyPair | None,
    common_name: str,
    *,
    days: float,
    organizations: Sequence[str] = (),
    hosts: Sequence[str] | None = None,
) -> KeyPair:
    """Signs a new key's certificate: an authority without `ca`, a server's with `hosts`, otherwise a client's."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(common_name, organizations)
    issuer = x509.load_pem_x509_certificate(ca.cert) if ca else None
    signing_key = load_key(ca.key) if ca else key
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(_key_usage(signs=issuer is None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
    )
    if issuer is not None:
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts is not None else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(h) for h in hosts]), critical=False)
    cert = builder.sign(signing_key, hashes.SHA256())
    return KeyPair(
        cert.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def _name(common_name: str, organizations: Sequence[str]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def load_key(pem: bytes) -> EllipticCurvePrivateKey:
    """The EC private key of a PEM text. Raises ValueError for anything else."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pem, None)
    if not isinstance(key, EllipticCurvePrivateKey):
        raise ValueError("not an EC private key")
    return key


def to_der(pem: bytes) -> bytes:
    """A PEM certificate's DER form."""
    return ssl.PEM_cert_to_DER_cert(pem.decode("ascii"))


@lru_cache(maxsize=4096)
def parse_subject(der: bytes) -> Subject:
    """Whom a certificate (DER) names. Raises ValueError if it can't be read. Cached: clients come again."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    subject = x509.load_der_x509_certificate(der).subject

    def values(oid: x509.ObjectIdentifier) -> tuple[str, ...]:
        return tuple(
            value if isinstance(value, str) else value.decode("utf-8", "replace")
            for value in (attribute.value for attribute in subject.get_attributes_for_oid(oid))
        )

    common_names, user_ids = values(NameOID.COMMON_NAME), values(NameOID.USER_ID)
    return Subject(
        common_names[-1] if common_names else "",
        values(NameOID.ORGANIZATION_NAME),
        user_ids[-1] if user_ids else "",
    )


def load_or_create(directory: Path, hosts: Iterable[str], *, ca_name: str = "steersman-ca") -> ServerFiles:
    """The directory's ca.crt, ca.key, server.crt and server.key, made or renewed as needed.

    The authority is kept for as long as it lasts RENEW_DAYS more, the server's certificate if moreover the authority
    signed it and it names all of `hosts`. Keys are written with mode 0600, files are replaced at once. Raises OSError.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    hosts = list(hosts)
    found = _still_good(directory, hosts)
    if found is not None:
        return found
    ca = _read_pair(directory, "ca")
    if ca is None or not _lasts(ca):
        ca = create_ca(ca_name)
        _write_pair(directory, "ca", ca)
    server = _read_pair(directory, "server")
    if server is None or not _lasts(server) or not _signed_by(server, ca) or not _names(server, hosts):
        server = create_server_certificate(ca, hosts)
        _write_pair(directory, "server", server)
    return ServerFiles(directory, ca, server)


def _still_good(directory: Path, hosts: Sequence[str]) -> ServerFiles | None:
    """The files if nothing is to be done. Without `cryptography`: its import is most of a server's start."""
    try:
        ca, server = _read_files(directory, "ca"), _read_files(directory, "server")
        server_ssl_context(ca.cert, ca.key)  # raises if they are no pair
        client = client_ssl_context(ca.cert)
        client.check_hostname = False  # all of the hosts are looked at below
        cert = peer_certificate(server_ssl_context(server.cert, server.key), client)
        expiries = [ssl.cert_time_to_seconds(each["notAfter"]) for each in (cert, *client.get_ca_certs())]
    except (FileNotFoundError, ValueError, KeyError, ssl.SSLError):
        return None
    named = {_plain_host(value) for _, value in cert.get("subjectAltName", ())}
    lasts = len(expiries) > 1 and min(expiries) > time.time() + RENEW_DAYS * 86400
    return ServerFiles(directory, ca, server) if lasts and named.issuperset(map(_plain_host, hosts)) else None


def _plain_host(host: str) -> str:
    try:
        return ipaddress.ip_address(host).compressed
    except ValueError:
        return host


def _read_files(directory: Path, name: str) -> KeyPair:
    return KeyPair((directory / f"{name}.crt").read_bytes(), (directory / f"{name}.key").read_bytes())


def _read_pair(directory: Path, name: str) -> KeyPair | None:
    """The stored certificate and key; None if they are missing, unreadable as PEM, or no pair."""
    from cryptography import x509

    try:
        pair = _read_files(directory, name)
        matches = x509.load_pem_x509_certificate(pair.cert).public_key() == load_key(pair.key).public_key()
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return pair if matches else None


def _write_pair(directory: Path, name: str, pair: KeyPair) -> None:
    write_atomically(directory / f"{name}.key", pair.key, mode=0o600)
    write_atomically(directory / f"{name}.crt", pair.cert, mode=0o644)


def write_atomically(path: Path, content: bytes, mode: int) -> None:
    """Replaces the file at once: readers see the old content or the new. `mode` holds from the first byte on."""
    descriptor, temporary = open_beside(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.chmod(temporary, mode)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _lasts(pair: KeyPair) -> bool:
    from cryptography import x509

    cert = x509.load_pem_x509_certificate(pair.cert)
    now = datetime.datetime.now(datetime.UTC)
    return cert.not_valid_before_utc <= now < cert.not_valid_after_utc - datetime.timedelta(days=RENEW_DAYS)


def _signed_by(pair: KeyPair, ca: KeyPair) -> bool:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        x509.load_pem_x509_certificate(pair.cert).verify_directly_issued_by(x509.load_pem_x509_certificate(ca.cert))
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _names(pair: KeyPair, hosts: Sequence[str]) -> bool:
    from cryptography import x509

    cert = x509.load_pem_x509_certificate(pair.cert)
    try:
        named = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return not hosts
    return all(_general_name(host) in named for host in hosts)
