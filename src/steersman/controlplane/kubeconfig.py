"""Kubeconfig files for those who may use a server that was started here."""

from __future__ import annotations

import base64
from pathlib import Path

from steersman.apimachinery.codec import json as codec
from steersman.net.pki import write_atomically

NAME = "steersman"


def kubeconfig(url: str, ca: bytes | None, token: str) -> dict[str, object]:
    """A kubeconfig of one context; `ca` (PEM) is what the server's certificate is checked against."""
    cluster: dict[str, object] = {"server": url}
    if ca is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token} if token else {}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": "admin"}}],
        "current-context": NAME,
    }


def write_kubeconfig(path: Path, url: str, ca: bytes | None, token: str) -> None:
    """Write one (as JSON, which is YAML), mode 0600. Raises OSError."""
    write_atomically(path, codec.encode(kubeconfig(url, ca, token)) + b"\n", 0o600)
