"""The status of ValidatingAdmissionPolicies says where their expressions do not fit the types that they match.

Source: kubernetes `pkg/controller/validatingadmissionpolicystatus/controller.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from steersman.api import kinds
from steersman.apimachinery.errors import NotFound
from steersman.apimachinery.gvk import GroupVersionKind, split_api_version
from steersman.apiserver.admission.policies.params import scope_of_kind
from steersman.apiserver.aside import patiently
from steersman.apiserver.core import Core
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.watchcache import Change
from steersman.client.client import Client
from steersman.controlplane.queue import WorkQueue

if TYPE_CHECKING:
    from steersman.apimachinery.schema.cel.schema_types import Decl

GROUP = "admissionregistration.k8s.io"
APPLY = "application/apply-patch+yaml"
MANAGER = "validatingadmissionpolicy-status"


class PolicyStatus:
    """Checks each policy once for each of its generations."""

    name = "validatingadmissionpolicy-status-controller"

    def __init__(self, client: Client, core: Core) -> None:
        found = kinds.builtin_kind(GROUP, "v1", "ValidatingAdmissionPolicy")
        self._client = client
        self._catalog = core.catalog
        self._cache = core.cache.resource(f"/registry/{found.storage_prefix}/".encode())
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync, workers=1)

    async def run(self) -> None:
        """Works until it is cancelled."""
        self._cache.watchers.append(self._on_change)
        for key in self._cache.entries:
            self._queue.add(key)
        try:
            await self._queue.run()
        finally:
            self._cache.watchers.remove(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.new is not None:
            self._queue.add(change.new.key)

    async def _sync(self, key: str) -> None:
        entry = self._cache.get(key)
        if entry is None:
            return
        policy = entry.decode()
        generation = policy["metadata"].get("generation") or 0
        if generation <= ((policy.get("status") or {}).get("observedGeneration") or 0):
            return
        warnings = await self._warnings(policy["spec"])
        checked = {"expressionWarnings": warnings} if warnings else {}
        body = {
            "kind": "ValidatingAdmissionPolicy",
            "apiVersion": f"{GROUP}/v1",
            "metadata": {"name": key},
            "status": {"observedGeneration": generation, "typeChecking": checked},
        }
        path = f"/apis/{GROUP}/v1/validatingadmissionpolicies/{quote(key, safe='')}/status"
        query = [("fieldManager", MANAGER), ("force", "true")]
        try:
            await self._client.rest.json("PATCH", path, query, body, content_type=APPLY)
        except NotFound:
            return

    async def _warnings(self, spec: dict[str, Any]) -> list[dict[str, str]]:
        # Loaded with the first policy: most servers have none.
        from steersman.api.admissionregistration.type_checking import Typed, expression_warnings, types_to_check

        found: dict[GroupVersionKind, ResourceScope] = {}

        def resolve(group: str, version: str, resource: str) -> list[GroupVersionKind]:
            scopes = self._served(group, version, resource.lower())
            found.update((scope.gvk, scope) for scope in scopes)
            return [scope.gvk for scope in scopes]

        typed = [Typed(kind, _declaration(found[kind])) for kind in types_to_check(spec, resolve)]
        if not typed:
            return []
        return await patiently(expression_warnings, spec, typed, self._parameters(spec.get("paramKind")))

    def _served(self, group: str, version: str, name: str) -> list[ResourceScope]:
        """The resources of a name, plural or singular."""
        if group:
            scopes = self._catalog.in_version(group, version)
        else:
            scopes = [scope for scope in self._catalog.scopes() if scope.gvr.version == version]
        return [scope for scope in scopes if scope.stored and name in (scope.resource, scope.singular)]

    def _parameters(self, kind: dict[str, str] | None) -> Decl | None:
        if kind is None:
            return None
        group, version = split_api_version(kind.get("apiVersion") or "")
        scope = scope_of_kind(self._catalog, GroupVersionKind(group, version, kind.get("kind") or ""))
        return None if scope is None else _declaration(scope)


def _declaration(scope: ResourceScope) -> Decl | None:
    """What expressions see of a kind, as it is published."""
    from steersman.api.admissionregistration.type_checking import kind_declaration
    from steersman.apimachinery.openapi.crd_schemas import kind_schema

    if scope.custom:
        schema = kind_schema(scope.openapi_schema, scope.group, scope.gvr.version, scope.kind)
    else:
        schema = kinds.schemas()[kinds.schema_name(kinds.builtin_kind(*scope.gvk))]
    return kind_declaration(schema, kinds.schemas(), scope.kind)
