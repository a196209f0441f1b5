"""Where a kind's objects live: asks the server (discovery) and remembers the answer.

Source: client-go `restmapper/` and controller-runtime `pkg/client/apiutil/restmapper.go` (asking again on no match).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from steersman.apimachinery.errors import NotFound
from steersman.client.errors import DecodeError, NoMatch
from steersman.client.resources import Resource, ResourceMapping

T = TypeVar("T")


class RestMapper:
    """Maps kinds to URL paths with one request for each apiVersion that is used.

    A kind that is not in the remembered answer is asked for again, so that a CRD made a moment ago is found; a CRD that
    was made anew with another plural or scope is found through `refresh`.
    """

    def __init__(self, get: Callable[[str], Awaitable[Any]]) -> None:
        """`get` fetches the JSON at a path."""
        self._get = get
        self._known: dict[str, list[Mapping[str, Any]]] = {}
        self._found: dict[Resource, ResourceMapping] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def mapping(self, resource: Resource) -> ResourceMapping:
        """Raises NoMatch, and whatever the request raises."""
        if found := self.remembered(resource):
            return found
        return await self.refresh(resource)

    def remembered(self, resource: Resource) -> ResourceMapping | None:
        """As `mapping`, but asks nobody: None for a kind that was not asked about yet, or is not served."""
        if resource.plural is not None and resource.namespaced is not None:
            return ResourceMapping(resource.api_version, resource.kind, resource.plural, resource.namespaced)
        found = self._found.get(resource)
        if found is None and (found := _find(self._known.get(resource.api_version, []), resource)):
            self._found[resource] = found
        return found

    async def at(self, resource: Resource, send: Callable[[ResourceMapping], Awaitable[T]]) -> T:
        """What `send` gives for the kind's mapping; once more if the path turns out to be of the past.

        A 404 that names no object means that the path is not served: the CRD may have been made anew.
        """
        mapping = await self.mapping(resource)
        try:
            return await send(mapping)
        except NotFound as error:
            if (error.details or {}).get("name") or (resource.plural is not None and resource.namespaced is not None):
                raise
            fresh = await self.refresh(resource)
            if fresh == mapping:
                raise
        return await send(fresh)

    async def refresh(self, resource: Resource) -> ResourceMapping:
        """As `mapping`, but asks the server in any case."""
        if found := _find(await self.resources(resource.api_version), resource):
            return found
        raise NoMatch(resource.api_version, resource.kind)

    async def resources(self, api_version: str) -> list[Mapping[str, Any]]:
        """The APIResources that the server serves in a version, asked now; one question at a time.

        Empty when it serves no such version.
        """
        before = self._known.get(api_version)
        async with self._locks.setdefault(api_version, asyncio.Lock()):
            current = self._known.get(api_version)
            if current is not None and current is not before:
                return current  # somebody else asked while we waited
            return await self._fetch(api_version)

    async def _fetch(self, api_version: str) -> list[Mapping[str, Any]]:
        root = "/apis" if "/" in api_version else "/api"
        try:
            answer = await self._get(f"{root}/{api_version}")
        except NotFound:
            self._known.pop(api_version, None)
            self._found.clear()
            return []
        resources = answer.get("resources") if isinstance(answer, dict) else None
        if not isinstance(resources, list):
            raise DecodeError(f"{root}/{api_version}: the answer is not an APIResourceList")
        self._known[api_version] = resources
        self._found.clear()
        return resources


def _find(resources: list[Mapping[str, Any]], wanted: Resource) -> ResourceMapping | None:
    for entry in resources:
        plural = entry.get("name", "")
        if "/" in plural or entry.get("kind") != wanted.kind or wanted.plural not in (None, plural):
            continue
        return ResourceMapping(wanted.api_version, wanted.kind, plural, bool(entry.get("namespaced")))
    return None
