"""The remote service that a kubeconfig file names: where it is, how it is trusted, and who we are to it.

Source: apiserver `pkg/util/webhook/webhook.go` (LoadKubeconfig), client-go `tools/clientcmd/client_config.go`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steersman.apimachinery.codec import yaml
from steersman.net.calls import Trust


class KubeconfigError(ValueError):
    """The file names no service that can be called; the message says why."""


@dataclass(frozen=True, slots=True)
class RemoteService:
    """A URL that reviews are posted to. `token_file` is read anew for every call."""

    url: str
    trust: Trust
    token: str = ""
    token_file: Path | None = None
    basic: str = ""

    def headers(self) -> dict[str, str]:
        """The credentials of a call. Raises OSError when the token's file cannot be read."""
        token = self.token if self.token_file is None else self.token_file.read_text().strip()
        if token:
            return {"Authorization": f"Bearer {token}"}
        return {"Authorization": f"Basic {self.basic}"} if self.basic else {}


def load_service(path: Path) -> RemoteService:
    """Read the current context of a kubeconfig file. Raises KubeconfigError."""
    try:
        content = yaml.decode(path.read_bytes())
    except (OSError, yaml.YamlError) as error:
        raise KubeconfigError(getattr(error, "strerror", None) or str(error)) from None
    if not isinstance(content, dict):
        raise KubeconfigError("it is no kubeconfig file")
    context = _named(content, "contexts", content.get("current-context") or "", "context")
    cluster = _named(content, "clusters", context.get("cluster") or "", "cluster")
    user = _named(content, "users", context["user"], "user") if context.get("user") else {}
    server = cluster.get("server")
    if not isinstance(server, str) or not server:
        raise KubeconfigError("no server of the cluster is given")
    url = server if "://" in server else f"https://{server}"
    token_file = user.get("tokenFile")
    basic = ""
    if user.get("username"):
        basic = base64.b64encode(f"{user['username']}:{user.get('password', '')}".encode()).decode()
    trust = Trust(
        _bytes(path, cluster, "certificate-authority"),
        _bytes(path, user, "client-certificate"),
        _bytes(path, user, "client-key"),
        str(cluster.get("tls-server-name") or ""),
        verify=not cluster.get("insecure-skip-tls-verify"),
    )
    return RemoteService(
        url, trust, str(user.get("token") or ""), _beside(path, token_file) if token_file else None, basic
    )


def _named(content: Mapping[str, Any], listed: str, name: str, key: str) -> Mapping[str, Any]:
    for entry in content.get(listed) or ():
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(key), dict):
            found: Mapping[str, Any] = entry[key]
            return found
    raise KubeconfigError(f'{key} "{name}" does not exist')


def _bytes(path: Path, part: Mapping[str, Any], key: str) -> bytes | None:
    """What is given in place, or in a file (relative to the kubeconfig's directory)."""
    data = part.get(f"{key}-data")
    try:
        if data:
            return base64.b64decode(data, validate=True)
        return _beside(path, part[key]).read_bytes() if part.get(key) else None
    except (OSError, binascii.Error, ValueError) as error:
        raise KubeconfigError(f"{key}: {getattr(error, 'strerror', None) or error}") from None


def _beside(path: Path, name: str) -> Path:
    return path.parent / name
