"""Rewrites every custom resource that may be stored in an old version, and then says so in the definition.

A server stores what is written in the storage version of that day, and leaves the rest as it is; the definition's
`status.storedVersions` names all versions that may be in the store. A write that changes nothing is enough: a server
stores an object anew when its encoded form differs. It is made at the resourceVersion that was read, so that whoever
wrote meanwhile has done the work.

Source: kubernetes `pkg/controller/storageversionmigrator/storageversionmigrator.go`; apiextensions
`pkg/registry/customresourcedefinition/strategy.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steersman.apimachinery.errors import ApiError, Conflict, Forbidden, NotFound, Unauthorized
from steersman.client.client import Client
from steersman.client.resources import Resource

CRD = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False)
WRITES_AT_ONCE = 10
_ROUNDS = 3
_MOST_TOLD = 10

Say = Callable[[str], None]


class MigrationError(Exception):
    """A definition's objects cannot be migrated; the message says why."""


class _ChangedError(Exception):
    """The definition is not what it was when its objects began to be rewritten."""


@dataclass(slots=True)
class Outcome:
    """What was done: objects rewritten here, written or deleted by others meanwhile, and those that were refused."""

    rewritten: int = 0
    overtaken: int = 0
    refused: list[str] = field(default_factory=list)


def outdated(crd: Mapping[str, Any]) -> bool:
    """Whether objects may be stored in another version than the storage version."""
    return list(stored_versions(crd)) != [storage_version(crd)]


def stored_versions(crd: Mapping[str, Any]) -> Sequence[str]:
    return (crd.get("status") or {}).get("storedVersions") or []


def storage_version(crd: Mapping[str, Any]) -> str:
    return next(str(version["name"]) for version in crd["spec"]["versions"] if version["storage"])


async def migrate(client: Client, name: str, say: Say, *, dry_run: bool = False) -> Outcome:
    """Rewrite the objects of a definition, and leave its storage version alone in `status.storedVersions`.

    Nothing is done if that is so already. `say` gets a line for each step. With `dry_run` the server does all but
    store. Objects that the server refuses to rewrite are in the outcome; `storedVersions` then stays as it is. It can
    be run again at any time. Raises MigrationError, and what the client raises.
    """
    for _ in range(_ROUNDS):
        crd = await client.get(CRD, name)
        if not outdated(crd):
            say(f"{name}: all objects are stored as {storage_version(crd)}")
            return Outcome()
        outcome = await _rewrite_all(client, crd, say, dry_run=dry_run)
        if outcome.refused:
            say(f"{name}: {_objects(len(outcome.refused))} refused: storedVersions stays as it is")
            return outcome
        if dry_run:
            say(f"{name}: storedVersions would become {storage_version(crd)}")
            return outcome
        try:
            await client.modify(CRD, name, _noter(crd), subresource="status")
        except _ChangedError:
            say(f"{name}: the definition has changed meanwhile: once more")
            continue
        say(f"{name}: storedVersions is {storage_version(crd)}")
        return outcome
    raise MigrationError(f"{name}: the definition changes again and again; try later")


def _noter(before: Mapping[str, Any]) -> Callable[[dict[str, Any]], None]:
    """What puts the result into a definition, unless its spec is another than `before`."""

    def note(crd: dict[str, Any]) -> None:
        for key in ("uid", "generation"):
            if crd["metadata"].get(key) != before["metadata"].get(key):
                raise _ChangedError
        crd["status"]["storedVersions"] = [storage_version(before)]

    return note


async def _rewrite_all(client: Client, crd: Mapping[str, Any], say: Say, *, dry_run: bool) -> Outcome:
    name, resource = crd["metadata"]["name"], _resource(crd)
    say(f"{name}: may be stored as {', '.join(stored_versions(crd))}; the storage version is {storage_version(crd)}")
    outcome = Outcome()
    rewriter = _Rewriter(client, resource, outcome, say, dry_run=dry_run)
    async for page in client.list(resource).pages():
        await rewriter.rewrite([item["metadata"] for item in page.items])
        done = f"{_objects(outcome.rewritten)} {'would be ' if dry_run else ''}rewritten"
        more = f", {outcome.overtaken} changed or deleted meanwhile" if outcome.overtaken else ""
        say(f"{name}: {done}{more}{'' if page.last else ', so far'}")
    return outcome


def _objects(number: int) -> str:
    return "1 object" if number == 1 else f"{number} objects"


def _resource(crd: Mapping[str, Any]) -> Resource:
    """The kind in a version that is served, the storage version if it is. Raises MigrationError."""
    spec, name = crd["spec"], crd["metadata"]["name"]
    if crd["metadata"].get("deletionTimestamp"):
        raise MigrationError(f"{name}: the definition is being deleted")
    conditions = (crd.get("status") or {}).get("conditions") or ()
    if not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
        raise MigrationError(f"{name}: the definition is not established")
    served = [version["name"] for version in spec["versions"] if version["served"]]
    if not served:
        raise MigrationError(f"{name}: no version is served, so that its objects cannot be reached; serve one")
    version = storage_version(crd) if storage_version(crd) in served else served[0]
    names = crd["status"]["acceptedNames"]
    return Resource(f"{spec['group']}/{version}", names["kind"], names["plural"], spec["scope"] == "Namespaced")


class _Rewriter:
    """Writes objects back as they are, some at a time."""

    def __init__(self, client: Client, resource: Resource, outcome: Outcome, say: Say, *, dry_run: bool) -> None:
        self._client = client
        self._resource = resource
        self._outcome = outcome
        self._say = say
        self._dry_run = dry_run
        self._slots = asyncio.Semaphore(WRITES_AT_ONCE)

    async def rewrite(self, metas: Sequence[Mapping[str, Any]]) -> None:
        """Rewrite the objects with these metadata. Raises what is wrong with more than one of them."""
        tasks = [asyncio.create_task(self._rewrite(meta)) for meta in metas]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _rewrite(self, meta: Mapping[str, Any]) -> None:
        same = {"metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
        namespace = meta.get("namespace")
        async with self._slots:
            try:
                await self._client.patch(
                    self._resource, meta["name"], same, namespace=namespace, dry_run=self._dry_run or None
                )
            except (Conflict, NotFound):  # written, deleted, or made anew since: in the storage version
                self._outcome.overtaken += 1
            except (Forbidden, Unauthorized):
                raise
            except ApiError as error:
                self._refused(f"{namespace}/{meta['name']}" if namespace else meta["name"], error)
            else:
                self._outcome.rewritten += 1

    def _refused(self, name: str, error: ApiError) -> None:
        self._outcome.refused.append(name)
        told = len(self._outcome.refused)
        if told <= _MOST_TOLD:
            self._say(f"{self._resource.plural}: {name} cannot be rewritten: {error.message}")
        elif told == _MOST_TOLD + 1:
            self._say(f"{self._resource.plural}: more cannot be rewritten")
