"""Fixtures for everyone: a real API server in this process, over HTTPS, for each test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLContext
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, settings

from steersman.apiserver.authn.tokens import StaticTokens
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.server import ServerConfig
from steersman.client.client import Client
from steersman.client.config import load
from steersman.controlplane.kubeconfig import write_kubeconfig
from steersman.controlplane.plane import ControlPlane
from steersman.net.pki import ServerFiles, load_or_create
from steersman.net.tls import client_ssl_context, server_ssl_context

# How fast an example is tells of the machine, not of a law. In CI a commit is judged by the same examples each time;
# new ones are looked for where somebody can look into what they find.
settings.register_profile(
    "suite", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

TOKENS = {
    "admintoken": UserInfo("admin", "admin", ("system:masters",)),
    "alicetoken": UserInfo("alice", "alice-uid", ("devs",)),
    "bobtoken": UserInfo("bob", "bob-uid", ("",)),
}


@dataclass
class Answer:
    """An HTTP answer with its decoded body (text when it is no JSON)."""

    status: int
    headers: Any
    body: Any


@dataclass
class RunningServer:
    """A control plane under test. `token` is an administrator's."""

    plane: ControlPlane
    kubeconfig: Path
    ca_file: Path
    token: str = "admintoken"

    @property
    def url(self) -> str:
        return self.plane.url

    @property
    def ssl(self) -> SSLContext:
        return client_ssl_context(self.ca_file.read_bytes())

    @asynccontextmanager
    async def session(self, token: str | None = "admintoken") -> AsyncIterator[aiohttp.ClientSession]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(ssl=self.ssl, limit=0)
        async with aiohttp.ClientSession(self.url, headers=headers, connector=connector) as session:
            yield session

    async def request(
        self, method: str, path: str, body: Any = None, *, token: str | None = "admintoken", **more: Any
    ) -> Answer:
        """One request; `body` is sent as JSON, or as it is when it is bytes."""
        if isinstance(body, bytes):
            more["data"] = body
        elif body is not None:
            more["json"] = body
        async with self.session(token) as session, session.request(method, path, **more) as response:
            try:
                content = await response.json(content_type=None)
            except ValueError:
                content = await response.text()
            return Answer(response.status, response.headers, content)

    async def define(
        self,
        *,
        group: str = "test.example.com",
        kind: str = "Widget",
        version: dict[str, Any] | None = None,
        **spec: Any,
    ) -> str:
        """Create a CRD and wait until it is served. Returns the path of its objects in `default`."""
        plural = f"{kind.lower()}s"
        base = {
            "name": "v1",
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": ANY_SPEC},
        }
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
                "versions": [{**base, **(version or {})}],
                **spec,
            },
        }
        answer = await self.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        assert answer.status == 201, answer.body
        await self.until_served(group, "v1", plural)
        return f"/apis/{group}/v1/namespaces/default/{plural}"

    async def until_served(self, group: str, version: str, plural: str) -> None:
        """Wait for the catalog's own change event."""
        import asyncio

        catalog = self.plane.server.core.catalog
        changed = asyncio.Event()
        catalog.listeners.append(changed.set)
        try:
            while catalog.look_up(group, version, plural) is None:
                await asyncio.wait_for(changed.wait(), 5)
                changed.clear()
        finally:
            catalog.listeners.remove(changed.set)

    async def client(self, **options: Any) -> Client:
        """A client as administrator; the caller closes it."""
        return Client(load(kubeconfig=self.kubeconfig), **options)


ANY_SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerFiles]:
    yield load_or_create(tmp_path_factory.mktemp("certs"), ["127.0.0.1", "localhost"])


@asynccontextmanager
async def running(
    certificates: ServerFiles,
    directory: Path,
    store: str = "memory://",
    *,
    tls_context: SSLContext | None = None,
    hollow_workloads: bool = False,
    **options: Any,
) -> AsyncIterator[RunningServer]:
    tls = tls_context or server_ssl_context(certificates.cert, certificates.key)
    config = ServerConfig(tls=tls, tokens=StaticTokens(TOKENS), **options)
    started = ControlPlane.start(store, config, root_ca=certificates.ca.cert, hollow_workloads=hollow_workloads)
    async with await started as plane:
        kubeconfig, ca_file = directory / "kubeconfig", directory / "ca.crt"
        ca_file.write_bytes(certificates.ca.cert)
        write_kubeconfig(kubeconfig, plane.url, certificates.ca.cert, "admintoken")
        yield RunningServer(plane, kubeconfig, ca_file)


@pytest.fixture
async def apiserver(certificates: ServerFiles, tmp_path: Path) -> AsyncIterator[RunningServer]:
    """A control plane on a memory store."""
    async with running(certificates, tmp_path) as server:
        yield server


@pytest.fixture
async def durable_apiserver(certificates: ServerFiles, tmp_path: Path) -> AsyncIterator[RunningServer]:
    """A control plane on a SQLite store."""
    async with running(certificates, tmp_path, f"sqlite:///{tmp_path}/store.db") as server:
        yield server
