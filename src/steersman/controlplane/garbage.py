"""The garbage collector: deletes what has lost its owners, and sees foreground and orphan deletion through.

Source: kubernetes `pkg/controller/garbagecollector/{garbagecollector,graph_builder,operations}.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from steersman.apimachinery.errors import NotFound
from steersman.apiserver.core import Core
from steersman.client.client import Client
from steersman.controlplane.ownership import FOREGROUND, ORPHAN, OwnerGraph, Place, metadata
from steersman.controlplane.queue import WorkQueue

Object = dict[str, Any]
MERGE_PATCH = "application/merge-patch+json"
SOLID, DANGLING, WAITING, INVALID = "solid", "dangling", "waiting", "invalid"


class GarbageCollector:
    """Works on each object that the graph tells of; objects that fail are tried again, and hold up no others.

    An owner is looked up in the dependent's namespace (or the cluster's) by kind and name, and is absent when it is
    not there or has another uid. While the kind is not served, the dependent stays. A cluster-scoped object cannot be
    owned by a namespaced one: it stays too.
    """

    name = "garbage-collector-controller"

    def __init__(self, client: Client, core: Core) -> None:
        self._client = client
        self._core = core
        self._queue: WorkQueue[Place] = WorkQueue(self.name, self._work, workers=16)
        self._graph = OwnerGraph(core, self._queue.add)
        self._unresolved: set[Place] = set()

    async def run(self) -> None:
        """Works until it is cancelled."""
        self._graph.start()
        self._core.catalog.listeners.append(self._retry_unresolved)
        try:
            await self._queue.run()
        finally:
            self._core.catalog.listeners.remove(self._retry_unresolved)
            self._graph.stop()

    def _retry_unresolved(self) -> None:
        for place in self._unresolved:
            self._queue.add(place)
        self._unresolved.clear()

    async def _work(self, place: Place) -> None:
        entry = place.entry
        if entry is None or self._graph.scope_of(place) is None:
            return
        meta = {**metadata(entry), "resourceVersion": str(entry.revision)}
        finalizers = meta.get("finalizers") or ()
        try:
            if "deletionTimestamp" not in meta:
                await self._collect(place, meta)
            elif FOREGROUND in finalizers:
                await self._finish_foreground(place, meta)
            elif ORPHAN in finalizers:
                await self._finish_orphan(place, meta)
        except NotFound:
            return

    async def _collect(self, place: Place, meta: Object) -> None:
        """Delete an object without owners, or take away its references to those that are gone or going."""
        states = {ref["uid"]: self._state(place, ref) for ref in meta.get("ownerReferences") or ()}
        kinds = set(states.values())
        if not states or INVALID in kinds:
            return
        if SOLID in kinds:
            if len(kinds) > 1:
                await self._drop_owners(place, meta, {uid for uid, state in states.items() if state != SOLID})
        elif WAITING in kinds and (dependents := self._graph.dependents(meta["uid"])):
            if any(self._is_held(dependent) for dependent in dependents):
                meta = await self._unblock_owners(place, meta)
            await self._delete(place, meta, "Foreground")
        else:
            await self._delete(place, meta, _policy(meta.get("finalizers") or ()))

    def _state(self, place: Place, ref: Object) -> str:
        scope = self._graph.scope_of_kind(ref.get("apiVersion") or "", ref.get("kind") or "")
        if scope is None:
            self._unresolved.add(place)
            return INVALID
        namespace = place.namespace
        if scope.namespaced and not namespace:
            return INVALID
        entry = scope.cache.get(scope.key(namespace, ref.get("name") or ""))
        if entry is None:
            return DANGLING
        owner = metadata(entry)
        if owner["uid"] != ref["uid"]:
            return DANGLING
        waits = "deletionTimestamp" in owner and FOREGROUND in (owner.get("finalizers") or ())
        return WAITING if waits else SOLID

    def _is_held(self, place: Place) -> bool:
        entry = place.entry
        return entry is not None and self._graph.holds(metadata(entry)["uid"])

    async def _finish_foreground(self, place: Place, meta: Object) -> None:
        """Let an object go once no dependent blocks it; until then its dependents are worked on."""
        if not self._graph.blocking(meta["uid"]):
            await self._remove_finalizer(place, meta, FOREGROUND)
            return
        for dependent in self._graph.dependents(meta["uid"]):
            self._queue.add(dependent)

    async def _finish_orphan(self, place: Place, meta: Object) -> None:
        """Take the references to an object out of its dependents, then let it go."""
        for dependent in self._graph.dependents(meta["uid"]):
            entry = dependent.entry
            if entry is None:
                continue
            found = {**metadata(entry), "resourceVersion": str(entry.revision)}
            try:
                await self._drop_owners(dependent, found, {meta["uid"]})
            except NotFound:
                continue
        await self._remove_finalizer(place, meta, ORPHAN)

    async def _drop_owners(self, place: Place, meta: Object, uids: set[str]) -> None:
        kept = [ref for ref in meta.get("ownerReferences") or () if ref["uid"] not in uids]
        await self._patch(place, meta, {"ownerReferences": kept or None})

    async def _unblock_owners(self, place: Place, meta: Object) -> Object:
        """Break a cycle: the object no longer blocks the deletion of its owners."""
        references = [{**ref, "blockOwnerDeletion": False} for ref in meta["ownerReferences"]]
        patched = await self._patch(place, meta, {"ownerReferences": references})
        found: Object = patched["metadata"]
        return found

    async def _remove_finalizer(self, place: Place, meta: Object, finalizer: str) -> None:
        await self._patch(place, meta, {"finalizers": [item for item in meta["finalizers"] if item != finalizer]})

    async def _patch(self, place: Place, meta: Object, change: Object) -> Object:
        body = {"metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"], **change}}
        patched: Object = await self._client.rest.json("PATCH", self._path(place), body=body, content_type=MERGE_PATCH)
        return patched

    async def _delete(self, place: Place, meta: Object, policy: str) -> None:
        body = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
            "propagationPolicy": policy,
        }
        await self._client.rest.json("DELETE", self._path(place), body=body)

    def _path(self, place: Place) -> str:
        scope = self._graph.scope_of(place)
        if scope is None:
            raise NotFound("the resource is not served any more")
        base = f"/apis/{scope.api_version}" if scope.group else f"/api/{scope.gvr.version}"
        namespace, _, name = place.key.rpartition("/")
        inside = f"/namespaces/{namespace}" if namespace else ""
        return f"{base}{inside}/{scope.resource}/{quote(name, safe='')}"


def _policy(finalizers: Iterable[str]) -> str:
    """An object that is itself to be deleted in a certain way says so in its finalizers."""
    return "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
