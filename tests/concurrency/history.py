"""Clients that read and write a few ConfigMaps at random and record what they were answered, and a watch of them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from faults.linearizability import Operation, Outcome, State

from steersman.apimachinery.errors import AlreadyExists, Conflict, NotFound
from steersman.client.client import Client
from steersman.client.resources import Object, Resource
from steersman.client.retry import Backoff
from steersman.client.transport import ConnectError, TransportError
from steersman.client.watch import WatchEvent

CONFIG_MAP = Resource("v1", "ConfigMap", "configmaps", True)
LABEL = "history"
Kind = Literal["read", "create", "put", "patch", "delete"]
_REFUSALS: dict[type[Exception], Outcome] = {
    NotFound: Outcome.ABSENT,
    AlreadyExists: Outcome.EXISTS,
    Conflict: Outcome.CONFLICT,
}
_WEIGHTS: dict[Kind, int] = {"read": 6, "create": 2, "put": 5, "patch": 2, "delete": 1}


def value_of(obj: Object) -> str:
    value: str = obj["data"]["value"]
    return value


def version_of(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


@dataclass
class Snapshot:
    """What a list found."""

    invoked: float
    completed: float
    version: int
    values: dict[str, str]


@dataclass
class History:
    """All that the clients did until `over`. `offline` counts requests that were never sent, for nothing listened."""

    operations: list[Operation] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    offline: int = 0
    over: bool = False

    def of(self, key: str) -> list[Operation]:
        return [operation for operation in self.operations if operation.key == key]

    @property
    def writes(self) -> list[Operation]:
        """Acknowledged writes."""
        return [operation for operation in self.operations if operation.kind != "read" and operation.outcome is _OK]


_OK = Outcome.OK


class Worker:
    """One client. `online` is set while a server listens; what the worker knows of an object may be old."""

    def __init__(self, name: str, client: Client, keys: Sequence[str], history: History, online: asyncio.Event) -> None:
        self._name = name
        self._client = client
        self._keys = keys
        self._history = history
        self._online = online
        self._count = 0
        self._read: dict[str, Object] = {}

    async def run(self) -> None:
        """Works until the history is over."""
        while not self._history.over:
            await self._online.wait()
            if random.random() < 0.03:
                await self._list()
                continue
            key = random.choice(self._keys)
            kind = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
            if kind in ("put", "delete") and key not in self._read:
                kind = "read"
            await self._record(kind, key)

    async def _list(self) -> None:
        invoked = time.perf_counter()
        listing = self._client.list(CONFIG_MAP, namespace="default", label_selector=LABEL, limit=0)
        try:
            found = await listing.collect()
        except TransportError:
            return
        values = {obj["metadata"]["name"]: value_of(obj) for obj in found}
        completed = time.perf_counter()
        self._history.snapshots.append(Snapshot(invoked, completed, int(listing.resource_version), values))

    async def _record(self, kind: Kind, key: str) -> None:
        self._count += 1
        value = f"{self._name}-{self._count}"
        known = self._read.get(key)
        expected = value_of(known) if known is not None and kind in ("put", "delete") else None
        invoked = time.perf_counter()
        obj = None
        try:
            obj = await self._call(kind, key, value, known)
            outcome = Outcome.OK
        except (NotFound, AlreadyExists, Conflict) as error:
            outcome = _REFUSALS[type(error)]
        except ConnectError:
            self._history.offline += 1
            await asyncio.sleep(0.01)
            return
        except TransportError:
            outcome = Outcome.UNKNOWN
        completed = time.perf_counter()
        if obj is not None:
            self._read[key] = obj
        found: State = value if kind in ("create", "put", "patch") else value_of(obj) if obj is not None else None
        version = version_of(obj) if obj is not None else 0
        operation = Operation(kind, key, invoked, completed, outcome, found, expected, version)
        self._history.operations.append(operation)

    def _call(self, kind: Kind, key: str, value: str, known: Object | None) -> Awaitable[Object | None]:
        client, meta = self._client, {"name": key, "namespace": "default", "labels": {LABEL: "yes"}}
        data = {"value": value}
        match kind:
            case "read":
                return client.get(CONFIG_MAP, key)
            case "create":
                return client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
            case "patch":
                return client.patch(CONFIG_MAP, key, {"data": data})
            case "put":
                assert known is not None
                return client.update({**known, "data": data})
        assert known is not None
        return client.delete(CONFIG_MAP, key, resource_version=known["metadata"]["resourceVersion"])


class Follower:
    """A watch of all that the workers write, from before their first write on."""

    def __init__(self, client: Client) -> None:
        self.events: list[WatchEvent[Any]] = []
        self.failures: list[Exception] = []
        self._client = client

    async def run(self, version: str, last: str) -> None:
        """Follow until the object named `last` is there."""
        watch = self._client.watch(
            CONFIG_MAP,
            namespace="default",
            label_selector=LABEL,
            resource_version=version,
            backoff=Backoff(1, 0.05, 2.0, 0.5, 0.5),
            on_error=self.failures.append,
        )
        async with watch:
            async for event in watch:
                if event.object["metadata"]["name"] == last:
                    return
                self.events.append(event)


def check_real_time(history: History) -> None:
    """A write that began after another was acknowledged has a greater version, whatever their keys; a list that began
    after it has no smaller one, and neither has what begins after a list."""
    ends: list[tuple[float, int]] = []
    begins: list[tuple[float, int, int]] = []
    for write in history.writes:
        if write.version:
            ends.append((write.completed, write.version))
            begins.append((write.invoked, write.version, 1))
    for snapshot in history.snapshots:
        ends.append((snapshot.completed, snapshot.version))
        begins.append((snapshot.invoked, snapshot.version, 0))
    ends.sort()
    at, newest = 0, 0
    for invoked, version, least in sorted(begins):
        while at < len(ends) and ends[at][0] < invoked:
            newest = max(newest, ends[at][1])
            at += 1
        assert version >= newest + least, f"version {version} at {invoked}, though {newest} was there before"


def check_stream(events: Iterable[WatchEvent[Any]], history: History) -> None:
    """The watch told every acknowledged write once, in order, and nothing that was never asked for."""
    told: dict[tuple[str, str, str], int] = {}
    state: dict[str, str] = {}
    newest = 0
    for event in events:
        name, value, version = event.object["metadata"]["name"], value_of(event.object), version_of(event.object)
        assert version > newest and not event.initial
        newest = version
        assert event.type == ("MODIFIED" if name in state else "ADDED") or (
            event.type == "DELETED" and state[name] == value
        )
        if event.type == "DELETED":
            del state[name]
        else:
            state[name] = value
        kind = "delete" if event.type == "DELETED" else "write"
        assert (kind, name, value) not in told
        told[kind, name, value] = version
    asked = set()
    for operation in history.operations:
        write = _identity(operation)
        if write is None or operation.outcome not in (Outcome.OK, Outcome.UNKNOWN):
            continue
        asked.add(write)
        if operation.outcome is Outcome.OK:
            assert write in told, f"not told: {operation}"
            assert operation.version in (0, told[write])
    assert told.keys() <= asked


def _identity(operation: Operation) -> tuple[str, str, str] | None:
    """What distinguishes a write in the stream: its value, or that of what it deleted."""
    if operation.kind == "read":
        return None
    if operation.kind == "delete":
        assert operation.expected is not None
        return "delete", operation.key, operation.expected
    assert operation.value is not None
    return "write", operation.key, operation.value


def check_snapshots(events: Sequence[WatchEvent[Any]], snapshots: Iterable[Snapshot]) -> None:
    """Each list shows the state at its version, as the stream tells it."""
    state: dict[str, str] = {}
    at = 0
    for snapshot in sorted(snapshots, key=lambda snapshot: snapshot.version):
        while at < len(events) and version_of(events[at].object) <= snapshot.version:
            obj = events[at].object
            if events[at].type == "DELETED":
                del state[obj["metadata"]["name"]]
            else:
                state[obj["metadata"]["name"]] = value_of(obj)
            at += 1
        assert snapshot.values == state
