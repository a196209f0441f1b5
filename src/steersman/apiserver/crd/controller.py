"""The CRD controller: accepts names, establishes, serves what is established, and empties what is deleted.

Source: apiextensions-apiserver `pkg/controller/{status,establish,finalizer,apiapproval}`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from steersman._util.tasks import end
from steersman.api import apiextensions as rules
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import ApiError, NotFound
from steersman.apimachinery.options import DeleteOptions
from steersman.apiserver.bootstrap import system_context
from steersman.apiserver.builtins import CRD_FINALIZER as FINALIZER
from steersman.apiserver.core import Core
from steersman.apiserver.crd.internal import InternalStrategy
from steersman.apiserver.crd.scopes import build_scopes
from steersman.apiserver.epoch import EpochEnded
from steersman.apiserver.scope import ResourceScope, View
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import Change, Entry, ResourceCache, custom_prefix
from steersman.store.interface import StoreError

log = logging.getLogger("steersman.apiserver.crd")
GROUP = "apiextensions.k8s.io"


@dataclass(slots=True)
class _Served:
    """What is served of one CRD. `spec` and `names` are encoded, to see whether they change."""

    uid: str
    spec: bytes
    names: bytes
    terminating: bool
    fresh_after: int
    scopes: list[ResourceScope]
    stored: ResourceScope
    cache: ResourceCache


_NO_REVISION = 1 << 63
_OTHERS_WRITE = 60.0
"""Seconds for which other servers may still store what they have been asked before they knew of a definition's form."""


