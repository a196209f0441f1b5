"""Finds the configuration: given, $KUBECONFIG, in a cluster, or the file in the home directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steersman.client.config.credentials import TokenFile
from steersman.client.config.kubeconfig import Kubeconfig, absolute
from steersman.client.config.model import Config, Tls
from steersman.client.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load(context: str | None = None, kubeconfig: str | os.PathLike[str] | Mapping[str, Any] | None = None) -> Config:
    """The configuration to use.

    In this order: `kubeconfig` (a path, or the content of one); $KUBECONFIG (paths separated as in $PATH, merged); the
    service account when running in a cluster; `~/.kube/config`. With a `context` the service account is not considered,
    since only kubeconfig has contexts. Raises ConfigError.
    """
    if isinstance(kubeconfig, Mapping):
        return Kubeconfig([("kubeconfig", {**kubeconfig, **absolute(kubeconfig, Path.cwd())})]).config(context)
    if kubeconfig is not None:
        return Kubeconfig.read([os.fspath(kubeconfig)]).config(context)
    if paths := [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]:
        return Kubeconfig.read(paths).config(context)
    if context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    home = Path("~/.kube/config")
    if not home.expanduser().exists():
        raise ConfigError("no cluster is configured: set KUBECONFIG, create ~/.kube/config, or run inside a cluster")
    return Kubeconfig.read([home]).config(context)


def in_cluster(directory: Path = SERVICE_ACCOUNT) -> Config:
    """The configuration of a pod's service account. Raises ConfigError outside of a pod.

    The token is read again every minute. Source: client-go `rest/config.go` (InClusterConfig).
    """
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    token = directory / "token"
    if not token.is_file():
        raise ConfigError(f"no service account token at {token}: set automountServiceAccountToken, or use a kubeconfig")
    authorities, namespace = directory / "ca.crt", directory / "namespace"
    return Config(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.is_file() else "default",
        tls=Tls(authorities.read_text(encoding="utf-8") if authorities.is_file() else None),
        credentials=TokenFile(token),
    )
