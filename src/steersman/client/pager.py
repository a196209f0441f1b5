"""Lists in pages.

Source: client-go `tools/pager/pager.go`; a continue token lives some five minutes, then the server answers 410.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from steersman.apimachinery.errors import Gone
from steersman.client.errors import DecodeError
from steersman.client.resources import Kind

T = TypeVar("T")

DEFAULT_LIMIT = 500
"""Objects in a page (client-go: 500)."""

_RESTARTS = 5


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to a list. `restarted` is set on the first page after the server had dropped the list's snapshot:
    the pages before it belong to an older state and are given again, as they are now."""

    items: Sequence[dict[str, Any]]
    resource_version: str
    last: bool
    restarted: bool = False


class Listing(Generic[T]):
    """A list that fetches its pages as they are needed.

    `async for obj in listing` gives every object once, in the server's order. When the server drops the snapshot
    midway (410), the list starts again and goes on with the objects that were not given yet: then the objects given
    before are of an older state than those given after. `await listing.collect()` always is one snapshot.
    """

    def __init__(
        self,
        kind: Kind[T],
        fetch: Callable[[Mapping[str, str]], Awaitable[Any]],
        query: Mapping[str, str],
        limit: int,
    ) -> None:
        self._fetch = fetch
        self._decode = kind.from_wire
        self._resource = kind.api_kind()
        self._query = dict(query)
        self._limit = limit
        self.resource_version = ""
        """The resourceVersion of the latest page: where a watch may start once all has been read."""

    async def __aiter__(self) -> AsyncIterator[T]:
        given: set[tuple[str, str]] = set()
        async for page in self.pages():
            for item in page.items:
                if (key := key_of(item)) not in given:
                    given.add(key)
                    yield self._decode(item)

    async def collect(self) -> list[T]:
        """All objects, as one snapshot. Raises Gone when the server drops the snapshot again and again."""
        items: list[dict[str, Any]] = []
        async for page in self.pages():
            if page.restarted:
                items.clear()
            items += page.items
        return [self._decode(item) for item in items]

    async def pages(self) -> AsyncGenerator[Page, None]:
        """The pages, with the objects as they came but for their apiVersion and kind, which the server leaves out."""
        token, restarts = "", 0
        while True:
            restarted = False
            try:
                answer = await self._fetch(self._page_query(token))
            except Gone:
                if not token or restarts == _RESTARTS:
                    raise
                restarts += 1
                token, restarted = "", True
                answer = await self._fetch(self._page_query(token))
            page, token = self._read(answer, restarted)
            self.resource_version = page.resource_version
            yield page
            if page.last:
                return

    def _page_query(self, token: str) -> dict[str, str]:
        query = dict(self._query)
        if self._limit:
            query["limit"] = str(self._limit)
        if token:
            # The token holds the snapshot's resourceVersion; the server refuses one beside it.
            query.pop("resourceVersion", None)
            query.pop("resourceVersionMatch", None)
            query["continue"] = token
        return query

    def _read(self, answer: Any, restarted: bool) -> tuple[Page, str]:
        if not isinstance(answer, dict) or not isinstance(answer.get("metadata"), dict):
            raise DecodeError("the answer is not a list", answer if isinstance(answer, dict) else None)
        metadata, items = answer["metadata"], answer.get("items") or []
        for item in items:
            item.setdefault("apiVersion", self._resource.api_version)
            item.setdefault("kind", self._resource.kind)
        token = metadata.get("continue") or ""
        return Page(items, metadata.get("resourceVersion", ""), not token, restarted), token


def key_of(obj: Mapping[str, Any]) -> tuple[str, str]:
    """(namespace, name); the namespace is "" for a cluster-scoped object."""
    metadata = obj.get("metadata") or {}
    return metadata.get("namespace") or "", metadata.get("name") or ""
