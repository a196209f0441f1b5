"""What hollow controllers share: objects from the server's caches, owners, and writes through the API."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from steersman._util import clock
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import AlreadyExists, Conflict, NotFound
from steersman.apimachinery.selectors import from_object
from steersman.apiserver.core import Core
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.watchcache import Change
from steersman.client.client import Client
from steersman.controlplane.queue import WorkQueue

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
NODE = "hollow-node"
BEHAVIOUR = "steersman.dev/hollow"
"""Annotation of a Pod: Running (and ready), Succeeded, Failed, NotReady or Pending."""
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # letters that make no words


class HollowController:
    """Works on the objects of one kind whenever they, or objects that they control, change."""

    name = ""
    group = ""
    resource = ""
    kind = ""
    controls: Sequence[tuple[str, str]] = ()
    """Group and resource of what objects of the kind control."""

    def __init__(self, client: Client, core: Core) -> None:
        self._client = client
        self._core = core
        self.scope = self.scope_of(self.group, self.resource)
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._work)

    async def run(self) -> None:
        """Works until it is cancelled."""
        await self.prepare()
        own = self.scope.cache
        controlled = [self.scope_of(*each).cache for each in self.controls]
        own.watchers.append(self._on_change)
        for cache in controlled:
            cache.watchers.append(self._on_controlled)
        for key in own.keys:
            self._queue.add(key)
        try:
            await self._queue.run()
        finally:
            own.watchers.remove(self._on_change)
            for cache in controlled:
                cache.watchers.remove(self._on_controlled)

    async def prepare(self) -> None:
        """What must be there before the first object is worked on."""

    async def sync(self, obj: Object) -> None:
        """Bring one object a step further."""
        raise NotImplementedError

    async def _work(self, key: str) -> None:
        entry = self.scope.cache.get(key)
        if entry is None:
            return
        try:
            await self.sync(self.scope.view.tree(entry))
        except (NotFound, AlreadyExists, Conflict):
            # The caches will tell of what is in the way.
            self._queue.add(key)

    def _on_change(self, change: Change) -> None:
        if change.new is not None:
            self._queue.add(change.new.key)

    def _on_controlled(self, change: Change) -> None:
        for entry in (change.old, change.new):
            owner = controller_of(entry.decode()) if entry is not None else None
            if owner is not None and owner["kind"] == self.kind:
                namespace = change.last.key.rpartition("/")[0]
                self._queue.add(f"{namespace}/{owner['name']}")

    def scope_of(self, group: str, resource: str) -> ResourceScope:
        scope = self._core.catalog.look_up(group, "v1", resource)
        assert scope is not None
        return scope

    def controlled(self, owner: Object, group: str, resource: str) -> list[Object]:
        """The objects of a resource that an object controls, in the order of their names."""
        scope, uid = self.scope_of(group, resource), owner["metadata"]["uid"]
        found = []
        for key in scope.cache.select(owner["metadata"]["namespace"]):
            entry = scope.cache.entries[key]
            if uid.encode() in entry.stored:
                obj = scope.view.tree(entry)
                reference = controller_of(obj)
                if reference is not None and reference["uid"] == uid:
                    found.append(obj)
        return found

    def pods_of(self, owner: Object) -> list[Object]:
        """The Pods that an object controls and that are not going."""
        return [pod for pod in self.controlled(owner, "", "pods") if "deletionTimestamp" not in pod["metadata"]]

    def now(self) -> str:
        return self._core.now()

    async def create(self, group: str, resource: str, obj: Object) -> None:
        await self._client.rest.json("POST", self._path(group, resource, obj["metadata"]), body=obj)

    async def delete(self, group: str, resource: str, obj: Object, **options: Any) -> None:
        meta = obj["metadata"]
        body = {"preconditions": {"uid": meta["uid"]}, "propagationPolicy": "Background", **options}
        await self._client.rest.json("DELETE", self._path(group, resource, meta, meta["name"]), body=body)

    async def patch(self, group: str, resource: str, obj: Object, change: Object, subresource: str = "") -> None:
        """A merge patch of the object as it is known: Conflict when it has changed since."""
        meta = obj["metadata"]
        given = {**change.get("metadata", {}), "resourceVersion": meta["resourceVersion"]}
        path = self._path(group, resource, meta, meta["name"]) + (f"/{subresource}" if subresource else "")
        await self._client.rest.json("PATCH", path, body={**change, "metadata": given}, content_type=MERGE)

    async def set_status(self, obj: Object, status: Object) -> None:
        """Write what differs in the object's status; fields that are None go."""
        present = obj.get("status") or {}
        wanted = {key: value for key, value in status.items() if present.get(key) != value}
        if any(value is not None or key in present for key, value in wanted.items()):
            await self.patch(self.group, self.resource, obj, {"status": wanted}, "status")

    def _path(self, group: str, resource: str, meta: Mapping[str, Any], name: str = "") -> str:
        root = f"/apis/{group}/v1" if group else "/api/v1"
        space = f"/namespaces/{quote(meta['namespace'], safe='')}" if meta.get("namespace") else ""
        return f"{root}{space}/{resource}" + (f"/{quote(name, safe='')}" if name else "")


def controller_of(obj: Object) -> Object | None:
    """The owner reference of an object's controller."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in references if each.get("controller")), None)


def reference_to(owner: Object) -> Object:
    """The owner reference for what an object controls."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from(owner: Object, template: Object, meta: Object, labels: Mapping[str, str] | None = None) -> Object:
    """A Pod of a template, controlled by `owner`; `meta` says how it is called."""
    given = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": owner["metadata"]["namespace"],
            "labels": {**(given.get("labels") or {}), **(labels or {})},
            "annotations": given.get("annotations") or {},
            "ownerReferences": [reference_to(owner)],
            **meta,
        },
        "spec": template.get("spec") or {},
    }


def is_ready(pod: Object) -> bool:
    return condition(pod, "Ready").get("status") == "True"


def is_finished(pod: Object) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def condition(obj: Object, kind: str) -> Object:
    """A condition in an object's status, empty if it is not there."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def with_conditions(obj: Object, *wanted: Object, now: str, updates: bool = False) -> list[Object]:
    """An object's conditions with some set; times move with the status, `updates` also says when they were written."""
    kept = {each["type"]: each for each in (obj.get("status") or {}).get("conditions") or ()}
    for new in wanted:
        old = kept.get(new["type"], {})
        if all(old.get(key) == value for key, value in new.items()):
            continue
        since = old.get("lastTransitionTime", now) if old.get("status") == new["status"] else now
        kept[new["type"]] = {**new, "lastTransitionTime": since, **({"lastUpdateTime": now} if updates else {})}
    return list(kept.values())


def short_hash(value: Any) -> str:
    """A short name for a value."""
    digest = hashlib.sha256(codec.encode(value)).digest()[:10]
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest)


def selects(selector: Object | None, labels: Mapping[str, str] | None) -> bool:
    return selector is not None and from_object(selector).matches(labels)


def age(text: str) -> float:
    """Seconds since a time."""
    return (clock.utc_now() - datetime.fromisoformat(text)).total_seconds()
