"""A client whose reads come from the manager's cache where it watches the kind, and that reads its own writes.

Source: controller-runtime `pkg/client/{client,consistency}.go`; upstream's reading of one's own writes waits for the
watch, this takes the answers to the writes into the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from steersman.apimachinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.client.client import Client
from steersman.client.options import is_status
from steersman.client.pager import DEFAULT_LIMIT, Listing, key_of
from steersman.client.resources import Kind, Object, Resource, ResourceMapping
from steersman.client.watch_memory import Key, Known
from steersman.runtime.cache.cache import Cache, KindCache, identity
from steersman.runtime.cache.certainty import is_explained
from steersman.runtime.cache.events import Flight, current_run
from steersman.runtime.cache.informer import Informer

T = TypeVar("T")

_VERSION = "/metadata/resourceVersion"
MAX_DOUBTS = 16
"""How many objects a list from the cache asks the server about one by one; beyond that, it asks for the whole list."""
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class CachedClient(Client):
    """The client that reconcilers use.

    `get` and `list` of a kind that the manager watches come from the cache, and are never older than what this client
    has written; all other reads ask the server, as `live` does always. After a Conflict (or AlreadyExists, or NotFound)
    the next read of that object asks the server, too: trying again with what the cache has would lose again. An object
    that is read is the caller's own. Lists from the cache take any field in a field selector.
    """

    cache: Cache
    live: CachedClient
    """Reads from here ask the server; writes are the same."""
    on_write: Callable[[str, Known, Object, str | None], None] | None = None
    """Told of each write of a controller: its name, what was there, what is there now, and the subresource."""

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
        if informer is None or not informer.has_synced or informer.doubt_about(key) is not None:
            return await self.refresh(kind, key)
        raw = watched.get(key)
        if raw is None:
            if watched.is_narrowed:
                return await super().get(kind, name, namespace=namespace)
            raise _not_found(await self.mapper.mapping(kind.api_kind()), name)
        return kind.from_wire(raw)

    async def get_whole(self, kind: Kind[T], name: str, *, namespace: str | None = None) -> T:
        """As `get`, but never what a transform has left of an object: to be changed and written."""
        watched = self.cache.peek(kind.api_kind())
        if watched is not None and watched.is_reduced:
            return await super().get(kind, name, namespace=namespace)
        return await self.get(kind, name, namespace=namespace)

    async def refresh(self, kind: Kind[T], key: Key) -> T:
        """The object as the server has it now; the cache learns of it. Raises NotFound, ..."""
        informer, run = self._informer(kind.api_kind(), key), current_run()
        doubt = informer.doubt_about(key) if informer is not None else None
        try:
            obj = await super().get(cast("Kind[Any]", kind.api_kind()), key[1], namespace=key[0] or None)
        except NotFound:
            if informer is not None and key not in informer.indexer:
                informer.settle(key, doubt)
            raise
        if informer is not None and informer.has_synced:
            informer.observe(obj, run.origin if run is not None and not run.begun else None)
            informer.settle(key, doubt)
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
        known = informer is not None and informer.has_synced and len(informer.doubted_in(namespace)) <= MAX_DOUBTS
        if watched is None or informer is None or not known or resource_version is not None:
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
            gone = await self._settle(kind.api_kind(), informer, namespace)
            items = watched.select(namespace, label_selector, field_selector)
            return {"metadata": {}, "items": [raw for raw in items if key_of(raw) not in gone] if gone else items}

        return Listing(kind, fetch, {}, 0)

    async def _settle(self, resource: Resource, informer: Informer, namespace: str | None) -> set[Key]:
        """Ask the server about objects that there are doubts about; gives those that are gone."""
        gone = set()
        for key in informer.doubted_in(namespace):
            try:
                await self.refresh(resource, key)
            except NotFound:
                gone.add(key)
        return gone

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
        run = current_run()
        if run is not None and run.may_write is not None and method in _WRITES:
            run.may_write()

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

        if method not in _WRITES or self.cache.peek(resource) is None or _is_dry(query, body):
            return await send()
        target = name or (key_of(body)[1] if method == "POST" and isinstance(body, dict) else "")
        key = await self._key(resource, namespace, target)
        informer = self._informer(resource, key)
        if informer is None:
            return await send()
        if not target:
            return self._take_in(informer, resource, await send())
        write = _Write(method, subresource, content_type, body, informer.indexer.get(key))
        flight = informer.depart(key, run.origin if run else None, certain=write.is_certain)
        answer: Any = None
        try:
            answer = await send()
        except (AlreadyExists, NotFound) as error:
            if (key in informer.indexer) == isinstance(error, NotFound):
                informer.doubt(key)
            raise
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, Conflict) or not _is_refused(error):
                informer.doubt(key)
            raise
        finally:
            self._arrive(informer, key, flight, write, answer)
        if run is not None and write.before is not None and self.on_write and _is_state(answer, resource):
            self.on_write(run.origin.controller, write.before, answer, subresource)
        return answer

    def _take_in(self, informer: Informer, resource: Resource, answer: Any) -> Any:
        """An object whose name the server has made up, or what a collection's deletion has found."""
        if _is_state(answer, resource):
            run = current_run()
            informer.observe(answer, run.origin if run is not None else None)
        else:
            self._doubt_all(resource, answer)
        return answer

    def _doubt_all(self, resource: Resource, answer: Any) -> None:
        """A collection's deletion tells which objects it has found; some may have finalizers."""
        for item in answer.get("items") or () if isinstance(answer, dict) else ():
            key = key_of(item)
            informer = self._informer(resource, key)
            if informer is not None and key in informer.indexer:
                informer.doubt(key)

    @staticmethod
    def _arrive(informer: Informer, key: Key, flight: Flight, write: _Write, answer: Any) -> None:
        """Take in what a write has come to; `answer` is None if it has failed."""
        if write.method == "DELETE" and (is_status(answer) or _is_last(answer)):
            known = informer.indexer.get(key)
            gone = _uid(answer) or (known.uid if known is not None else "")
            flight.certain = True  # whatever it was like: it is gone
            informer.arrive(key, flight, None, gone=gone or None)
        elif _is_state(answer, informer.resource):
            run = current_run()
            if run is not None and flight.origin is not None:
                flight.certain = flight.certain or _has_one_writer(answer) or write.explains(answer)
                if flight.certain:
                    run.versions[(*identity(informer.resource), key)] = answer["metadata"].get("resourceVersion") or ""
            informer.arrive(key, flight, answer)
        else:
            if answer is not None:
                informer.doubt(key)  # a Scale, say: the object has changed, but how is not known
            informer.arrive(key, flight, None)

    async def _read_to_change(
        self, resource: Resource, namespace: str | None, name: str, subresource: str | None
    ) -> Object:
        if subresource is not None:
            return await super()._read_to_change(resource, namespace, name, subresource)
        return await self.get_whole(resource, name, namespace=namespace)

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


