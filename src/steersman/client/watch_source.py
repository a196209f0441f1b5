"""What a watch reads: the list of a collection, and its stream of events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import orjson

from steersman.apimachinery.errors import ApiError, NotFound, from_status
from steersman.client.errors import DecodeError, NoMatch
from steersman.client.lines import LineSplitter
from steersman.client.pager import DEFAULT_LIMIT, Listing
from steersman.client.resources import Kind
from steersman.client.rest import RestClient
from steersman.client.rest_mapper import RestMapper
from steersman.client.transport import RawStream, TransportTimeout

T = TypeVar("T")
METADATA_FORMS = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
)
"""What to accept of a list and of a watch (KEP-2334's forms; API concepts, "Metadata-only fetches")."""

_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})


class Source(Generic[T]):
    """One collection, in one namespace or in all (None), narrowed by `query` (selectors)."""

    def __init__(
        self,
        rest: RestClient,
        mapper: RestMapper,
        kind: Kind[T],
        namespace: str | None,
        query: Mapping[str, str],
        *,
        metadata_only: bool = False,
    ) -> None:
        self._rest = rest
        self._mapper = mapper
        self._kind = kind
        self._namespace = namespace
        self._query = dict(query)
        self._forms = METADATA_FORMS if metadata_only else (None, None)

    def __str__(self) -> str:
        resource = self._kind.api_kind()
        return f"{resource.kind}.{resource.api_version}" + (f" in {self._namespace}" if self._namespace else "")

    def listing(self) -> Listing[T]:
        """The collection as it is now."""

        async def fetch(query: Mapping[str, str]) -> Any:
            return await self._rest.json("GET", await self._path(), query.items(), accept=self._forms[0])

        return Listing(self._kind, fetch, self._query, DEFAULT_LIMIT)

    @asynccontextmanager
    async def stream(self, parameters: Mapping[str, str]) -> AsyncIterator[RawStream]:
        """The collection's events; `parameters` say from where on."""
        query = {**self._query, "watch": "true", "allowWatchBookmarks": "true", **parameters}
        async with self._rest.stream(await self._path(), query.items(), accept=self._forms[1]) as stream:
            yield stream

    async def is_future(self, version: str) -> bool:
        """Whether the server has not come to a resourceVersion yet that it has told of: it has begun anew, from nothing
        or from a backup. A watch from there would be told nothing. False where the server does not say."""
        query = {**self._query, "limit": "1", "resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}
        try:
            await self._rest.json("GET", await self._path(), query.items(), accept=self._forms[0])
        except ApiError as error:
            causes = (error.details or {}).get("causes") or ()
            return any(cause.get("reason") == "ResourceVersionTooLarge" for cause in causes)
        return False

    async def look_again(self) -> None:
        """Ask discovery anew, after a 404: the CRD may have been made with another plural, or be gone for now."""
        with contextlib.suppress(NoMatch, NotFound):
            await self._mapper.refresh(self._kind.api_kind())

    async def _path(self) -> str:
        return (await self._mapper.mapping(self._kind.api_kind())).path(self._namespace)


class EventReader:
    """Takes a stream of bytes apart into watch events."""

    def __init__(self, stream: RawStream) -> None:
        self._chunks = aiter(stream.chunks)
        self._lines = LineSplitter()
        self._ready: list[bytes] = []

    async def next(self, deadline: float) -> tuple[Any, dict[str, Any]] | None:
        """(type, object), or None at the stream's end; a line that was cut short by it is dropped, the event will come
        again. An ERROR event is raised as its ApiError. Raises TransportTimeout at `deadline`, in the loop's time.
        """
        while not self._ready:
            try:
                async with asyncio.timeout_at(deadline):
                    chunk = await anext(self._chunks, None)
            except TimeoutError as error:
                raise TransportTimeout("the watch has fallen silent") from error
            if chunk is None:
                return None
            self._ready = self._lines.feed(chunk)
            self._ready.reverse()
        return _event(self._ready.pop())


def _event(line: bytes) -> tuple[str, dict[str, Any]]:
    try:
        event = orjson.loads(line)
        kind, obj = event["type"], event["object"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise DecodeError(f"not a watch event: {line[:200]!r}") from error
    if not isinstance(obj, dict) or kind not in _TYPES:
        raise DecodeError(f"not a watch event: {line[:200]!r}")
    if kind == "ERROR":
        raise from_status(obj.get("code") or 500, obj)
    return kind, obj
