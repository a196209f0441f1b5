"""A namespace of a real cluster for each test: what `--kubeconfig` and `--kube-context` ask for."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from steersman.apimachinery.errors import ApiError, NotFound
from steersman.client.config import Config, ConfigError, load
from steersman.client.errors import ClientError
from steersman.client.resources import Resource
from steersman.client.sync import SyncClient
from steersman.testing.apiserver import ApiServer

NAMESPACE = Resource("v1", "Namespace", "namespaces", False)


def problem_of(kubeconfig: str | None, context: str | None) -> str | None:
    """Why no test could reach the cluster, in a sentence that names the option; None if it answers."""
    option = "--kube-context" if kubeconfig is None else "--kubeconfig"
    try:
        config = _load(kubeconfig, context)
    except (ConfigError, OSError) as error:
        return f"{option}: {error}"
    try:
        with SyncClient(config) as kube:
            kube.server_version()
    except (ClientError, ApiError) as error:
        return f"{option}: the cluster at {config.server} does not answer: {error}"
    return None


@contextmanager
def cluster_namespace(directory: Path, kubeconfig: str | None, context: str | None) -> Iterator[ApiServer]:
    """A namespace of a real cluster, deleted at the end; nothing waits for that."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    config = replace(_load(kubeconfig, context), namespace=name)
    with SyncClient(config) as kube:
        kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        try:
            yield ApiServer(config, kube, directory, is_real=True)
        finally:
            with suppress(NotFound):
                kube.delete(NAMESPACE, name)


def _load(kubeconfig: str | None, context: str | None) -> Config:
    """A shell leaves the ~ of `--kubeconfig=~/.kube/config` as it is."""
    return load(context, None if kubeconfig is None else str(Path(kubeconfig).expanduser()))
