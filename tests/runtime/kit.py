"""What the tests of the runtime share: a wire that counts and holds back, reconcilers that are waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from steersman.client import Client, Config, CustomResource, Model, Resource, custom_resource
from steersman.client.http_transport import HttpTransport
from steersman.client.transport import RawResponse, RawStream, TransportError
from steersman.runtime.cache.informer import Informer
from steersman.runtime.controller import Controller
from steersman.runtime.manager import Manager

MAPS = Resource("v1", "ConfigMap")
SOON = 30.0
"""Seconds that anything may take on a busy machine."""


class Spec(Model):
    replicas: int = 1


class Status(Model):
    ready: int = 0
    observed_generation: int = 0


@dataclass
class Sent:
    """A request that was sent, and what was answered (0: not yet, or nothing)."""

    method: str
    path: str
    query: str
    watch: bool
    status: int = 0


class Gate:
    """Open, or closed: then those who come to it wait."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self.waiting = 0
        self._came = asyncio.Condition()

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        if self._open.is_set():
            return
        async with self._came:
            self.waiting += 1
            self._came.notify_all()
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1

    async def until_waiting(self, count: int = 1) -> None:
        async with asyncio.timeout(SOON), self._came:
            await self._came.wait_for(lambda: self.waiting >= count)


class Wire:
    """A transport that remembers what was sent; `answers` and `events` (of watches) can be held back."""

    def __init__(self, url: str) -> None:
        self._inner = HttpTransport(Config(server=url))
        self.sent: list[Sent] = []
        self.answers = Gate()
        self.events = Gate()
        self.cut = False
        """Whether watches break when something is to be told."""
        self.refuse: Callable[[Sent], RawResponse | None] = lambda sent: None

    def writes(self, of: str = "", status: int | None = None) -> list[Sent]:
        """The writes to paths that contain `of`, Events and Leases aside."""
        return [
            sent
            for sent in self.sent
            if sent.method != "GET"
            and of in sent.path
            and "/events" not in sent.path
            and "/leases" not in sent.path
            and status in (None, sent.status)
        ]

    def reads(self, of: str = "") -> list[Sent]:
        return [sent for sent in self.sent if sent.method == "GET" and of in sent.path and not sent.watch]

    def conflicts(self) -> int:
        return len(self.writes(status=409))

    async def request(self, method: str, path: str, query: str = "", *rest: Any, **more: Any) -> RawResponse:
        sent = Sent(method, path, query, False)
        self.sent.append(sent)
        answer = self.refuse(sent) or await self._inner.request(method, path, query, *rest, **more)
        sent.status = answer.status
        if method != "GET":
            await self.answers.passed()
        return answer

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, query: str = "", *rest: Any, **more: Any
    ) -> AsyncIterator[RawStream]:
        sent = Sent(method, path, query, True)
        self.sent.append(sent)
        if (refused := self.refuse(sent)) is not None:
            sent.status = refused.status
            yield RawStream(refused.status, refused.headers, _once(refused.body))
            return
        async with self._inner.stream(method, path, query, *rest, **more) as stream:
            sent.status = stream.status
            yield RawStream(stream.status, stream.headers, self._held(stream.chunks))

    async def _held(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            await self.events.passed()
            if self.cut:
                raise TransportError("cut")
            yield chunk

    async def close(self) -> None:
        await self._inner.close()


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


class Log:
    """What has happened, in order; who waits is told."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._added = asyncio.Condition()

    def __len__(self) -> int:
        return len(self.entries)

    async def add(self, entry: Any) -> None:
        async with self._added:
            self.entries.append(entry)
            self._added.notify_all()

    async def until(self, test: int | Callable[[list[Any]], bool]) -> None:
        """Returns when there are so many entries, or `test` holds of them."""
        holds = (lambda: len(self.entries) >= test) if isinstance(test, int) else (lambda: test(self.entries))
        try:
            async with asyncio.timeout(SOON), self._added:
                await self._added.wait_for(holds)
        except TimeoutError:
            raise AssertionError(f"this is all that has happened: {self.entries}") from None


@dataclass
class Lab:
    """A server, a group of its own with the kind Widget, and clients."""

    url: str
    group: str
    namespace: str
    outside: Client
    """Writes as somebody else: field manager "outside"."""
    plural: str = "widgets"
    serial: int = 0
    clients: list[Client] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.widget = Resource(f"{self.group}/v1", "Widget")

        @custom_resource(f"{self.group}/v1", kind="Widget")
        class Widget(CustomResource[Spec, Status]): ...

        self.typed: Any = Widget

    def client(self, **options: Any) -> tuple[Client, Wire]:
        wire = Wire(self.url)
        client = Client(transport=wire, namespace=self.namespace, **options)
        self.clients.append(client)
        return client, wire

    def manager(self, **options: Any) -> tuple[Manager, Wire]:
        name = options.pop("name", "operator")
        client, wire = self.client(field_manager=name)
        return Manager(client=client, name=name, **options), wire

    async def define(self, *, scope: str = "Namespaced", kind: str = "Widget", status: bool = True) -> None:
        """The definition, once the kind is served."""
        definition = crd(self.group, kind=kind, scope=scope, status=status)
        await self.outside.create(definition)
        await self.until(
            Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            definition["metadata"]["name"],
            _is_established,
        )

    async def make(self, name: str, replicas: int = 1, kind: Resource | None = None, **metadata: Any) -> dict[str, Any]:
        kind = kind or self.widget
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, **metadata}}
        return await self.outside.create({**body, "spec": {"replicas": replicas}})

    async def map(self, name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}
        return await self.outside.create(body)

    async def until(
        self,
        kind: Resource,
        name: str,
        test: Callable[[dict[str, Any]], bool],
        *,
        namespace: str | None = None,
    ) -> dict[str, Any]:
        """The object, once `test` holds of it."""
        last: Any = None
        try:
            where = namespace or self.namespace
            async with asyncio.timeout(SOON), self.outside.watch(kind, name=name, namespace=where) as events:
                async for event in events:
                    last = event
                    if event.type != "DELETED" and test(event.object):
                        return event.object
        except TimeoutError:
            pass
        raise AssertionError(f"{kind.kind} {name} never came to be so; the last of it was {last}")

    async def until_gone(self, kind: Resource, name: str) -> None:
        """Returns when there is no such object any more."""
        listing = self.outside.list(kind, namespace=self.namespace, field_selector=f"metadata.name={name}")
        if not await listing.collect():
            return
        since = listing.resource_version
        watch = self.outside.watch(kind, name=name, namespace=self.namespace, resource_version=since)
        async with asyncio.timeout(SOON), watch as events:
            async for event in events:
                if event.type == "DELETED":
                    return

    async def settled(self, manager: Manager, *kinds: Resource) -> None:
        """Returns when the manager has heard of all that has happened, and has done all that follows from it."""
        self.serial += 1
        for kind in kinds or (self.widget, MAPS):
            watched = manager.cluster.cache.peek(kind)
            if watched is None:
                continue
            name = f"zz-marker-{self.serial}"
            made = await (self.map(name) if kind == MAPS else self.make(name, kind=kind))
            for informer in watched.informers:
                await heard_of(informer, made)
        async with asyncio.timeout(SOON):
            # Nothing tells that nothing is to be done.
            while any(_is_busy(controller) for controller in manager._controllers):  # noqa: ASYNC110
                await asyncio.sleep(0.005)


def _is_busy(controller: Controller[Any]) -> bool:
    queue = controller._queue
    return queue is not None and bool(queue.depths() or queue.working())


async def heard_of(informer: Informer, obj: dict[str, Any]) -> None:
    """Returns when an informer knows this state of an object, or a later one."""
    metadata = obj["metadata"]
    key = (metadata.get("namespace") or "", metadata["name"])
    heard = asyncio.Event()

    def knows() -> bool:
        known = informer.indexer.get(key)
        return known is not None and int(known.version) >= int(metadata["resourceVersion"])

    remove = informer.listen(lambda event: heard.set())
    try:
        async with asyncio.timeout(SOON):
            while not knows():
                await heard.wait()
                heard.clear()
    finally:
        remove()


def started(manager: Manager) -> AbstractAsyncContextManager[Manager]:
    """A manager that works, and is stopped in the end; what it raises is raised."""
    return started_after(manager, asyncio.sleep(0))


@asynccontextmanager
async def started_after(manager: Manager, first: Awaitable[Any]) -> AsyncIterator[Manager]:
    """As `started`, but something has to happen before it can work."""
    running = asyncio.ensure_future(manager.start())
    leading = asyncio.ensure_future(manager.leading.wait())
    try:
        await first
        async with asyncio.timeout(SOON):
            await asyncio.wait([running, leading], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
        yield manager
    finally:
        leading.cancel()
        manager.stop()
        async with asyncio.timeout(SOON):
            await running


def crd(group: str, *, kind: str = "Widget", scope: str = "Namespaced", status: bool = True) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        **({"subresources": {"status": {}, "scale": _SCALE}} if status else {}),
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        },
    }


_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.ready"}


def _is_established(definition: dict[str, Any]) -> bool:
    conditions: Sequence[dict[str, Any]] = definition.get("status", {}).get("conditions", [])
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
