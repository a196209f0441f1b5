"""Aggregated ClusterRoles follow the ClusterRoles that they select.

Source: kubernetes `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`.
"""

from __future__ import annotations

from urllib.parse import quote

from steersman.apimachinery.errors import NotFound
from steersman.apimachinery.selectors import SelectorError
from steersman.apiserver.authz.aggregation import aggregate
from steersman.apiserver.core import Core
from steersman.apiserver.watchcache import Change
from steersman.client.client import Client
from steersman.controlplane.queue import WorkQueue

GROUP = "rbac.authorization.k8s.io"
APPLY = "application/apply-patch+yaml"
_CONCERNING = (b'"labels"', b'"aggregationRule"')


class RoleAggregation:
    """Applies the rules of each aggregated ClusterRole, as manager `clusterrole-aggregation-controller`."""

    name = "clusterrole-aggregation-controller"

    def __init__(self, client: Client, core: Core) -> None:
        scope = core.catalog.look_up(GROUP, "v1", "clusterroles")
        assert scope is not None
        self._client = client
        self._cache = scope.cache
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync, workers=1)

    async def run(self) -> None:
        """Works until it is cancelled."""
        self._cache.watchers.append(self._on_change)
        self._queue.add("")
        try:
            await self._queue.run()
        finally:
            self._cache.watchers.remove(self._on_change)

    def _on_change(self, change: Change) -> None:
        """A role without labels, and without an aggregationRule, concerns no other."""
        if any(word in entry.stored for entry in (change.old, change.new) if entry for word in _CONCERNING):
            self._queue.add("")

    async def _sync(self, _: str) -> None:
        roles = [entry.decode() for entry in self._cache.entries.values()]
        for role in roles:
            try:
                rules = aggregate(role, roles)
            except SelectorError:
                continue
            if rules is None:
                continue
            name = role["metadata"]["name"]
            body = {"kind": "ClusterRole", "apiVersion": f"{GROUP}/v1", "metadata": {"name": name}, "rules": rules}
            try:
                await self._client.rest.json(
                    "PATCH",
                    f"/apis/{GROUP}/v1/clusterroles/{quote(name, safe='')}",
                    [("fieldManager", self.name), ("force", "true")],
                    body,
                    content_type=APPLY,
                )
            except NotFound:
                continue
