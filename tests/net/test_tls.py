"""HTTPS with and without client certificates, the own authority, subjects."""

from __future__ import annotations

import asyncio
import datetime
import os
import ssl
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trustme
from cryptography import x509

from steersman.net import pki
from steersman.net.http import Request, Response
from steersman.net.tls import client_ssl_context, server_ssl_context

LAST = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def ca() -> pki.KeyPair:
    return pki.create_ca("test-ca")


@pytest.fixture(scope="module")
def server_pair(ca: pki.KeyPair) -> pki.KeyPair:
    return pki.create_server_certificate(ca, ["localhost", "127.0.0.1", "::1", "*.example.test"])


async def tell_subject(request: Request) -> Response:
    if request.peer_certificate is None:
        return Response(200, (), b"nobody")
    return Response(200, (), repr(pki.parse_subject(request.peer_certificate.der)).encode())


async def test_client_certificates_are_optional_and_verified(start, talk, ca, server_pair) -> None:
    server = await start(tell_subject, ssl=server_ssl_context(server_pair.cert, server_pair.key, client_ca=ca.cert))
    assert server.url.startswith("https://")
    assert (await talk(server, LAST, tls=client_ssl_context(ca.cert))).endswith(b"nobody")

    client = pki.create_client_certificate(ca, "jane", ["staff", "admins"])
    tls = client_ssl_context(ca.cert, client.cert, client.key)
    expected = b"Subject(common_name='jane', organizations=('staff', 'admins'), user_id='')"
    for _ in range(2):  # the second time with a session ticket, if the client keeps it
        assert (await talk(server, LAST, tls=tls)).endswith(expected)

    stranger = pki.create_client_certificate(pki.create_ca("other"), "jane", ["admins"])
    try:  # TLS 1.3 clients learn of it after their side of the handshake: as an error or as an early end
        answer = await talk(server, LAST, tls=client_ssl_context(ca.cert, stranger.cert, stranger.key))
    except (ssl.SSLError, ConnectionError):
        answer = b""
    assert answer == b""


async def test_a_certificate_of_a_foreign_authority(start, talk, ca, server_pair) -> None:
    foreign = trustme.CA()
    server = await start(
        tell_subject, ssl=server_ssl_context(server_pair.cert, server_pair.key, client_ca=foreign.cert_pem.bytes())
    )
    leaf = foreign.issue_cert("jane@example.test", common_name="jane", organization_name="staff")
    tls = client_ssl_context(ca.cert, b"".join(p.bytes() for p in leaf.cert_chain_pems), leaf.private_key_pem.bytes())
    assert b"common_name='jane', organizations=('staff',)" in await talk(server, LAST, tls=tls)


async def test_without_a_client_authority_no_certificate_is_asked_for(start, talk, ca, server_pair) -> None:
    server = await start(tell_subject, ssl=server_ssl_context(server_pair.cert, server_pair.key))
    client = pki.create_client_certificate(ca, "jane")
    answer = await talk(server, LAST, tls=client_ssl_context(ca.cert, client.cert, client.key))
    assert answer.endswith(b"nobody")


async def test_a_plain_client_of_a_tls_server_does_no_harm(start, talk, ca, server_pair) -> None:
    server = await start(tell_subject, ssl=server_ssl_context(server_pair.cert, server_pair.key))
    answer = await talk(server, LAST)
    assert b"HTTP/1.1 200" not in answer
    assert (await talk(server, LAST, tls=client_ssl_context(ca.cert))).endswith(b"nobody")


async def test_old_tls_is_refused(start, talk, ca, server_pair) -> None:
    server = await start(tell_subject, ssl=server_ssl_context(server_pair.cert, server_pair.key))
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.load_verify_locations(cadata=ca.cert.decode())
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await talk(server, LAST, tls=old)


async def test_a_certificate_that_is_trusted_by_itself(start, talk, server_pair) -> None:
    """As in Go: the bundle may hold the very certificate that is shown, instead of its authority's."""
    both = (server_pair.cert, server_pair.key)
    server = await start(tell_subject, ssl=server_ssl_context(*both))
    assert (await talk(server, LAST, tls=client_ssl_context(server_pair.cert))).endswith(b"nobody")
    own = trustme.CA().issue_cert("jane@example.test", common_name="jane", organization_name="staff")
    shown, key = own.cert_chain_pems[0].bytes(), own.private_key_pem.bytes()
    server = await start(tell_subject, ssl=server_ssl_context(*both, client_ca=shown))
    answer = await talk(server, LAST, tls=client_ssl_context(server_pair.cert, shown, key))
    assert b"common_name='jane'" in answer


async def test_a_server_that_is_not_trusted(start, talk, server_pair) -> None:
    server = await start(tell_subject, ssl=server_ssl_context(server_pair.cert, server_pair.key))
    with pytest.raises(ssl.SSLCertVerificationError):
        await talk(server, LAST, tls=client_ssl_context(pki.create_ca("other").cert))
    with pytest.raises(ssl.SSLCertVerificationError):
        await talk(server, LAST, tls=client_ssl_context())
    assert (await talk(server, LAST, tls=client_ssl_context(verify=False))).endswith(b"nobody")


