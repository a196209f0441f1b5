"""All informers of a manager, each kind watched once, and reads from them.

Source: controller-runtime `pkg/cache/{cache,informer_cache}.go`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from steersman._util.tasks import end
from steersman.apimachinery.errors import ApiError
from steersman.client.client import Client
from steersman.client.errors import ClientError
from steersman.client.resources import Kind, Object, Resource
from steersman.client.watch_memory import Key
from steersman.runtime.cache.indexer import IndexFunc, Transform
from steersman.runtime.cache.informer import RESYNC_PERIOD, Informer, Listener, Selection
from steersman.runtime.cache.selection import predicate

T = TypeVar("T")

SYNC_TIMEOUT = 120.0
"""Seconds within which informers must know all objects at the start (controller-runtime's CacheSyncTimeout)."""


class CacheSyncError(Exception):
    """Not all objects could be read in time; says which, and why."""


@dataclass(frozen=True, slots=True)
class CacheScope:
    """What is watched of a kind.

    `namespaces` are watched each by itself (None: all at once, which needs the permission for it; a kind without
    namespaces is watched as a whole in any case); the selectors are the server's, so that it sends only what they
    select. `transform` says what is kept of an object. What is kept is what reads give: where the client puts an object
    together to write it (`modify`, `create_or_update`), it asks the server for the whole. `resync` is the seconds
    between two looks at all objects, 10 % more or less; None for never.

    Raises ValueError for what would watch nothing, or look all the time.
    """

    namespaces: Sequence[str] | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    transform: Transform | None = None
    resync: float | None = RESYNC_PERIOD

    def __post_init__(self) -> None:
        if isinstance(self.namespaces, str):
            raise ValueError(f"namespaces must be a list of names: [{self.namespaces!r}]")
        if self.namespaces is not None and not self.namespaces:
            raise ValueError("namespaces must name at least one, or be None for all")
        if self.resync is not None and not self.resync > 0:
            raise ValueError(f"resync must be None, or seconds greater than zero, not {self.resync}")


def strip_managed_fields(obj: Object) -> Object:
    """A transform that drops `metadata.managedFields`, often half of an object."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return obj


class KindCache:
    """The informers of one kind: one, or one for each namespace."""

    def __init__(self, client: Client, resource: Resource, scope: CacheScope, *, metadata_only: bool) -> None:
        self.resource = resource
        self._informers = {
            namespace: Informer(
                client,
                resource,
                Selection(namespace, scope.label_selector, scope.field_selector),
                metadata_only=metadata_only,
                transform=scope.transform,
                resync=scope.resync,
            )
            for namespace in (scope.namespaces if scope.namespaces is not None else [None])
        }
        self.metadata_only = metadata_only
        self._transform = scope.transform
        self.tasks: dict[Informer, asyncio.Task[None]] = {}

    @property
    def informers(self) -> list[Informer]:
        return list(self._informers.values())

    @property
    def is_reduced(self) -> bool:
        """Whether objects are kept without something that writing them back would take away."""
        return self._transform not in (None, strip_managed_fields)

    @property
    def is_narrowed(self) -> bool:
        """Whether an object may exist in a namespace that is covered, and not be known here."""
        return any(informer.selection.is_narrowed for informer in self._informers.values())

    def informer(self, namespace: str | None) -> Informer | None:
        """The one that knows all objects of a namespace (None: of all namespaces), if there is one."""
        return self._informers.get(None) or (self._informers.get(namespace) if namespace is not None else None)

    def watch_everywhere(self) -> None:
        """Watch without regard to namespaces, for the kind has none; to be called before the start."""
        first = self.informers[0]
        first.selection = replace(first.selection, namespace=None)
        self._informers = {None: first}

    def watch_whole(self) -> None:
        """Watch whole objects after all; to be called before the start."""
        self.metadata_only = False
        for informer in self._informers.values():
            informer.metadata_only = False

    def listen(self, listener: Listener) -> None:
        for informer in self._informers.values():
            informer.listen(listener)

    def add_index(self, name: str, func: IndexFunc) -> None:
        """See `Indexer.add_index`."""
        for informer in self._informers.values():
            informer.indexer.add_index(name, func)

    def get(self, key: Key) -> Object | None:
        """The object, as the caller's own; None if it is not known."""
        informer = self.informer(key[0])
        known = informer.indexer.get(key) if informer is not None else None
        return None if known is None else known.raw

    def select(
        self, namespace: str | None = None, label_selector: str | None = None, field_selector: str | None = None
    ) -> list[Object]:
        """The objects that match, in the order of their keys, as the caller's own."""
        matches = predicate(label_selector, field_selector)
        found = [raw for key in self._keys(namespace) if (raw := self.get(key)) is not None]
        return found if matches is None else [raw for raw in found if matches(raw)]

    def by_index(self, name: str, value: str) -> list[Object]:
        """The objects with a value in an index. Raises LookupError for an unknown index."""
        keys = [key for informer in self.informers for key in informer.indexer.by_index(name, value)]
        return [raw for key in sorted(keys) if (raw := self.get(key)) is not None]

    def _keys(self, namespace: str | None) -> list[Key]:
        return sorted(key for informer in self.informers for key in informer.indexer.keys_in(namespace))


class Cache:
    """Informers by kind. One that is asked for after the start begins at once."""

    def __init__(
        self, client: Client, default: CacheScope | None = None, by_kind: Mapping[Resource, CacheScope] | None = None
    ) -> None:
        self._client = client
        self._default = default or CacheScope()
        self._scopes = {identity(resource): scope for resource, scope in (by_kind or {}).items()}
        self._kinds: dict[tuple[str, str], KindCache] = {}
        self._started = False

    def kind(self, kind: Kind[Any], *, metadata_only: bool = False) -> KindCache:
        """The informers of a kind, made at the first call. Asked for whole and for metadata, it is watched whole."""
        resource = kind.api_kind()
        which = identity(resource)
        known = self._kinds.get(which)
        if known is None:
            scope = self._scopes.get(which, self._default)
            mapping = self._client.mapper.remembered(resource)
            if mapping is not None and not mapping.namespaced:
                scope = replace(scope, namespaces=None)
            known = self._kinds[which] = KindCache(self._client, resource, scope, metadata_only=metadata_only)
            if self._started:
                self._start(known)
        elif known.metadata_only and not metadata_only:
            if self._started:
                raise ValueError(f"{resource.kind} is watched for its metadata only; name it in full before the start")
            known.watch_whole()
        return known

    def peek(self, resource: Resource) -> KindCache | None:
        """The informers of a kind if it is watched."""
        return self._kinds.get(identity(resource))

    @property
    def informers(self) -> list[Informer]:
        return [informer for kind in self._kinds.values() for informer in kind.informers]

    async def start(self) -> None:
        """Begin to watch."""
        for kind in self._kinds.values():
            if kind.informers[0].selection.namespace is not None:
                with contextlib.suppress(ApiError, ClientError):  # the informers will say so
                    if not (await self._client.mapper.mapping(kind.resource)).namespaced:
                        kind.watch_everywhere()
        self._started = True
        for kind in self._kinds.values():
            self._start(kind)

    async def wait_synced(self, timeout: float = SYNC_TIMEOUT) -> None:
        """Returns when all objects of all kinds are known. Raises CacheSyncError after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                for informer in self.informers:
                    await informer.wait_synced()
        except TimeoutError:
            missing = [informer for informer in self.informers if not informer.has_synced]
            why = "; ".join(f"{informer}: {informer.error or 'no answer'}" for informer in missing)
            raise CacheSyncError(f"not all objects could be read within {timeout:g} s: {why}") from None

    async def stop(self) -> None:
        """End all watches. What is known stays readable."""
        self._started = False
        await end([task for kind in self._kinds.values() for task in kind.tasks.values()])

    async def remove(self, kind: Kind[Any]) -> None:
        """Watch a kind no longer, and forget its objects: reads of it ask the server from now on."""
        known = self._kinds.pop(identity(kind.api_kind()), None)
        if known is not None:
            await end(known.tasks.values())

    @staticmethod
    def _start(kind: KindCache) -> None:
        for informer in kind.informers:
            if informer not in kind.tasks:
                kind.tasks[informer] = asyncio.create_task(informer.run(), name=f"informer {informer}")


def identity(resource: Resource) -> tuple[str, str]:
    """(apiVersion, kind): what tells kinds apart, whatever is known of their plural."""
    return resource.api_version, resource.kind
