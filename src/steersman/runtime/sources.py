"""What a controller listens to, and to which requests an event leads.

Source: controller-runtime `pkg/handler/{enqueue,enqueue_owner,enqueue_mapped}.go`, `pkg/builder/controller.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from steersman.client.resources import Kind, Object, Resource
from steersman.client.rest_mapper import RestMapper
from steersman.runtime.cache.events import Event
from steersman.runtime.cluster import Cluster
from steersman.runtime.predicates import Predicate
from steersman.runtime.requests import CREATED, DELETED, INITIAL, LOW_PRIORITY, RESYNC, UPDATED, Reason, Request

Mapper = Callable[[Event], Iterable[Hashable]]
"""The requests that an event leads to."""


@dataclass(frozen=True, slots=True)
class Source:
    """A kind that a controller listens to."""

    kind: Kind[Any]
    mapper: Mapper
    predicates: Sequence[Predicate] = ()
    metadata_only: bool = False
    cluster: Cluster | None = None
    """Where the kind is watched; None for the controller's own cluster."""

    def requests(self, event: Event) -> Iterable[Hashable]:
        """The requests that an event leads to, each once; none if a predicate is against it."""
        if not all(predicate(event) for predicate in self.predicates):
            return ()
        return dict.fromkeys(self.mapper(event))


def same_object(event: Event) -> Iterable[Request]:
    """The object itself."""
    return (Request(*event.key),)


def owner_mapper(owner: Resource, mapper: RestMapper, *, every: bool = False) -> Mapper:
    """The owners of a kind, before and after the event: the controller, or with `every` all.

    None while it is not known whether the kind is namespaced: there are no owners then that are known. All that the
    informer of the kind finds later are reconciled anyway.
    """

    def owners(obj: Object | None) -> Iterable[Request]:
        metadata = (obj or {}).get("metadata") or {}
        for reference in metadata.get("ownerReferences") or ():
            if not (every or reference.get("controller")) or reference.get("kind") != owner.kind:
                continue
            mapping = mapper.remembered(owner)
            if mapping is not None and reference.get("apiVersion", "").rpartition("/")[0] == owner.group:
                namespaced = mapping.namespaced
                yield Request(metadata.get("namespace") or "" if namespaced else "", reference["name"])

    return lambda event: [*owners(event.raw), *owners(event.old)]


def object_mapper(kind: Kind[Any], func: Callable[[Any], Iterable[Hashable]]) -> Mapper:
    """What `func` gives for the object, before and after the event."""

    def requests(event: Event) -> Iterable[Hashable]:
        states = [event.raw] if event.old is None or event.resync else [event.raw, event.old]
        return [request for state in states for request in func(kind.from_wire(state))]

    return requests


def reason_of(event: Event) -> Reason:
    """Why an event leads to a reconcile."""
    metadata = event.metadata
    namespace = metadata.get("namespace")
    name = f"{namespace}/{metadata.get('name')}" if namespace else metadata.get("name", "")
    detail = f"{event.raw.get('kind', 'object')} {name} at {metadata.get('resourceVersion', '')}"
    if event.initial and event.type == "ADDED":
        return Reason(INITIAL, detail)
    if event.resync:
        return Reason(RESYNC, detail)
    return Reason(_CAUSES[event.type], detail)


def priority_of(event: Event) -> int:
    """What is not urgent goes after what is: the objects at the start, and resyncs."""
    return LOW_PRIORITY if event.resync or (event.initial and event.type == "ADDED") else 0


_CAUSES = {"ADDED": CREATED, "MODIFIED": UPDATED, "DELETED": DELETED, "GENERIC": UPDATED}
