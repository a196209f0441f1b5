"""The namespace controller: empties a namespace that is being deleted, then lets it go.

Source: kubernetes `pkg/controller/namespace/deletion/namespaced_resources_deleter.go`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from steersman._util import clock
from steersman._util.tasks import end
from steersman.apimachinery.errors import ApiError, Conflict, MethodNotAllowed, NotFound
from steersman.apiserver.core import Core
from steersman.apiserver.scope import ResourceScope
from steersman.client.client import Client
from steersman.client.errors import ClientError
from steersman.client.resources import Resource

log = logging.getLogger("steersman.controlplane.namespaces")
NAMESPACE = Resource("v1", "Namespace")
FINALIZER = "kubernetes"
FIRST_WAIT, LONGEST_WAIT = 0.02, 2.0

Object = dict[str, Any]


class NamespaceController:
    """Watches namespaces; each that terminates is worked on by one task until it is gone."""

    name = "namespace-controller"

    def __init__(self, client: Client, core: Core) -> None:
        self._client = client
        self._core = core
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Works until it is cancelled."""
        try:
            async with self._client.watch(NAMESPACE) as events:
                async for event in events:
                    meta = event.object["metadata"]
                    if event.type != "DELETED" and "deletionTimestamp" in meta and meta["name"] not in self._tasks:
                        self._begin(meta["name"])
        finally:
            await end(self._tasks.values())

    def _begin(self, name: str) -> None:
        task = asyncio.create_task(self._empty(name), name=f"namespace-{name}")
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _empty(self, name: str) -> None:
        wait = FIRST_WAIT
        while True:
            try:
                if await self._attempt(name):
                    return
            except (ApiError, ClientError) as error:
                log.warning("a namespace could not be emptied yet", extra={"namespace": name, "error": str(error)})
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)

    async def _attempt(self, name: str) -> bool:
        """One pass; True when the namespace is gone."""
        failures = []
        for scope in self._scopes(name):
            try:
                await self._delete_all(scope, name)
            except (ApiError, ClientError) as error:
                # What cannot be deleted, for a broken webhook perhaps, holds up nothing else.
                failures.append(str(error))
        remaining = list(self._scopes(name))
        try:
            namespace = await self._client.get(NAMESPACE, name)
            if remaining:
                await self._report(namespace, remaining, failures)
                return False
            await self._finalize(namespace)
        except NotFound:
            return True
        except Conflict:
            return False
        return True

    def _scopes(self, namespace: str) -> Iterable[ResourceScope]:
        """The resources that hold objects in the namespace, each in one version: the stored one, if it is served."""
        found: dict[bytes, ResourceScope] = {}
        for scope in self._core.catalog.scopes():
            if scope.namespaced and scope.cache.select(namespace):
                known = found.get(scope.cache.prefix)
                if known is None or (scope.view.is_stored and not known.view.is_stored):
                    found[scope.cache.prefix] = scope
        return found.values()

    async def _delete_all(self, scope: ResourceScope, namespace: str) -> None:
        base = f"/apis/{scope.group}" if scope.group else "/api"
        path = f"{base}/{scope.gvr.version}/namespaces/{namespace}/{scope.resource}"
        try:
            await self._client.rest.json("DELETE", path)
        except (NotFound, MethodNotAllowed):
            return

    async def _finalize(self, namespace: Object) -> None:
        left = [item for item in namespace["spec"].get("finalizers") or () if item != FINALIZER]
        name = namespace["metadata"]["name"]
        body = {**namespace, "spec": {**namespace["spec"], "finalizers": left}}
        await self._client.rest.json("PUT", f"/api/v1/namespaces/{name}/finalize", body=body)

    async def _report(self, namespace: Object, remaining: list[ResourceScope], failures: Sequence[str]) -> None:
        """Say in the namespace's conditions what it waits for."""
        name = namespace["metadata"]["name"]
        now = clock.utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")
        wanted = _conditions(name, remaining, failures)
        status = namespace.get("status") or {}
        present = {condition["type"]: condition for condition in status.get("conditions") or ()}
        conditions = []
        for condition in wanted:
            old = present.get(condition["type"], {})
            since = old.get("lastTransitionTime", now) if old.get("status") == condition["status"] else now
            conditions.append({**condition, "lastTransitionTime": since})
        if conditions != status.get("conditions"):
            await self._client.update_status({**namespace, "status": {**status, "conditions": conditions}})


def _conditions(namespace: str, remaining: list[ResourceScope], failures: Sequence[str]) -> list[dict[str, str]]:
    counts, finalizers = [], Counter[str]()
    for scope in remaining:
        keys = scope.cache.select(namespace)
        counts.append(f"{scope.resource}.{scope.group} has {len(keys)} resource instances")
        for key in keys:
            finalizers.update(scope.cache.entries[key].decode()["metadata"].get("finalizers") or ())
    found = [
        _condition("DeletionDiscoveryFailure", False, "ResourcesDiscovered", "All resources successfully discovered"),
        _condition(
            "DeletionGroupVersionParsingFailure",
            False,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        _content_condition(failures),
        _condition(
            "ContentRemaining",
            True,
            "SomeResourcesRemain",
            f"Some resources are remaining: {', '.join(sorted(counts))}",
        ),
    ]
    if finalizers:
        named = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        message = f"Some content in the namespace has finalizers remaining: {named}"
        found.append(_condition("FinalizersRemaining", True, "SomeFinalizersRemain", message))
    else:
        message = "All content-preserving finalizers finished"
        found.append(_condition("FinalizersRemaining", False, "ContentHasNoFinalizers", message))
    return found


def _content_condition(failures: Sequence[str]) -> dict[str, str]:
    if failures:
        message = f"Failed to delete all resource types, {len(failures)} remaining: {', '.join(failures)}"
        return _condition("DeletionContentFailure", True, "ContentDeletionFailed", message)
    message = "All content successfully deleted, may be waiting on finalization"
    return _condition("DeletionContentFailure", False, "ContentDeleted", message)


def _condition(kind: str, status: bool, reason: str, message: str) -> dict[str, str]:
    prefix = "NamespaceDeletion" if kind.startswith("Deletion") else "Namespace"
    name = prefix + kind.removeprefix("Deletion")
    return {"type": name, "status": str(status), "reason": reason, "message": message}
