"""The graph of owners and dependents, kept from the watch caches.

Only objects with ownerReferences, and those whose deletion waits for their dependents, are in it; what every other
write costs is a search for a word in its encoded form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import orjson

from steersman.api.kinds import builtin_kind
from steersman.apiserver.core import Core
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.watchcache import Change, Entry, ResourceCache

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_OWNED, _DELETED = b'"ownerReferences"', b'"deletionTimestamp"'
_HELD = (b'"foregroundDeletion"', b'"orphan"')


class Place(NamedTuple):
    """Where an object is: its resource's cache, and its key there."""

    cache: ResourceCache
    key: str

    @property
    def entry(self) -> Entry | None:
        return self.cache.get(self.key)

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]


def metadata(entry: Entry) -> dict[str, Any]:
    """The metadata of a stored object."""
    found: dict[str, Any] = orjson.loads(entry.stored)["metadata"]
    return found


class OwnerGraph:
    """Who depends on whom, by uid. `changed` is told of each place that may need work."""

    def __init__(self, core: Core, changed: Callable[[Place], None]) -> None:
        self._core = core
        self._changed = changed
        self._owners: dict[Place, dict[str, bool]] = {}
        self._dependents: dict[str, dict[Place, None]] = {}
        self._holding: dict[str, Place] = {}
        self._followed: dict[ResourceCache, Callable[[Change], None]] = {}
        self._scopes: tuple[tuple[int, int], dict[Any, ResourceScope]] = ((-1, 0), {})

    def start(self) -> None:
        """Take in what is stored, and follow all resources, those to come too."""
        cache = self._core.cache
        if not cache.complete:
            self._core.catalog.scopes()
        cache.followers.append(self._follow)
        for resource in cache.caches.values():
            self._follow(resource)

    def stop(self) -> None:
        self._core.cache.followers.remove(self._follow)
        for cache, notify in self._followed.items():
            cache.watchers.remove(notify)
        self._followed.clear()

    def dependents(self, uid: str) -> list[Place]:
        return list(self._dependents.get(uid, ()))

    def blocking(self, uid: str) -> bool:
        """Whether a dependent has blockOwnerDeletion on this owner."""
        return any(self._owners[place].get(uid) for place in self._dependents.get(uid, ()))

    def holds(self, uid: str) -> bool:
        """Whether the object of this uid is being deleted and waits for its dependents."""
        return uid in self._holding

    def scope_of_kind(self, api_version: str, kind: str) -> ResourceScope | None:
        group, _, version = api_version.rpartition("/")
        try:
            plural = builtin_kind(group, version, kind).plural
        except KeyError:
            return self._made().get((group, version, kind))
        return self._core.catalog.look_up(group, version, plural)

    def scope_of(self, place: Place) -> ResourceScope | None:
        """A served version of the object's resource."""
        return self._made().get(place.cache)

    def _made(self) -> dict[Any, ResourceScope]:
        """Scopes by kind and by cache: what is in a cache has been asked for."""
        made = self._core.catalog.made()
        state, found = self._scopes
        if state != (self._core.catalog.generation, len(made)):
            found = {}
            for scope in made:
                found[scope.group, scope.gvr.version, scope.kind] = scope
                if scope.cache not in found or scope.view.is_stored:
                    found[scope.cache] = scope
            self._scopes = ((self._core.catalog.generation, len(made)), found)
        return found

    def _follow(self, cache: ResourceCache) -> None:
        def notify(change: Change) -> None:
            self._on_change(cache, change)

        self._followed[cache] = notify
        cache.watchers.append(notify)
        for entry in cache.entries.values():
            self._on_write(Place(cache, entry.key), entry)

    def _on_change(self, cache: ResourceCache, change: Change) -> None:
        if change.new is not None:
            self._on_write(Place(cache, change.new.key), change.new)
        else:
            self._on_removal(Place(cache, change.last.key), change.last)

    def _on_write(self, place: Place, entry: Entry) -> None:
        stored = entry.stored
        owned = _OWNED in stored
        held = _DELETED in stored and any(word in stored for word in _HELD)
        if not owned and not held and place not in self._owners:
            return
        meta = metadata(entry)
        if owned or place in self._owners:
            self._set_owners(place, meta.get("ownerReferences") or ())
        if held and "deletionTimestamp" in meta and {FOREGROUND, ORPHAN} & set(meta.get("finalizers") or ()):
            self._holding[meta["uid"]] = place
            self._changed(place)

    def _set_owners(self, place: Place, references: Iterable[dict[str, Any]]) -> None:
        new = {ref["uid"]: bool(ref.get("blockOwnerDeletion")) for ref in references}
        old = self._owners.get(place)
        if new == old:
            return
        for uid in (old or {}).keys() - new.keys():
            self._forget(place, uid)
        for uid in new:
            self._dependents.setdefault(uid, {})[place] = None
        if new:
            self._owners[place] = new
            self._changed(place)
        else:
            self._owners.pop(place, None)
        for uid in old or ():
            self._release(uid)

    def _on_removal(self, place: Place, last: Entry) -> None:
        owners = self._owners.pop(place, None) or {}
        for uid in owners:
            self._forget(place, uid)
            self._release(uid)
        if not self._dependents and not self._holding:
            return
        uid = metadata(last)["uid"]
        self._holding.pop(uid, None)
        for dependent in self._dependents.get(uid, ()):
            self._changed(dependent)

    def _forget(self, place: Place, uid: str) -> None:
        places = self._dependents.get(uid)
        if places is not None:
            places.pop(place, None)
            if not places:
                del self._dependents[uid]

    def _release(self, uid: str) -> None:
        holder = self._holding.get(uid)
        if holder is not None:
            self._changed(holder)