@dataclass(frozen=True, slots=True)
class _Write:
    """A write, and the state that was known before it."""

    method: str
    subresource: str | None
    content_type: str
    body: Any
    before: Known | None

    @property
    def is_certain(self) -> bool:
        """Whether it succeeds only on the state that is known here, of which all have been told.

        A later one, which was read from the server, may hold what the reconcile has not heeded.
        """
        if self.method == "POST":
            return True
        return self.before is not None and self._guard == self.before.version

    @property
    def _guard(self) -> Any:
        if isinstance(self.body, dict):
            return (self.body.get("metadata") or {}).get("resourceVersion")
        tests = (step for step in self.body or () if step.get("op") == "test" and step.get("path") == _VERSION)
        return next((step.get("value") for step in tests), None)

    def explains(self, answer: Object) -> bool:
        """Whether the state that it has made differs from the known one by nothing but what it says."""
        if self.method != "PATCH" or self.before is None or not isinstance(self.body, dict):
            return False
        return is_explained(self.before.raw, self.body, answer, subresource=self.subresource)


def _is_dry(query: Mapping[str, str] | None, body: Any) -> bool:
    options = body if isinstance(body, dict) and body.get("kind") == "DeleteOptions" else {}
    return bool((query or {}).get("dryRun") or options.get("dryRun"))


def _is_refused(error: BaseException) -> bool:
    """Whether a write has certainly not happened; when the answer is lost, or the server in trouble, it may have."""
    return isinstance(error, ApiError) and error.code < 500


def _is_state(answer: Any, resource: Resource) -> bool:
    return isinstance(answer, dict) and answer.get("kind") == resource.kind and bool(answer.get("metadata"))


def _is_last(answer: Any) -> bool:
    """Whether what a deletion has answered is the object's last state: nothing holds it back."""
    if not isinstance(answer, dict):
        return False
    metadata = answer.get("metadata") or {}
    held = metadata.get("finalizers") or (answer.get("spec") or {}).get("finalizers")  # a Namespace's
    return not held and not metadata.get("deletionGracePeriodSeconds")


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
