"""The flags of an etcd store; those of kube-apiserver carry its names."""

from __future__ import annotations

import argparse
import ssl
from pathlib import Path

from steersman.net.tls import client_ssl_context
from steersman.store.urls import Credentials


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags."""
    add = parser.add_argument_group("etcd").add_argument
    add(
        "--etcd-cafile", metavar="FILE", help="whom to trust as a member, PEM; with it, TLS is spoken (default: no TLS)"
    )
    add("--etcd-certfile", metavar="FILE", help="the certificate to show to members, PEM; with it, TLS is spoken")
    add("--etcd-keyfile", metavar="FILE", help="the key of --etcd-certfile, PEM")
    add("--etcd-user", metavar="NAME", default="", help="a user of etcd's own authentication (default: none)")
    add("--etcd-password-file", metavar="FILE", help="holds the password of --etcd-user, and nothing else")


def credentials(options: argparse.Namespace) -> Credentials:
    """What the flags say. Raises ValueError, in one line."""
    if bool(options.etcd_certfile) != bool(options.etcd_keyfile):
        raise ValueError("--etcd-certfile and --etcd-keyfile go together")
    if bool(options.etcd_user) != bool(options.etcd_password_file):
        raise ValueError("--etcd-user and --etcd-password-file go together")
    password = _read(options.etcd_password_file, "--etcd-password-file")
    ca = _read(options.etcd_cafile, "--etcd-cafile")
    cert = _read(options.etcd_certfile, "--etcd-certfile")
    key = _read(options.etcd_keyfile, "--etcd-keyfile")
    if ca is not None:
        _check(f"--etcd-cafile {options.etcd_cafile}", "it holds no certificate in PEM", ca)
    if cert is not None:
        pair = f"--etcd-certfile {options.etcd_certfile} and --etcd-keyfile {options.etcd_keyfile}"
        _check(pair, "they are no certificate in PEM and its key, not encrypted", None, cert, key)
    return Credentials(
        ca=ca,
        cert=cert,
        key=key,
        user=options.etcd_user,
        password=(password or b"").decode().rstrip("\r\n"),
    )


def _check(what: str, why: str, ca: bytes | None, cert: bytes | None = None, key: bytes | None = None) -> None:
    try:
        client_ssl_context(ca, cert, key)
    except (ssl.SSLError, ValueError):
        raise ValueError(f"{what} cannot be used: {why}") from None


def _read(path: str | None, flag: str) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{flag} {path} cannot be read: {error.strerror}") from None
