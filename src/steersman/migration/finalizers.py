"""Objects whose deletion waits for somebody: finding them, and letting them go.

Source: API concepts, "Finalizers"; a namespace that stays Terminating names no objects, only kinds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steersman.apimachinery.errors import ApiError, NotFound
from steersman.client.client import Client
from steersman.client.resources import ResourceMapping
from steersman.client.retry import retry_on_conflict
from steersman.client.watch_source import METADATA_FORMS

PAGE = 500


@dataclass(frozen=True, slots=True)
class Held:
    """An object that is being deleted, and what holds it."""

    mapping: ResourceMapping
    namespace: str
    name: str
    since: str
    finalizers: tuple[str, ...]

    @property
    def kind(self) -> str:
        """As kubectl takes it: `widgets.example.com`."""
        group = self.mapping.api_version.rpartition("/")[0]
        return f"{self.mapping.plural}.{group}" if group else self.mapping.plural

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


async def held(
    client: Client, namespace: str | None, selector: str | None, kinds: Collection[str] = ()
) -> AsyncIterator[Held]:
    """All objects that are being deleted and have finalizers, in one namespace or (None) everywhere.

    `kinds` narrows them to some kinds (`widgets.example.com`, `pods`). A kind that may not be listed is left out.
    """
    for mapping in await _listable(client):
        group = mapping.api_version.rpartition("/")[0]
        full = f"{mapping.plural}.{group}" if group else mapping.plural
        if (kinds and full not in kinds and mapping.plural not in kinds) or (namespace and not mapping.namespaced):
            continue
        try:
            async for metadata in _metadata(client, mapping.path(namespace), selector):
                finalizers = tuple(metadata.get("finalizers") or ())
                if metadata.get("deletionTimestamp") and finalizers:
                    place = metadata.get("namespace") or ""
                    yield Held(mapping, place, metadata["name"], metadata["deletionTimestamp"], finalizers)
        except ApiError as error:
            if error.code not in (403, 404, 405):
                raise


async def strip(client: Client, found: Held, finalizers: Collection[str], *, dry_run: bool = False) -> tuple[str, ...]:
    """Take finalizers (all, if none are named) off an object that is being deleted; gives those that were there.

    Whoever put them there will not clean up any more. Raises Conflict when it keeps changing.
    """
    path = found.mapping.path(found.namespace or None, found.name)
    query = [("dryRun", "All")] if dry_run else []

    async def attempt() -> tuple[str, ...]:
        try:
            current = (await client.rest.json("GET", path))["metadata"]
        except NotFound:
            return ()
        present = current.get("finalizers") or []
        taken = tuple(name for name in present if not finalizers or name in finalizers)
        if not taken or not current.get("deletionTimestamp"):
            return ()
        kept = [name for name in present if name not in taken]
        guard = {"resourceVersion": current["resourceVersion"], "uid": current["uid"]}
        patch = {"metadata": {**guard, "finalizers": kept or None}}
        await client.rest.json("PATCH", path, query, patch, content_type="application/merge-patch+json")
        return taken

    return await retry_on_conflict(attempt)


async def _listable(client: Client) -> Sequence[ResourceMapping]:
    """Every kind that can be listed and patched, once, in the group's preferred version."""
    groups = (await client.rest.json("GET", "/apis")).get("groups") or []
    versions = ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]
    return [
        ResourceMapping(version, entry["kind"], entry["name"], bool(entry.get("namespaced")))
        for version in versions
        for entry in await client.mapper.resources(version)
        if "/" not in entry["name"] and {"list", "patch"} <= set(entry.get("verbs") or ())
    ]


async def _metadata(client: Client, path: str, selector: str | None) -> AsyncIterator[Mapping[str, Any]]:
    token = ""
    while True:
        query = [("limit", str(PAGE)), ("labelSelector", selector or ""), ("continue", token)]
        asked = [(key, value) for key, value in query if value]
        answer = await client.rest.json("GET", path, asked, accept=METADATA_FORMS[0])
        for item in answer.get("items") or []:
            yield item["metadata"]
        token = (answer.get("metadata") or {}).get("continue") or ""
        if not token:
            return
