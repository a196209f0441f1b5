"""RBAC follows the stored roles and bindings."""

from __future__ import annotations

from steersman.apiserver.authz.rbac import GROUP, RbacAuthorizer
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.watchcache import Change

_RESOURCES = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")


def feed_rbac(catalog: Catalog) -> RbacAuthorizer:
    """An authorizer over what the catalog's RBAC resources hold, now and from now on."""
    authorizer = RbacAuthorizer()
    for resource in _RESOURCES:
        scope = catalog.look_up(GROUP, "v1", resource)
        assert scope is not None
        _follow(scope, authorizer)
    return authorizer


def _follow(scope: ResourceScope, authorizer: RbacAuthorizer) -> None:
    for entry in scope.cache.entries.values():
        authorizer.upsert(scope.kind, entry.decode())

    def notify(change: Change) -> None:
        if change.new is not None:
            authorizer.upsert(scope.kind, change.new.decode())
        else:
            namespace, _, name = change.last.key.rpartition("/")
            authorizer.remove(scope.kind, namespace, name)

    scope.cache.watchers.append(notify)