async def test_a_body_over_the_limit_behind_tls(start, talk, ca, server_pair) -> None:
    async def handle(request: Request) -> Response:
        return Response(413 if request.too_large else 200)

    server = await start(handle, ssl=server_ssl_context(server_pair.cert, server_pair.key))
    body = b"x" * 8_000_000
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=client_ssl_context(ca.cert))
    writer.write(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\n" + body)
    await writer.drain()
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413 ")
    writer.transport.abort()


async def test_stop_does_not_wait_for_idle_tls_clients(start, ca, server_pair) -> None:
    """Nor for their goodbye: they may look at the connection only when they need it again."""
    server = await start(tell_subject, ssl=server_ssl_context(server_pair.cert, server_pair.key))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=client_ssl_context(ca.cert))
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await reader.readuntil(b"nobody")
    writer.transport.pause_reading()
    began = time.monotonic()
    await server.stop(grace=60)
    assert time.monotonic() - began < 5
    writer.transport.abort()


def test_certificates_say_what_they_are_for(ca) -> None:
    server = x509.load_pem_x509_certificate(pki.create_server_certificate(ca, ["a.test", "10.0.0.1"]).cert)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.test"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]
    client = x509.load_pem_x509_certificate(pki.create_client_certificate(ca, "jane").cert)
    for cert, purpose in ((server, "serverAuth"), (client, "clientAuth")):
        usages = cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert [usage._name for usage in usages] == [purpose]
        assert not cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    authority = x509.load_pem_x509_certificate(ca.cert)
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    authority.verify_directly_issued_by(authority)
    server.verify_directly_issued_by(authority)


def test_subjects(ca) -> None:
    der = pki.to_der(pki.create_client_certificate(ca, "jané", ["a,b", "c"]).cert)
    assert pki.parse_subject(der) == pki.Subject("jané", ("a,b", "c"), "")
    assert pki.parse_subject(der) is pki.parse_subject(bytes(der))
    with pytest.raises(ValueError):
        pki.parse_subject(b"nonsense")


def test_files_are_made_once(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "pki"
    first = pki.load_or_create(directory, ["localhost", "127.0.0.1"])
    assert sorted(os.listdir(directory)) == ["ca.crt", "ca.key", "server.crt", "server.key"]
    for name, mode in (("ca.key", 0o600), ("server.key", 0o600), ("ca.crt", 0o644), ("server.crt", 0o644)):
        assert stat.S_IMODE((directory / name).stat().st_mode) == mode
    assert pki.load_or_create(directory, ["127.0.0.1"]) == first
    server_ssl_context(first.cert, first.key, client_ca=first.ca.cert)


def test_good_files_are_used_without_the_library_that_made_them(tmp_path: Path) -> None:
    """Its import would be most of a server's start."""
    pki.load_or_create(tmp_path, ["localhost", "::1"])
    code = (
        "import sys; from pathlib import Path; from steersman.net import pki, server\n"
        "pki.load_or_create(Path(sys.argv[1]), ['localhost', '0:0::1']); print('cryptography' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "False\n"


def test_a_new_host_needs_a_new_server_certificate(tmp_path: Path) -> None:
    first = pki.load_or_create(tmp_path, ["localhost"])
    second = pki.load_or_create(tmp_path, ["localhost", "10.0.0.1"])
    assert second.ca == first.ca and second.server != first.server


@pytest.mark.parametrize("damage", ["missing key", "garbage", "key of another", "foreign authority"])
def test_unusable_files_are_replaced(tmp_path: Path, damage: str) -> None:
    first = pki.load_or_create(tmp_path, ["localhost"])
    if damage == "missing key":
        (tmp_path / "server.key").unlink()
    elif damage == "garbage":
        (tmp_path / "server.crt").write_bytes(b"nonsense")
    elif damage == "key of another":
        (tmp_path / "server.key").write_bytes(pki.create_ca("x").key)
    else:
        other = pki.create_server_certificate(pki.create_ca("test-ca"), ["localhost"])
        (tmp_path / "server.key").write_bytes(other.key)
        (tmp_path / "server.crt").write_bytes(other.cert)
    second = pki.load_or_create(tmp_path, ["localhost"])
    assert second.ca == first.ca and second.server != first.server
    assert pki.load_or_create(tmp_path, ["localhost"]) == second


@pytest.mark.parametrize(("days", "kept"), [(pki.RENEW_DAYS - 1, False), (pki.RENEW_DAYS + 1, True)])
def test_certificates_are_renewed_in_time(tmp_path: Path, ca, days: int, kept: bool) -> None:
    old = pki.create_server_certificate(ca, ["localhost"], days=days)
    for name, content in (("ca.crt", ca.cert), ("ca.key", ca.key), ("server.crt", old.cert), ("server.key", old.key)):
        (tmp_path / name).write_bytes(content)
    found = pki.load_or_create(tmp_path, ["localhost"])
    assert found.ca == ca
    assert (found.server == old) == kept
    expiry = x509.load_pem_x509_certificate(found.server.cert).not_valid_after_utc
    assert expiry > datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=pki.RENEW_DAYS)


def test_an_authority_that_ends_soon_takes_its_server_along(tmp_path: Path) -> None:
    old = pki.create_ca("steersman-ca", days=pki.RENEW_DAYS - 1)
    (tmp_path / "ca.crt").write_bytes(old.cert)
    (tmp_path / "ca.key").write_bytes(old.key)
    found = pki.load_or_create(tmp_path, ["localhost"])
    assert found.ca != old
    x509.load_pem_x509_certificate(found.cert).verify_directly_issued_by(x509.load_pem_x509_certificate(found.ca.cert))


def test_writing_fails_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "ca.key").mkdir()
    with pytest.raises(OSError):
        pki.write_atomically(tmp_path / "ca.key", b"x", mode=0o600)
    assert os.listdir(tmp_path) == ["ca.key"]
