"""ResourceQuotas tell what they limit and what is used; admission lets nothing in beyond that.

Admission charges what is created; this controller counts anew when something is deleted, ends or costs less, when a
quota changes, and every five minutes.
Source: kubernetes `pkg/controller/resourcequota/{resource_quota_controller,resource_quota_monitor}.go`,
`pkg/quota/v1/install/update_filter.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from steersman._util import clock
from steersman.api.core import resource_lists as lists
from steersman.api.core.quota_check import count, total
from steersman.api.core.quota_usage import Evaluator, evaluator
from steersman.api.core.resource_lists import ResourceList
from steersman.apimachinery.errors import Conflict, NotFound
from steersman.apiserver.core import Core
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.watchcache import Change, ResourceCache
from steersman.client.client import Client
from steersman.controlplane.queue import WorkQueue

Object = dict[str, Any]
RESYNC = 300.0
_COUNT_AGAIN = 2.0
"""Seconds after which what was counted is counted once more, where several servers charge."""


class QuotaController:
    """Keeps the status of every ResourceQuota."""

    name = "resourcequota-controller"

    def __init__(self, client: Client, core: Core) -> None:
        scope = core.catalog.look_up("", "v1", "resourcequotas")
        assert scope is not None
        self._client = client
        self._core = core
        self._quotas = scope.cache
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._followed: dict[ResourceCache, Callable[[Change], None]] = {}
        self._evaluators: dict[ResourceCache, Evaluator | None] = {}

    async def run(self) -> None:
        """Works until it is cancelled."""
        core = self._core
        self._quotas.watchers.append(self._on_quota)
        core.cache.followers.append(self._follow)
        core.catalog.listeners.append(self._on_catalog)
        core.quota_charges.listeners.append(self._recount)
        for cache in tuple(core.cache.caches.values()):
            self._follow(cache)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._resync())
                await self._queue.run()
        finally:
            core.quota_charges.listeners.remove(self._recount)
            core.catalog.listeners.remove(self._on_catalog)
            core.cache.followers.remove(self._follow)
            self._quotas.watchers.remove(self._on_quota)
            for cache, notify in self._followed.items():
                cache.watchers.remove(notify)
            self._followed.clear()

    async def _resync(self) -> None:
        while True:
            self._add_all()
            await asyncio.sleep(RESYNC)

    def _add_all(self) -> None:
        for key in self._quotas.keys:
            self._queue.add(key)

    def _recount(self, namespace: str) -> None:
        for key in self._quotas.select(namespace):
            self._queue.add(key)

    def _on_quota(self, change: Change) -> None:
        """A quota's own status is admission's and this controller's work: only other changes count."""
        if change.new is None:
            return
        if change.old is None or change.old.decode().get("spec") != change.new.decode().get("spec"):
            self._queue.add(change.new.key)

    def _on_catalog(self) -> None:
        """What is served now may be counted now, and what was counted may be gone."""
        self._evaluators.clear()
        self._add_all()

    def _follow(self, cache: ResourceCache) -> None:
        def notify(change: Change) -> None:
            if self._quotas.entries and change.old is not None:
                self._on_change(cache, change)

        self._followed[cache] = notify
        cache.watchers.append(notify)

    def _on_change(self, cache: ResourceCache, change: Change) -> None:
        namespace = change.last.key.rpartition("/")[0]
        if not namespace or not self._quotas.select(namespace):
            return
        judge = self._evaluator(cache)
        if judge is None:
            return
        if change.new is not None:
            assert change.old is not None
            if _goes_at_once(change.new.decode()["metadata"]):
                return
            if judge.counts_only or not judge.frees(change.new.decode(), change.old.decode(), clock.utc_now()):
                return
        for key in self._quotas.select(namespace):
            quota = self._quotas.entries[key].decode()
            if judge.matching((quota.get("spec") or {}).get("hard") or ()):
                self._queue.add(key)

    def _evaluator(self, cache: ResourceCache) -> Evaluator | None:
        if cache not in self._evaluators:
            scope = next((each for each in self._core.catalog.made() if each.cache is cache), None)
            if scope is None:
                return None
            self._evaluators[cache] = evaluator(scope.group, scope.resource) if scope.namespaced else None
        return self._evaluators[cache]

    async def _sync(self, key: str) -> None:
        entry = self._quotas.get(key)
        if entry is None:
            return
        namespace, _, name = key.partition("/")
        if not self._core.quota_charges.settled(namespace):
            return
        quota = entry.decode()
        hard, status = (quota.get("spec") or {}).get("hard") or {}, quota.get("status") or {}
        used = {**lists.parsed(status.get("used")), **self._usage(quota, namespace)}
        used = lists.masked(used, hard)
        same = status.get("hard") == hard and "used" in status and lists.parsed(status["used"]) == used
        if same:
            return
        body = {**quota, "status": {"hard": hard, "used": lists.written(used)}}
        try:
            path = f"/api/v1/namespaces/{namespace}/resourcequotas/{quote(name, safe='')}/status"
            await self._client.rest.json("PUT", path, body=body)
            if self._core.settle is not None:
                # Another server may have charged for what it had not stored yet when this was counted.
                asyncio.get_running_loop().call_later(_COUNT_AGAIN, self._queue.add, key)
        except NotFound:
            return
        except Conflict:
            self._queue.add(key)

    def _usage(self, quota: Object, namespace: str) -> ResourceList:
        """What a namespace uses of all that the quota limits, of the resources that are served."""
        found: ResourceList = {}
        hard, now = (quota.get("spec") or {}).get("hard") or {}, clock.utc_now()
        for scope in self._counted(hard):
            judge = evaluator(scope.group, scope.resource)
            if judge is None or not judge.matching(hard):
                continue
            keys = scope.cache.select(namespace)
            if judge.counts_only:
                found |= count(quota, judge, len(keys))
            else:
                objects = (scope.view.tree(scope.cache.entries[key]) for key in keys)
                found = lists.added(found, total(quota, judge, objects, now))
        return found

    def _counted(self, hard: Object) -> list[ResourceScope]:
        """A scope for each namespaced resource that may have objects that the quota counts."""
        catalog = self._core.catalog
        core = [scope for scope in catalog.in_version("", "v1") if scope.stored and scope.namespaced]
        found = {scope.cache: scope for scope in core}
        for name in hard:
            if name.startswith("count/") and "." in name:
                resource, _, group = name.removeprefix("count/").partition(".")
                scopes = (each for each in catalog.named(resource) if each.group == group)
                found |= {scope.cache: scope for scope in scopes if scope.stored and scope.namespaced}
            elif name.endswith(".deviceclass.resource.k8s.io/devices"):
                found |= {scope.cache: scope for scope in catalog.named("resourceclaims") if scope.view.is_stored}
        return list(found.values())


class ChargeReturns(QuotaController):
    """Counts anew where a write that was charged for here has failed: of several servers, only this one knows."""

    name = "resourcequota-charges"

    async def run(self) -> None:
        """Works until it is cancelled."""
        listeners = self._core.quota_charges.listeners
        listeners.append(self._recount)
        try:
            await self._queue.run()
        finally:
            listeners.remove(self._recount)


def _goes_at_once(meta: Object) -> bool:
    """Whether an object was only marked to be removed with the next write."""
    return meta.get("deletionGracePeriodSeconds") == 0 and not meta.get("finalizers")
