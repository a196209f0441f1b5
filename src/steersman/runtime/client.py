"""A client whose reads come from the manager's cache where it watches the kind, and that reads its own writes.

Source: controller-runtime `pkg/client/{client,consistency}.go`; upstream's reading of one's own writes waits for the
watch, this takes the answers to the writes into the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast

from steersman.apimachinery.errors import AlreadyExists, Conflict, NotFound
from steersman.client.client import Client
from steersman.client.options import is_status
from steersman.client.pager import DEFAULT_LIMIT, Listing, key_of
from steersman.client.resources import Kind, Object, Resource, ResourceMapping
from steersman.client.watch_memory import Key, Known
from steersman.runtime.cache.cache import Cache, KindCache, identity
from steersman.runtime.cache.events import CURRENT, Flight
from steersman.runtime.cache.informer import Informer

T = TypeVar("T")

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class CachedClient(Client):
    """The client that reconcilers use.

    `get` and `list` of a kind that the manager watches come from the cache, and are never older than what this client
    has written; all other reads ask the server, as `live` does always. After a Conflict (or AlreadyExists, or NotFound)
    the next read of that object asks the server, too: trying again with what the cache has would lose again. An object
    that is read is the caller's own. Lists from the cache take any field in a field selector.
    """

    cache: Cache
    live: Client
    """Reads from here ask the server; writes are the same."""
    on_write: Callable[[str, Known, Object], None] | None = None
    """Told of each write of a controller: its name, what was there, and what is there now."""

    @classmethod
    def over(cls, client: Client, cache: Cache) -> CachedClient:
        """The same client with a cache."""
        made = cls.__new__(cls)
        made.__dict__.update(client.__dict__)
        made.cache = cache
        made.live = _LiveClient.over_cached(made)
        return made

    async def get(
        self, kind: Kind[T], name: str, *, namespace: str | None = None, resource_version: str | None = None
    ) -> T:
        watched = self.cache.peek(kind.api_kind())
        if watched is None or watched.metadata_only or resource_version is not None:
            return await super().get(kind, name, namespace=namespace, resource_version=resource_version)
        key = await self._key(kind.api_kind(), namespace, name)
        informer = watched.informer(key[0])
        if informer is None or not informer.has_synced or informer.is_doubted(key):
            return await self.refresh(kind, key)
        raw = watched.get(key)
        if raw is None:
            if watched.is_narrowed:
                return await super().get(kind, name, namespace=namespace)
            raise _not_found(await self.mapper.mapping(kind.api_kind()), name)
        return kind.from_wire(raw)

    async def refresh(self, kind: Kind[T], key: Key) -> T:
        """The object as the server has it now; the cache learns of it. Raises NotFound, ..."""
        obj = await super().get(cast("Kind[Any]", kind.api_kind()), key[1], namespace=key[0] or None)
        informer = self._informer(kind.api_kind(), key)
        if informer is not None:
            informer.observe(obj)
        return kind.from_wire(obj)

    def list(
        self,
        kind: Kind[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = DEFAULT_LIMIT,
        resource_version: str | None = None,
        resource_version_match: Literal["Exact", "NotOlderThan"] | None = None,
    ) -> Listing[T]:
        watched = self.cache.peek(kind.api_kind())
        covered = watched is not None and not watched.is_narrowed and not watched.metadata_only
        informer = watched.informer(namespace) if watched is not None and covered else None
        if watched is None or informer is None or not informer.has_synced or resource_version is not None:
            return super().list(
                kind,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                resource_version=resource_version,
                resource_version_match=resource_version_match,
            )

        async def fetch(query: Mapping[str, str]) -> Object:
            return {"metadata": {}, "items": watched.select(namespace, label_selector, field_selector)}

        return Listing(kind, fetch, {}, 0)

    def by_index(self, kind: Kind[T], index: str, value: str) -> Sequence[T]:
        """The cached objects that have a value in an index, see `Manager.index`.

        Raises LookupError for a kind that is not watched or an index that there is not.
        """
        watched = self.cache.peek(kind.api_kind())
        if watched is None:
            raise LookupError(f"{kind.api_kind().kind} is not watched: it has no index")
        return [kind.from_wire(raw) for raw in watched.by_index(index, value)]

    async def _send(
        self,
        method: str,
        resource: Resource,
        namespace: str | None,
        name: str | None,
        subresource: str | None = None,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        everywhere: bool = False,
    ) -> Any:
        async def send() -> Any:
            return await super(CachedClient, self)._send(
                method,
                resource,
                namespace,
                name,
                subresource,
                query=query,
                body=body,
                content_type=content_type,
                everywhere=everywhere,
            )

        if method not in _WRITES or self.cache.peek(resource) is None or (query or {}).get("dryRun"):
            return await send()
        target = name or (key_of(body)[1] if method == "POST" and isinstance(body, dict) else "")
        if not target:
            return await send()  # a name that the server makes up, or a whole collection
        key = await self._key(resource, namespace, target)
        informer = self._informer(resource, key)
        if informer is None:
            return await send()
        run, before = CURRENT.get(), informer.indexer.get(key)
        flight = informer.depart(key, run.origin if run else None, certain=method == "POST" or _is_guarded(body))
        answer: Any = None
        try:
            answer = await send()
        except (AlreadyExists, Conflict, NotFound):
            informer.doubt(key)
            raise
        finally:
            self._arrive(informer, key, flight, answer, deleted=method == "DELETE")
        if run is not None and before is not None and self.on_write is not None and _is_state(answer, resource):
            self.on_write(run.origin.controller, before, answer)
        return answer

    def _arrive(self, informer: Informer, key: Key, flight: Flight, answer: Any, *, deleted: bool) -> None:
        """Take in what a write has come to; `answer` is None if it has failed."""
        if deleted and (is_status(answer) or _is_last(answer)):
            known = informer.indexer.get(key)
            gone = _uid(answer) or (known.uid if known is not None else "")
            informer.arrive(key, flight, None, gone=gone or None)
        elif _is_state(answer, informer.resource):
            flight.certain = flight.certain or _has_one_writer(answer)
            run = CURRENT.get()
            if run is not None and flight.certain:
                run.versions[(*identity(informer.resource), key)] = answer["metadata"].get("resourceVersion") or ""
            informer.arrive(key, flight, answer)
        else:
            informer.arrive(key, flight, None)

    async def _read_to_change(
        self, resource: Resource, namespace: str | None, name: str, subresource: str | None
    ) -> Object:
        if subresource is not None:
            return await super()._read_to_change(resource, namespace, name, subresource)
        return await self.get(resource, name, namespace=namespace)

    async def _key(self, resource: Resource, namespace: str | None, name: str) -> Key:
        mapping = await self.mapper.mapping(resource)
        return ((namespace or self.namespace) if mapping.namespaced else "", name)

    def _informer(self, resource: Resource, key: Key) -> Informer | None:
        watched: KindCache | None = self.cache.peek(resource)
        return None if watched is None else watched.informer(key[0])


class _LiveClient(CachedClient):
    """Writes like its parent, and reads from the server."""

    @classmethod
    def over_cached(cls, parent: CachedClient) -> _LiveClient:
        made = cls.__new__(cls)
        made.__dict__.update(parent.__dict__)
        made.live = made
        return made

    async def get(
        self, kind: Kind[T], name: str, *, namespace: str | None = None, resource_version: str | None = None
    ) -> T:
        return await Client.get(self, kind, name, namespace=namespace, resource_version=resource_version)

    def list(self, kind: Kind[T], **options: Any) -> Listing[T]:
        return Client.list(self, kind, **options)


def _is_guarded(body: Any) -> bool:
    """Whether the write succeeds only on the state that the writer has seen."""
    return isinstance(body, dict) and bool((body.get("metadata") or {}).get("resourceVersion"))


def _is_state(answer: Any, resource: Resource) -> bool:
    return isinstance(answer, dict) and answer.get("kind") == resource.kind and bool(answer.get("metadata"))


def _is_last(answer: Any) -> bool:
    """Whether what a deletion has answered is the object's last state: nothing holds it back."""
    if not isinstance(answer, dict):
        return False
    metadata = answer.get("metadata") or {}
    return not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds")


def _has_one_writer(answer: Object) -> bool:
    """Whether nobody but this writer can have made the state: it was created by it, and has no other manager."""
    metadata = answer["metadata"]
    entries = metadata.get("managedFields") or []
    return len(entries) == 1 and entries[0].get("time") == metadata.get("creationTimestamp")


def _uid(answer: Object) -> str:
    return (answer.get("details") or {}).get("uid") or (answer.get("metadata") or {}).get("uid") or ""


def _not_found(mapping: ResourceMapping, name: str) -> NotFound:
    """As the server says it."""
    group = mapping.api_version.rpartition("/")[0]
    where = f"{mapping.plural}.{group}" if group else mapping.plural
    details = {"name": name, "group": group, "kind": mapping.plural}
    return NotFound(f'{where} "{name}" not found', details={key: value for key, value in details.items() if value})