class CrdController:
    """Keeps the catalog in step with the stored CRDs, at once, and their status, from a queue."""

    def __init__(self, core: Core) -> None:
        self.core = core
        scope = core.catalog.look_up(GROUP, "v1", "customresourcedefinitions")
        assert scope is not None
        self.scope = scope
        self._internal = InternalStrategy(scope.strategy, scope.subresource_strategies.get("status"))
        self._served: dict[str, _Served] = {}
        self._briefs: dict[str, Object] = {}
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        for name, entry in self.scope.cache.entries.items():
            self._serve(name, entry)
            self._enqueue(name)
        self.scope.cache.watchers.append(self._notify)
        self._task = asyncio.create_task(self._work(), name="crd-controller")

    async def stop(self) -> None:
        if self._task is not None:
            await end([self._task])

    def _notify(self, change: Change) -> None:
        name = change.last.key
        if change.new is None:
            self._briefs.pop(name, None)
            self._withdraw(name)
            self._enqueue_group(name)
        else:
            self._serve(name, change.new)
            self._enqueue(name)

    def _enqueue(self, name: str) -> None:
        if name not in self._queued:
            self._queued.add(name)
            self._queue.put_nowait(name)

    def _enqueue_group(self, name: str) -> None:
        """Names that became free may be what another CRD of the group waits for."""
        for other in self._others(name):
            if not rules.is_condition_true(other, "NamesAccepted"):
                self._enqueue(other["metadata"]["name"])

    def _others(self, name: str) -> list[Object]:
        """The other CRDs of the group, each with no more than its name, its group and its status."""
        group = name.partition(".")[2]
        return [brief for key, brief in self._briefs.items() if key != name and key.partition(".")[2] == group]

    def _serve(self, name: str, entry: Entry) -> None:
        try:
            self._serve_crd(name, entry)
        except Exception:
            # The store's callback must go on; what was served of this CRD before stays.
            log.exception("a CRD cannot be served", extra={"crd": name})

    def _serve_crd(self, name: str, entry: Entry) -> None:
        crd = self.scope.view.tree(entry)
        self._briefs[name] = _brief(crd)
        served = self._served.get(name)
        if served is not None and served.uid != crd["metadata"]["uid"]:
            self._withdraw(name)
            served = None
        if not rules.is_condition_true(crd, "Established"):
            return
        spec, names = codec.encode(crd["spec"]), codec.encode(crd["status"]["acceptedNames"])
        terminating = rules.is_condition_true(crd, "Terminating")
        if served is not None and (served.spec, served.names, served.terminating) == (spec, names, terminating):
            return
        cache = self.core.cache.resource(
            custom_prefix(crd["spec"]["group"], crd["status"]["acceptedNames"]["plural"]), entry.create_revision
        )
        unchanged = served is not None and served.spec == spec
        fresh_after = served.fresh_after if served is not None and unchanged else entry.revision
        others_write = self.core.settle is not None and not (served is None and self._task is not None)
        if others_write:
            fresh_after = _NO_REVISION
        scopes, stored = build_scopes(crd, cache, fresh_after, self.core.webhooks, terminating=terminating)
        if served is not None:
            _succeed(served, scopes, stored, unchanged=unchanged)
        if others_write:
            views = [scope.view for scope in (*scopes, stored)]
            asyncio.get_running_loop().call_later(_OTHERS_WRITE, self._trust, views)
        self.core.catalog.replace(served.scopes if served else (), scopes)
        if served is not None and not unchanged:
            self._end_watches(served)
        uid = crd["metadata"]["uid"]
        self._served[name] = _Served(uid, spec, names, terminating, fresh_after, scopes, stored, cache)

    def _trust(self, views: list[View]) -> None:
        """Other servers, too, write in the new form by now."""
        for view in views:
            if view.fresh_after is not None:
                view.fresh_after = self.core.cache.revision

    def _end_watches(self, served: _Served) -> None:
        for scope in served.scopes:
            self.core.hub.end_scope(scope)

    def _withdraw(self, name: str) -> None:
        served = self._served.pop(name, None)
        if served is None:
            return
        _close(served)
        self.core.catalog.replace(served.scopes, ())
        self.core.hub.end_cache(served.cache)
        if not served.cache.entries:
            self.core.cache.drop(served.cache.prefix)

    async def _work(self) -> None:
        while True:
            name = await self._queue.get()
            self._queued.discard(name)
            try:
                await self._reconcile(name)
            except EpochEnded:
                self._enqueue(name)
            except (ApiError, StoreError) as error:
                log.warning("a CRD could not be brought up to date", extra={"crd": name, "error": str(error)})
            except Exception:
                log.exception("a CRD could not be brought up to date", extra={"crd": name})

    async def _reconcile(self, name: str) -> None:
        entry = self.scope.cache.get(name)
        if entry is None:
            return
        crd = self.scope.view.tree(entry)
        if "deletionTimestamp" in crd["metadata"]:
            await self._finalize(name, crd)
            return
        changed = self._with_status(name, crd)
        if changed["status"] != crd.get("status"):
            await self._write(name, changed)
            self._enqueue_group(name)

    def _with_status(self, name: str, crd: Object) -> Object:
        """The CRD with the names that it gets, and every condition that follows from its spec."""
        now = self.core.now()
        naming = rules.accept_names(crd, self._others(name))
        changed = {**crd, "status": {**(crd.get("status") or {}), "acceptedNames": naming.accepted_names}}
        rules.set_condition(changed, naming.names_accepted, now)
        rules.set_condition(changed, naming.established, now)
        for condition in (rules.establish(changed), rules.approval_condition(crd)):
            if condition is not None:
                rules.set_condition(changed, condition, now)
        violation = rules.non_structural_violations(crd)
        if violation is not None:
            rules.set_condition(changed, violation, now)
        elif rules.find_condition(crd, "NonStructuralSchema") is not None:
            rules.remove_condition(changed, "NonStructuralSchema")
        return changed

    async def _finalize(self, name: str, crd: Object) -> None:
        """Delete all instances; the CRD's finalizer goes with the last of them."""
        if FINALIZER not in (crd["metadata"].get("finalizers") or ()):
            return
        served = self._served.get(name)
        if served is not None:
            crd = self._terminating(crd, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
            await self._write(name, crd)
            await _last_write(served)
            served = self._served.get(name, served)
            await self._delete_instances(served)
            if served.cache.entries:
                self._wait_for_last(name, served.cache)
                return
        if served is None:
            reason, message = "NeverEstablished", "resource was never established"
        else:
            reason, message = "InstanceDeletionCompleted", "removed all instances"
        entry = self.scope.cache.get(name)
        if entry is None:
            return
        crd = self._terminating(self.scope.view.tree(entry), "False", reason, message)
        left = [item for item in crd["metadata"].get("finalizers") or () if item != FINALIZER]
        await self._write(name, {**crd, "metadata": {**crd["metadata"], "finalizers": left}})

    def _terminating(self, crd: Object, status: str, reason: str, message: str) -> Object:
        changed = {**crd, "status": dict(crd.get("status") or {})}
        condition = {"type": "Terminating", "status": status, "reason": reason, "message": message}
        rules.set_condition(changed, condition, self.core.now())
        return changed

    async def _delete_instances(self, served: _Served) -> None:
        scope = served.stored
        for key in list(served.cache.keys):
            namespace, _, name = key.rpartition("/")
            try:
                await self.core.registry.delete(scope, namespace, name, DeleteOptions(), system_context(self.core))
            except NotFound:
                continue

    def _wait_for_last(self, name: str, cache: ResourceCache) -> None:
        """Come back when the resource is empty: finalizers hold some objects for now."""

        def notify(change: Change) -> None:
            if not cache.entries:
                cache.watchers.remove(notify)
                self._enqueue(name)

        cache.watchers.append(notify)

    async def _write(self, name: str, crd: Object) -> None:
        meta = crd["metadata"]

        def change(old: Object | None) -> Object:
            return {**crd, "metadata": dict(meta)}

        try:
            context = system_context(self.core, "status")
            await self.core.registry.update(self.scope, self._internal, "", name, change, context)
        except NotFound:
            return
        except ApiError as error:
            if error.code != 409:
                raise
            self._enqueue(name)


def _close(served: _Served) -> None:
    assert served.stored.epoch is not None
    served.stored.epoch.close()


async def _last_write(served: _Served) -> None:
    """Wait for the writes that were begun before the definition began to go."""
    epoch, quiet = served.stored.epoch, asyncio.get_running_loop().create_future()
    assert epoch is not None
    epoch.when_quiet(quiet.set_result)
    await quiet


def _succeed(served: _Served, scopes: Sequence[ResourceScope], stored: ResourceScope, *, unchanged: bool) -> None:
    """Put scopes in the place of others, whose last writes may still be on their way to the store in the old form."""
    _close(served)
    epoch = served.stored.epoch
    assert epoch is not None
    views = {scope.view: scope.view.fresh_after for scope in (*scopes, stored)}
    if unchanged:
        return
    for view in views:
        view.fresh_after = None

    def quiet(last: int) -> None:
        for view, after in views.items():
            view.fresh_after = None if after is None else max(after, last)

    epoch.when_quiet(quiet)


def _brief(crd: Object) -> Object:
    return {
        "metadata": {"name": crd["metadata"]["name"]},
        "spec": {"group": crd["spec"]["group"]},
        "status": crd.get("status") or {},
    }
