"""The catalog: which resources are served now, in which versions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from steersman.apimachinery.gvk import GroupVersionResource
from steersman.apiserver.scope import ResourceScope

_T = TypeVar("_T")


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sort key of versions as Kubernetes prefers them: v2, v1, v1beta2, v1alpha1, then others by name."""
    number, _, rest = version[1:].partition("alpha") if "alpha" in version else version[1:].partition("beta")
    level = 1 if "alpha" in version else 2 if "beta" in version else 3
    if version.startswith("v") and number.isdigit() and (level == 3 or not rest or rest.isdigit()):
        return (-level, -int(number), -int(rest or 0), version)
    return (0, 0, 0, version)


Key = tuple[str, str, str]


class Listed(Protocol):
    """What discovery says of a resource: of a scope, or of one that is only offered."""

    @property
    def gvr(self) -> GroupVersionResource: ...
    @property
    def kind(self) -> str: ...
    @property
    def singular(self) -> str: ...
    @property
    def namespaced(self) -> bool: ...
    @property
    def custom(self) -> bool: ...
    @property
    def verbs(self) -> Collection[str]: ...
    @property
    def short_names(self) -> Sequence[str]: ...
    @property
    def categories(self) -> Sequence[str]: ...
    @property
    def storage_version_hash(self) -> str: ...
    @property
    def subresources(self) -> Mapping[str, Mapping[str, Any]]: ...


class Offer(Listed, Protocol):
    """A resource that is served once it is asked for."""

    def __call__(self) -> ResourceScope: ...


class Catalog:
    """Scopes by group, version and resource. `generation` grows with every change; listeners are told of it.

    Built-in resources are offered: their scopes are made when they are first asked for.
    """

    def __init__(self) -> None:
        self._scopes: dict[Key, ResourceScope] = {}
        self._offers: dict[Key, Offer] = {}
        self._builtin: set[str] = set()
        self.generation = 0
        self.listeners: list[Callable[[], None]] = []
        self.priorities: dict[str, int] = {}
        self._remembered: dict[Hashable, Any] = {}

    def offer(self, offers: Mapping[Key, Offer]) -> None:
        """Serve built-in resources from now on."""
        self._remembered.clear()
        self._offers.update(offers)
        self._builtin.update(key[0] for key in offers)
        self.priorities = {group: place for place, group in enumerate(dict.fromkeys(key[0] for key in offers))}

    def look_up(self, group: str, version: str, resource: str) -> ResourceScope | None:
        key = (group, version, resource)
        return self._scopes.get(key) or self._made(key)

    def _made(self, key: Key) -> ResourceScope | None:
        make = self._offers.pop(key, None)
        if make is None:
            return None
        scope = self._scopes[key] = make()
        return scope

    def replace(self, gone: Iterable[ResourceScope], new: Iterable[ResourceScope]) -> None:
        """Take scopes out and put others in, as one change."""
        for scope in gone:
            self._scopes.pop((scope.gvr.group, scope.gvr.version, scope.gvr.resource), None)
        for scope in new:
            self._scopes[scope.gvr.group, scope.gvr.version, scope.gvr.resource] = scope
        self.generation += 1
        self._remembered.clear()
        for listener in tuple(self.listeners):
            listener()

    def remembered(self, name: Hashable, make: Callable[[], _T]) -> _T:
        """What `make` has made of what is served, and called `name`; it is made anew after each change."""
        if name not in self._remembered:
            self._remembered[name] = make()
        found: _T = self._remembered[name]
        return found

    def made(self) -> list[ResourceScope]:
        """The scopes of what has been asked for so far: only these resources are in memory."""
        return list(self._scopes.values())

    def named(self, resource: str) -> list[ResourceScope]:
        """The scopes of all resources of a name, whatever their group and version."""
        for key in [key for key in self._offers if key[2] == resource]:
            self._made(key)
        return [scope for key, scope in self._scopes.items() if key[2] == resource]

    def scopes(self) -> list[ResourceScope]:
        """All scopes; those that were only offered are made."""
        for key in list(self._offers):
            self._made(key)
        return list(self._scopes.values())

    def is_builtin(self, group: str) -> bool:
        """Whether a group is the server's own: what it lacks is told as a Status."""
        return group in self._builtin

    def groups(self) -> dict[str, list[str]]:
        """Served groups in order of precedence, each with its versions, preferred first."""
        found: dict[str, set[str]] = {}
        for group, version, _ in (*self._scopes, *self._offers):
            found.setdefault(group, set()).add(version)
        order = sorted(found, key=lambda group: (self.priorities.get(group, len(self.priorities)), group))
        return {group: sorted(found[group], key=version_priority) for group in order}

    def in_version(self, group: str, version: str) -> list[ResourceScope]:
        """The scopes of one group and version, by resource name."""
        for key in [key for key in self._offers if key[:2] == (group, version)]:
            self._made(key)
        found = [scope for key, scope in self._scopes.items() if key[:2] == (group, version)]
        return sorted(found, key=lambda scope: scope.resource)

    def listed(self, group: str, version: str) -> list[Listed]:
        """What there is in one group and version, by resource name; no scope is made for that."""
        found: list[Listed] = [scope for key, scope in self._scopes.items() if key[:2] == (group, version)]
        found += [offer for key, offer in self._offers.items() if key[:2] == (group, version)]
        return sorted(found, key=lambda each: each.gvr.resource)
