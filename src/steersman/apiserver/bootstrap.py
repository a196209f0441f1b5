"""What must exist before the first request: the system's namespaces, and RBAC's default policy."""

from __future__ import annotations

import asyncio

from steersman.apimachinery.apply.managers import Writer
from steersman.apimachinery.errors import AlreadyExists
from steersman.apimachinery.options import DeleteOptions
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.aggregation import aggregate
from steersman.apiserver.authz.bootstrap import default_policy, reconcile
from steersman.apiserver.authz.rbac import GROUP
from steersman.apiserver.core import Core
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object
from steersman.apiserver.writing import WriteContext

SYSTEM_USER = UserInfo("system:apiserver", "", ("system:masters",))
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


async def bootstrap(core: Core, *, rbac: bool) -> None:
    """Create what is missing; what is there stays, but for default roles that lack something."""
    namespaces = _scope(core, "", "namespaces")
    await asyncio.gather(*(_create_namespace(core, namespaces, name) for name in NAMESPACES))
    if rbac:
        await asyncio.gather(*(_reconcile(core, expected) for expected in default_policy()))
        await aggregate_cluster_roles(core)


def system_context(core: Core, subresource: str = "") -> WriteContext:
    """A write by the server itself."""
    return WriteContext(
        SYSTEM_USER, Writer("kube-apiserver", "Update", subresource), core.now(), subresource=subresource
    )


def _scope(core: Core, group: str, resource: str) -> ResourceScope:
    scope = core.catalog.look_up(group, "v1", resource)
    assert scope is not None
    return scope


async def _create_namespace(core: Core, scope: ResourceScope, name: str) -> None:
    if scope.cache.get(name) is None:
        await create(core, scope, {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}})


async def create(core: Core, scope: ResourceScope, obj: Object) -> None:
    """Create an object in the server's own name; one that is there already is fine."""
    decoded, _ = scope.strategy.decode(obj)
    scope.strategy.default(decoded)
    namespace = decoded["metadata"].get("namespace", "")
    try:
        await core.registry.create(scope, namespace, decoded, system_context(core))
    except AlreadyExists:
        return


async def _reconcile(core: Core, expected: Object) -> None:
    scope = _scope(core, GROUP, f"{expected['kind'].lower()}s")
    meta = expected["metadata"]
    namespace, name = meta.get("namespace", ""), meta["name"]
    entry = scope.cache.get(scope.key(namespace, name))
    todo = reconcile(expected, entry.decode() if entry else None)
    if todo.object is None:
        return
    if todo.operation == "recreate":
        await core.registry.delete(scope, namespace, name, DeleteOptions(), system_context(core))
    if todo.operation in ("create", "recreate"):
        await create(core, scope, todo.object)
    else:
        await replace(core, scope, todo.object)


async def replace(core: Core, scope: ResourceScope, obj: Object) -> None:
    """Write an object over the stored one in the server's own name."""
    decoded, _ = scope.strategy.decode(obj)
    meta = decoded["metadata"]
    await core.registry.update(
        scope,
        scope.strategy,
        meta.get("namespace", ""),
        meta["name"],
        lambda old: {**decoded, "metadata": {**meta, "resourceVersion": ""}},
        system_context(core),
    )


async def aggregate_cluster_roles(core: Core) -> None:
    """Bring the rules of aggregated ClusterRoles up to date with the roles that they select."""
    scope = _scope(core, GROUP, "clusterroles")
    roles = [entry.decode() for entry in scope.cache.entries.values()]
    for role in roles:
        rules = aggregate(role, roles)
        if rules is not None:
            await replace(core, scope, {**role, "rules": rules})
