"""kubex: custom resources as models, and watches with initial events."""

import asyncio
from typing import Any, ClassVar

from common import *
from kubex.api import Api
from kubex.client import create_client
from kubex.core.exceptions import Conflict, Gone, NotFound, UnprocessableEntity
from kubex.core.json_patch import JsonPatch
from kubex.core.patch import ApplyPatch, MergePatch
from kubex_core.models.base import BaseK8sModel
from kubex_core.models.interfaces import ClusterScopedEntity, HasStatusSubresource, NamespaceScopedEntity
from kubex_core.models.metadata import ObjectMetadata
from kubex_core.models.resource_config import ResourceConfig, Scope


class Spec(BaseK8sModel):
    count: int = 0
    note: str | None = None


class Status(BaseK8sModel):
    seen: int = 0


class Gadget(NamespaceScopedEntity, HasStatusSubresource):
    __RESOURCE_CONFIG__: ClassVar[ResourceConfig["Gadget"]] = ResourceConfig(
        version=VERSION, kind=KIND, group=GROUP, plural=PLURAL, scope=Scope.NAMESPACE
    )
    api_version: str = API_VERSION
    kind: str = KIND
    spec: Spec = Spec()
    status: Status | None = None


class Change(BaseK8sModel):
    """What patches have: they send what was set, and no default."""

    spec: Spec


class Definition(ClusterScopedEntity):
    __RESOURCE_CONFIG__: ClassVar[ResourceConfig["Definition"]] = ResourceConfig(
        version="v1",
        kind="CustomResourceDefinition",
        group="apiextensions.k8s.io",
        plural="customresourcedefinitions",
        scope=Scope.CLUSTER,
    )
    spec: dict[str, Any]
    status: dict[str, Any] | None = None


class Lease(NamespaceScopedEntity):
    __RESOURCE_CONFIG__: ClassVar[ResourceConfig["Lease"]] = ResourceConfig(
        version="v1", kind="Lease", group="coordination.k8s.io", plural="leases", scope=Scope.NAMESPACE
    )
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"
    spec: dict[str, Any]


def made(name, count=0):
    return Gadget(api_version=API_VERSION, kind=KIND, metadata=ObjectMetadata(name=name), spec=Spec(count=count))


class Program:
    def __init__(self, client):
        self.client = client
        self.api = Api(Gadget, client=client, namespace=NAMESPACE)

    async def define(self):
        api = Api(Definition, client=self.client)
        await api.create(Definition.model_validate(DEFINITION))
        async for event in api.watch():
            conditions = (event.object.status or {}).get("conditions") or []
            if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
                return

    async def increment(self, name):
        """Read, change, write, and on a Conflict again."""
        while True:
            current = await self.api.get(name)
            current.spec.count += 1
            try:
                await self.api.replace(name, current)
                return
            except Conflict:
                pass

    async def conflicts(self):
        first = await self.api.create(made("counter"))

        async def work():
            for _ in range(INCREMENTS):
                await self.increment("counter")

        await asyncio.gather(*(work() for _ in range(WRITERS)))
        assert (await self.api.get("counter")).spec.count == WRITERS * INCREMENTS
        first.spec.count = 99
        await self.refused(Conflict, "the object has been modified", self.api.replace("counter", first))
        await self.refused(UnprocessableEntity, "spec.count", self.api.create(made("bad", -1)))
        await self.refused(NotFound, "not found", self.api.get("nobody"))

    async def refused(self, kind, told, attempt):
        try:
            await attempt
        except kind as error:
            assert told in error.content.message, error.content
        else:
            raise AssertionError(f"expected {kind}")

    async def status(self):
        current = await self.api.get("counter")
        current.spec.count, current.status = 99, Status(seen=1)
        changed = await self.api.status.replace("counter", current)
        assert changed.status.seen == 1 and changed.spec.count == WRITERS * INCREMENTS

    async def patches(self):
        merge = MergePatch(Change(spec=Spec(note="merged")))
        assert (await self.api.patch("counter", merge)).spec.note == "merged"
        operations = JsonPatch([]).replace("/spec/note", "replaced")
        assert (await self.api.patch("counter", operations)).spec.note == "replaced"

    async def apply(self):
        made_now = await self.api.patch("applied", ApplyPatch(made("applied", 1)), field_manager="one")
        again = await self.api.patch("applied", ApplyPatch(made("applied", 1)), field_manager="one")
        assert again.metadata.resource_version == made_now.metadata.resource_version
        other = ApplyPatch(made("applied", 2))
        told = 'conflict with "one": .spec.count'
        await self.refused(Conflict, told, self.api.patch("applied", other, field_manager="two"))
        forced = await self.api.patch("applied", other, field_manager="two", force=True)
        assert forced.spec.count == 2

    async def pages(self):
        for number in range(OBJECTS):
            await self.api.create(made(f"page-{number}"))
        seen, token = [], None
        while token != "":
            page = await self.api.list(limit=PAGE, continue_token=token)
            assert len(page.items) <= PAGE
            seen += [each.metadata.name for each in page.items]
            token = page.metadata.continue_ or ""
        assert len(set(seen)) == len(seen) >= OBJECTS

    async def watches(self):
        old = (await self.api.list()).metadata.resource_version
        await self.api.create(made("watched"))
        async for event in self.api.watch(resource_version=old):
            assert (event.type.value, event.object.metadata.name) == ("ADDED", "watched")
            break
        await self.api.delete("watched")
        await asyncio.to_thread(compact)
        try:
            async for event in self.api.watch(resource_version=old):
                raise AssertionError(f"told of what is forgotten: {event}")
        except Gone:
            pass
        initial = set()
        async for event in self.api.watch(send_initial_events=True, allow_bookmarks=True):
            if event.type.value == "BOOKMARK":
                break
            initial.add(event.object.metadata.name)
        assert "counter" in initial and "watched" not in initial

    async def lease(self):
        api = Api(Lease, client=self.client, namespace=NAMESPACE)
        spec = {"holderIdentity": "a", "leaseDurationSeconds": 15}
        held = await api.create(Lease(metadata=ObjectMetadata(name="kubex"), spec=spec))
        late = held.model_copy(deep=True)
        held.spec["holderIdentity"] = "b"
        await api.replace("kubex", held)
        late.spec["holderIdentity"] = "c"
        await self.refused(Conflict, "the object has been modified", api.replace("kubex", late))


async def main():
    async with await create_client() as client:
        program = Program(client)
        for step in ("define", "conflicts", "status", "patches", "apply", "pages", "watches", "lease"):
            await getattr(program, step)()
            done(step)


asyncio.run(main())
