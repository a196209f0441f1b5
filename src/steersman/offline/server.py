"""An API server in this process, without a socket, on a store in memory: whoever asks it gets the server's verdict."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from steersman.api.apiextensions import conditions
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import ApiError
from steersman.apimachinery.gvk import split_api_version
from steersman.apiserver.endpoints.bodies import MAX_BODY
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.server import APIServer, ServerConfig
from steersman.apiserver.services import ServiceAllocator
from steersman.net.http import Request, Response
from steersman.store.memory import MemoryStore

Object = dict[str, Any]
_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')
_SETTLE_SECONDS = 30.0
# They ask for what a cluster holds besides, or for how it is set up: what is not among the manifests is not wrong.
_ANY_ADDRESS = "0.0.0.0/0"
_LEFT_OUT = frozenset({"Priority"})


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer: the code, the object or Status, the texts of the Warning headers."""

    code: int
    body: Object
    warnings: list[str]

    @property
    def ok(self) -> bool:
        return self.code < 300


class OfflineServer:
    """The server. Everybody may do everything; nothing that is asked of it goes over a network."""

    def __init__(self, server: APIServer) -> None:
        self._server = server
        self._kinds: dict[str, dict[str, ResourceScope]] = {}
        server.core.catalog.listeners.append(self._kinds.clear)

    @classmethod
    @asynccontextmanager
    async def start(cls) -> AsyncIterator[OfflineServer]:
        """Run one until the block ends."""
        log = logging.getLogger("steersman")
        level = log.level
        log.setLevel(logging.CRITICAL + 1)  # what fails is in the answers
        config = ServerConfig(insecure=True, disabled_plugins=_LEFT_OUT)
        store = MemoryStore()
        server = await APIServer.start(store, config, listen=False)
        services = server.core.catalog.look_up("", "v1", "services")
        assert services is not None
        services.begin = ServiceAllocator(services.cache, _ANY_ADDRESS).begin
        try:
            yield cls(server)
        finally:
            await server.stop(0)
            await store.close()
            log.setLevel(level)

    def scope(self, api_version: str, kind: str) -> ResourceScope | None:
        """Where objects of a kind are created; None if no such kind is served."""
        if api_version not in self._kinds:
            try:
                group, version = split_api_version(api_version)
            except ValueError:
                return None
            scopes = self._server.core.catalog.in_version(group, version)
            self._kinds[api_version] = {scope.kind: scope for scope in scopes if "create" in scope.verbs}
        return self._kinds[api_version].get(kind)

    async def send(self, method: str, path: str, body: Object | None = None, **query: str) -> Answer:
        """One request, its body sent as JSON."""
        content = codec.encode(body) if body is not None else b""
        too_large = len(content) > MAX_BODY
        headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "steersman"}
        request = Request(method, path, urlencode(query), headers, b"" if too_large else content, too_large=too_large)
        response = await self._server.filters.handle(request)
        assert isinstance(response, Response)
        raw = response.body if isinstance(response.body, bytes) else b"".join(response.body)
        warnings = [
            re.sub(r"\\(.)", r"\1", match[1])
            for name, value in response.headers
            if name == "Warning" and (match := _WARNING.fullmatch(value))
        ]
        try:
            answer = codec.decode(raw)
        except codec.JsonError:
            answer = {"kind": "Status", "message": raw.decode(errors="replace").strip(), "code": response.status}
        return Answer(response.status, answer, warnings)

    async def create(self, scope: ResourceScope, namespace: str, obj: Object, **query: str) -> Answer:
        """POST an object to where its kind lives."""
        return await self.send("POST", collection(scope, namespace), obj, **query)

    async def create_namespace(self, name: str) -> None:
        """Make sure that there is a namespace; a name that cannot be one is left to those who name it."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.send("POST", "/api/v1/namespaces", body)

    def decoded(self, api_version: str, kind: str, obj: Object) -> Object | None:
        """An object as the server reads it, without unknown fields; None if it cannot."""
        scope = self.scope(api_version, kind)
        assert scope is not None
        try:
            decoded, _ = scope.strategy.decode(codec.copy(obj))
        except ApiError:
            return None
        return decoded

    async def established(self, name: str) -> Object | None:
        """Wait until it is decided whether a CustomResourceDefinition is served.

        Returns None if it is, else the condition that says why not.
        """
        scope = self.scope("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        assert scope is not None
        changed = asyncio.Event()

        def notify(change: object) -> None:
            changed.set()

        scope.cache.watchers.append(notify)
        try:
            async with asyncio.timeout(_SETTLE_SECONDS):
                while True:
                    entry = scope.cache.get(name)
                    crd = scope.view.tree(entry) if entry is not None else {}
                    named = conditions.find_condition(crd, "NamesAccepted")
                    if conditions.is_condition_true(crd, "Established"):
                        return None
                    if named is not None and named["status"] == "False":
                        return named
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            return {"reason": "Timeout", "message": "the definition was not established"}
        finally:
            scope.cache.watchers.remove(notify)


def collection(scope: ResourceScope, namespace: str) -> str:
    """The path of a kind's objects; those of a kind with namespaces, in one of them."""
    root = "apis" if scope.group else "api"
    within = ["namespaces", quote(namespace, safe="")] if scope.namespaced else []
    return "/".join(["", root, scope.api_version, *within, scope.resource])
