"""Writes that are decided on before it is known whether other servers have written meanwhile.

Where several servers share a store, a request is decided on what includes all that was acknowledged before it: for that
the store is asked how far it is. A write of a custom resource need not wait for the answer: its transaction itself
checks that the definition and the namespace are still what they were, and that nobody has been given a say in the
meantime. What does not hold any more, fails, or writes nothing is done again, on what is known to be current.

Source: apiserver `pkg/storage/etcd3/store.go` (GuaranteedUpdate), which begins with what a cache has, too.
"""

from __future__ import annotations

from steersman._util.dataclass import dataclass
from steersman.apiserver.admission import Admission
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.exchange import Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.watchcache import Change, ResourceCache, WatchCache
from steersman.store.interface import Premises

_VERBS = frozenset({"create", "update", "patch", "delete"})
_SPANS = (
    (b"/registry/mutating", b"/registry/mutatinh"),
    (b"/registry/resourcequotas/", b"/registry/resourcequotas0"),
    (b"/registry/validating", b"/registry/validatinh"),
)
"""Who has a say about others' writes: webhooks, policies and their bindings, quotas."""
_MOST_MADE = 1024


@dataclass(eq=False, slots=True)
class Resting:
    """A write that rests on `premises`; `held` says that it was carried out."""

    premises: Premises
    held: bool = False


class PremiseBook:
    """Knows what a request's write rests on, as long as that stays as it is."""

    def __init__(self, cache: WatchCache, catalog: Catalog, admission: Admission) -> None:
        self._cache = cache
        self._catalog = catalog
        self._admission = admission
        self._definitions = self._builtin("apiextensions.k8s.io", "customresourcedefinitions")
        self._namespaces = self._builtin("", "namespaces")
        self._made: dict[tuple[tuple[bytes, int], ...], Premises] = {}
        for found in cache.caches.values():
            if any(start <= found.prefix < end for start, end in _SPANS):
                found.watchers.append(self._forget)

    def rest(self, x: Exchange) -> Resting | None:
        """What a request's write may rest on; None if it must be decided on what is known to be current."""
        info = x.info
        if info.verb not in _VERBS or info.subresource not in ("", "status") or "dryRun" in info.query:
            return None
        scope = self._catalog.look_up(info.group, info.version, info.resource)
        if scope is None or not scope.custom or scope.view.remote or self._admission.mutates:
            return None
        if self._admission.judges_of(scope):
            return None
        keys = self._keys(scope, info.namespace)
        if keys is None:
            return None
        made = self._made.get(keys)
        if made is None:
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            made = self._made[keys] = Premises(keys, _SPANS, self._cache.revision)
        return Resting(made)

    def _keys(self, scope: ResourceScope, namespace: str) -> tuple[tuple[bytes, int], ...] | None:
        wanted = [(self._definitions, f"{scope.resource}.{scope.group}")]
        if namespace:
            wanted.append((self._namespaces, namespace))
        found = []
        for cache, name in wanted:
            entry = cache.entries.get(name)
            if entry is None:
                return None
            found.append((cache.prefix + name.encode(), entry.revision))
        return tuple(found)

    def _forget(self, change: Change) -> None:
        self._made.clear()

    def _builtin(self, group: str, resource: str) -> ResourceCache:
        scope = self._catalog.look_up(group, "v1", resource)
        assert scope is not None
        return scope.cache
