"""Where the record of an election is kept: a Lease, or an annotation of a ConfigMap or of Endpoints.

A lock is only a way to read and to write a record; what follows from a record is the elector's matter. Every write
names the resourceVersion that was read, so that of two writers one gets a Conflict.

Source: client-go `tools/leaderelection/resourcelock/` (`leaselock.go`; `configmaplock.go`, `endpointslock.go` and
`multilock.go` as they were until 0.26).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar, Protocol

import orjson

from steersman.apimachinery.errors import NotFound
from steersman.client.client import Client
from steersman.client.resources import Object, Resource
from steersman.runtime.leaderelection.record import (
    UNKNOWN_LEADER,
    Record,
    annotation,
    lease_spec,
    record_from_annotation,
    record_from_lease,
)

LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"


@dataclass(frozen=True, slots=True)
class Place:
    """An object that a lock is kept in; `namespace` None is the client's own."""

    kind: Resource
    namespace: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Observation:
    """A lock as it was read or written: its record, and the objects it is kept in (None for one that is not there).

    `raw` is the record as it is stored: two that differ in nothing else differ here.
    """

    record: Record
    raw: bytes
    objects: tuple[Object | None, ...] = ()


class Lock(Protocol):
    """A record that several processes compete for. `read` and `write` raise ApiError and ClientError."""

    @property
    def name(self) -> str: ...

    @property
    def resolution(self) -> timedelta:
        """The smallest step of the times that it can keep."""
        ...

    def places(self) -> Sequence[Place]:
        """The objects that change when the record does."""
        ...

    async def read(self, client: Client) -> Observation | None:
        """What is stored now; None when there is no such lock yet."""
        ...

    async def write(self, client: Client, record: Record, seen: Observation | None) -> Observation:
        """Store a record in place of what was seen, or make the lock when that was None.

        Raises Conflict, AlreadyExists or NotFound when what is stored is something else by now.
        """
        ...


class ObjectLock(ABC):
    """A lock that is kept in one object. `labels` are set on it by whoever writes the record."""

    kind: ClassVar[Resource]
    resolution: timedelta

    def __init__(self, namespace: str | None, name: str, *, labels: Mapping[str, str] | None = None) -> None:
        if not name:
            raise ValueError("a lock needs a name")
        self.namespace = namespace
        self.name = name
        self.labels = dict(labels or {})

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind.kind} {place}"

    def places(self) -> Sequence[Place]:
        return [Place(self.kind, self.namespace, self.name)]

    async def read(self, client: Client) -> Observation | None:
        obj = await self.get(client)
        return None if obj is None else self.observation(obj)

    async def write(self, client: Client, record: Record, seen: Observation | None) -> Observation:
        return self.observation(await self.put(client, record, None if seen is None else seen.objects[0]))

    async def get(self, client: Client) -> Object | None:
        """The object, None if it is not there."""
        try:
            return await client.get(self.kind, self.name, namespace=self.namespace)
        except NotFound:
            return None

    async def put(self, client: Client, record: Record, obj: Object | None) -> Object:
        """Update the object as it was read, or create it."""
        made: Object = {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": {"name": self.name, "namespace": self.namespace or client.namespace},
        }
        before = made if obj is None else obj
        metadata = dict(before["metadata"])
        if self.labels:
            metadata["labels"] = {**(metadata.get("labels") or {}), **self.labels}
        after = self.with_record({**before, "metadata": metadata}, record)
        return await (client.create(after) if obj is None else client.update(after))

    @abstractmethod
    def observation(self, obj: Object) -> Observation:
        """What an object says."""

    @abstractmethod
    def with_record(self, obj: Object, record: Record) -> Object:
        """The object with another record."""


class LeaseLock(ObjectLock):
    """A `coordination.k8s.io/v1` Lease: what all current Kubernetes components use.

    Needs the verbs get, create and update on it, and watch to notice at once that it is given up.
    """

    kind = Resource("coordination.k8s.io/v1", "Lease", "leases", True)
    resolution = timedelta(microseconds=1)

    def observation(self, obj: Object) -> Observation:
        spec = obj.get("spec") or {}
        return Observation(record_from_lease(spec), orjson.dumps(spec, option=orjson.OPT_SORT_KEYS), (obj,))

    def with_record(self, obj: Object, record: Record) -> Object:
        return {**obj, "spec": lease_spec(record)}


class _AnnotationLock(ObjectLock):
    resolution = timedelta(seconds=1)

    def observation(self, obj: Object) -> Observation:
        text = (obj["metadata"].get("annotations") or {}).get(LEADER_ANNOTATION)
        return Observation(record_from_annotation(text), (text or "").encode(), (obj,))

    def with_record(self, obj: Object, record: Record) -> Object:
        metadata = obj["metadata"]
        annotations = {**(metadata.get("annotations") or {}), LEADER_ANNOTATION: annotation(record)}
        return {**obj, "metadata": {**metadata, "annotations": annotations}}


class ConfigMapLock(_AnnotationLock):
    """The annotation of a ConfigMap, as clients before client-go 0.24 had it: for those that are left."""

    kind = Resource("v1", "ConfigMap", "configmaps", True)


class EndpointsLock(_AnnotationLock):
    """The annotation of an Endpoints object, as clients before client-go 0.24 had it: for those that are left."""

    kind = Resource("v1", "Endpoints", "endpoints", True)


class MultiLock:
    """Two locks that are held together, to come from one kind to the other without two leaders at any time.

    First all replicas use the old lock, then all use both (`MultiLock(ConfigMapLock(...), LeaseLock(...))` is
    client-go's "configmapsleases", with EndpointsLock its "endpointsleases"), then all use the new one. A lock whose
    parts have different holders is held by UNKNOWN_LEADER. Unlike client-go's, the second part is written only in place
    of what was read: a client that uses the second lock alone is not overwritten.
    """

    def __init__(self, primary: ObjectLock, secondary: ObjectLock) -> None:
        self.primary = primary
        self.secondary = secondary
        self.name = primary.name
        self.resolution = max(primary.resolution, secondary.resolution)

    def __str__(self) -> str:
        return f"{self.primary} with {self.secondary}"

    def places(self) -> Sequence[Place]:
        return [*self.primary.places(), *self.secondary.places()]

    async def read(self, client: Client) -> Observation | None:
        first, second = await self.primary.get(client), await self.secondary.get(client)
        return None if first is None and second is None else self._observation(first, second)

    async def write(self, client: Client, record: Record, seen: Observation | None) -> Observation:
        before = (None, None) if seen is None else seen.objects
        first = await self.primary.put(client, record, before[0])
        return self._observation(first, await self.secondary.put(client, record, before[1]))

    def _observation(self, first: Object | None, second: Object | None) -> Observation:
        parts = [
            lock.observation(obj) for lock, obj in ((self.primary, first), (self.secondary, second)) if obj is not None
        ]
        records = [part.record for part in parts]
        agreed = all(record.holder == records[0].holder for record in records)
        record = replace(
            records[0],
            holder=records[0].holder if agreed else UNKNOWN_LEADER,
            duration=max(record.duration for record in records),
            transitions=max(record.transitions for record in records),
        )
        return Observation(record, b",".join(part.raw for part in parts), (first, second))
