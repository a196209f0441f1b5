"""TLS contexts for both sides: TLS 1.2 or later, forward secrecy."""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator
from typing import Any

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # for TLS 1.2; those of 1.3 are all modern


def server_ssl_context(cert: bytes, key: bytes, client_ca: bytes | None = None) -> ssl.SSLContext:
    """A server's context from PEM texts (`cert` may be a chain, the leaf first).

    With `client_ca` a client may show a certificate, which must then verify: one of another authority fails the
    handshake, no certificate at all does not. Raises ssl.SSLError for texts that can't be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _harden(context)
    load_pair(context, cert, key)
    if client_ca is not None:
        _trust(context, client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def client_ssl_context(
    ca: bytes | None = None,
    cert: bytes | None = None,
    key: bytes | None = None,
    *,
    verify: bool = True,
    protocol: str = "http/1.1",
) -> ssl.SSLContext:
    """A client's context: trusts `ca` (PEM), or the system's authorities without one; shows `cert` if given.

    `verify=False` takes any server certificate; `protocol` is what will be spoken (ALPN).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _harden(context, protocol)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca is not None:
        _trust(context, ca)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if cert is not None and key is not None:
        load_pair(context, cert, key)
    return context


def peer_certificate(server: ssl.SSLContext, client: ssl.SSLContext) -> dict[str, Any]:
    """The server's certificate as `client` sees it (SSLObject.getpeercert()), after a handshake in memory.

    Raises ssl.SSLError if the two do not come together: the certificate has expired, or `client` does not trust it.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_end = client.wrap_bio(to_client, to_server)
    server_end = server.wrap_bio(to_server, to_client, server_side=True)
    for end in (client_end, server_end, client_end, server_end):
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    return client_end.getpeercert() or {}


def _trust(context: ssl.SSLContext, ca: bytes) -> None:
    """As in Go, a certificate in the bundle is trusted by itself, whether it is a root or not."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=ca.decode("ascii"))


def _harden(context: ssl.SSLContext, protocol: str = "http/1.1") -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols([protocol])


def load_pair(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    """Have a context show a certificate (PEM) from the next handshake on. Raises ssl.SSLError."""
    with _file(key.rstrip() + b"\n" + cert) as path:
        context.load_cert_chain(path, password=_no_password)


def _no_password() -> bytes:
    """Instead of the question that OpenSSL would put to the terminal."""
    raise ssl.SSLError("the key is encrypted")


@contextlib.contextmanager
def _file(content: bytes) -> Iterator[str]:
    """A file for the ssl module, which reads nothing else: one in memory where there are such."""
    in_memory = _memory_file()
    if in_memory is not None:
        descriptor, path = in_memory, f"/proc/self/fd/{in_memory}"
    else:
        import tempfile  # deferred: it loads more than a server's start otherwise needs

        descriptor, path = tempfile.mkstemp(suffix=".pem")  # made with mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield path
    finally:
        if in_memory is None:
            os.unlink(path)


def _memory_file() -> int | None:
    """None where there are no files in memory, where a process must not make one, or where it cannot be named."""
    if not hasattr(os, "memfd_create") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.memfd_create("pair")
    except OSError:
        return None
