"""The client against a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel

from steersman.apimachinery import errors
from steersman.client import (
    Backoff,
    Client,
    ConflictReport,
    CustomResource,
    Kind,
    NoMatch,
    ObjectMeta,
    Resource,
    custom_resource,
    load,
    retry_on_conflict,
)

NAMESPACE = Resource("v1", "Namespace")
CONFIG_MAP = Resource("v1", "ConfigMap")
CRD = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition")
AT_ONCE = Backoff(steps=5, duration=0.0)

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "version": {"type": "string"},
                "replicas": {"type": "integer", "minimum": 0, "default": 1},
                "note": {"type": "string"},
            },
        },
        "status": {
            "type": "object",
            "properties": {"ready": {"type": "integer"}, "replicas": {"type": "integer"}, "note": {"type": "string"}},
        },
    },
}


class Spec(BaseModel):
    version: str = ""
    replicas: int = 1


class Status(BaseModel):
    ready: int = 0


@dataclass
class World:
    """A client, a namespace that is its default, and a custom resource with a model and without."""

    client: Client
    typed: type[CustomResource[Spec, Status]]
    untyped: Resource
    group: str

    @property
    def kinds(self) -> list[Kind[Any]]:
        return [self.typed, self.untyped]

    async def make(self, name: str, **spec: Any) -> dict[str, Any]:
        return await self.client.create(self.plain(name, **spec))

    def plain(self, name: str, **spec: Any) -> dict[str, Any]:
        return {"apiVersion": f"{self.group}/v1", "kind": "MyApp", "metadata": {"name": name}, "spec": spec}


def definition(group: str, plural: str = "myapps", scope: str = "Namespaced") -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": "MyApp"},
            "versions": [version],
        },
    }


async def define(client: Client, crd: dict[str, Any]) -> None:
    """Create a CRD and wait until it is served."""
    await client.create(crd)
    async with asyncio.timeout(30), client.watch(CRD, name=crd["metadata"]["name"]) as events:
        async for event in events:
            conditions = event.object.get("status", {}).get("conditions") or []
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                break


@pytest.fixture
async def world(apiserver: Any) -> AsyncIterator[World]:
    group = f"g{uuid4().hex[:10]}.example.org"
    async with await apiserver.client() as client:
        namespace = await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "t-"}})
        client.namespace = namespace["metadata"]["name"]
        await define(client, definition(group))

        @custom_resource(f"{group}/v1")
        class MyApp(CustomResource[Spec, Status]): ...

        yield World(client, MyApp, Resource(f"{group}/v1", "MyApp"), group)
        await client.delete(CRD, f"myapps.{group}")
        await client.delete(NAMESPACE, client.namespace)


async def test_typed_objects_live_and_die(world: World) -> None:
    client, kind = world.client, world.typed
    made = await client.create(kind(metadata=ObjectMeta(name="a", labels={"x": "y"}), spec=Spec(version="1")))
    assert isinstance(made, kind)
    assert made.metadata.namespace == client.namespace
    assert made.metadata.generation == 1
    made.spec.version = "2"
    updated = await client.update(made)
    assert (updated.spec.version, updated.metadata.generation) == ("2", 2)
    assert await client.get(kind, "a") == updated
    assert [obj.spec.version async for obj in client.list(kind, namespace=client.namespace)] == ["2"]
    assert await client.delete(kind, "a") is None
    with pytest.raises(errors.NotFound):
        await client.get(kind, "a")


async def test_untyped_objects_live_and_die(world: World) -> None:
    client, kind = world.client, world.untyped
    made = await world.make("a", version="1")
    made["spec"]["version"] = "2"
    updated = await client.update(made)
    assert updated["metadata"]["generation"] == 2
    assert await client.get(kind, "a") == updated
    assert await client.delete(kind, "a") is None
    with pytest.raises(errors.NotFound):
        await client.delete(kind, "a")


async def test_an_update_keeps_what_the_model_does_not_know(world: World) -> None:
    await world.make("a", version="1", note="not in the model")
    app = await world.client.get(world.typed, "a")
    app.spec.version = "2"
    await world.client.update(app)
    spec = (await world.client.get(world.untyped, "a"))["spec"]
    assert spec == {"version": "2", "note": "not in the model", "replicas": 1}


async def test_a_stale_update_is_a_conflict(world: World) -> None:
    await world.make("a", version="1")
    stale = await world.client.get(world.typed, "a")
    await world.client.patch(world.untyped, "a", {"spec": {"version": "2"}})
    stale.spec.version = "3"
    with pytest.raises(errors.Conflict, match="the object has been modified"):
        await world.client.update(stale)
    assert (await world.client.get(world.typed, "a")).spec.version == "2"


async def test_errors_have_their_reason_and_causes(world: World) -> None:
    await world.make("a", replicas=1)
    with pytest.raises(errors.AlreadyExists):
        await world.make("a", replicas=1)
    with pytest.raises(errors.Invalid) as caught:
        await world.make("b", replicas=-1)
    assert "spec.replicas" in [cause["field"] for cause in caught.value.causes]
    with pytest.raises(NoMatch, match='no matches for kind "Absent"'):
        await world.client.get(Resource(f"{world.group}/v1", "Absent"), "a")
    with pytest.raises(NoMatch, match="nowhere"):
        await world.client.get(Resource("nowhere.example.org/v1", "Absent"), "a")


@pytest.mark.parametrize("name", ["", "..", "a/b", "a%2Fb"])
async def test_a_name_that_would_be_another_path_is_refused(world: World, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        await world.client.delete(CONFIG_MAP, name)


async def test_patches(world: World) -> None:
    await world.make("a", version="1", note="n")
    merged = await world.client.patch(world.typed, "a", {"spec": {"version": "2", "note": None}})
    assert merged.spec.version == "2"
    tested = [{"op": "test", "path": "/spec/version", "value": "2"}, {"op": "add", "path": "/spec/note", "value": "x"}]
    patched = await world.client.patch(world.untyped, "a", tested)
    assert patched["spec"] == {"version": "2", "note": "x", "replicas": 1}
    await world.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}})
    strategic = await world.client.patch(CONFIG_MAP, "m", {"data": {"b": "2"}}, patch_type="strategic")
    assert strategic["data"] == {"a": "1", "b": "2"}
    guarded = {"metadata": {"resourceVersion": merged.metadata.resource_version}, "spec": {"note": "y"}}
    with pytest.raises(errors.Conflict):
        await world.client.patch(world.untyped, "a", guarded)


async def test_server_side_apply(world: World) -> None:
    client = world.client
    applied = await client.apply(world.plain("a", version="1", note="x"), field_manager="one")
    assert applied["metadata"]["managedFields"][0]["manager"] == "one"
    with pytest.raises(errors.Conflict) as caught:
        await client.apply(world.plain("a", version="2"), field_manager="two")
    assert "one" in caught.value.causes[0]["message"]
    forced = await client.apply(world.plain("a", version="2"), field_manager="two", force=True)
    assert forced["spec"]["version"] == "2"
    with pytest.raises(ValueError, match="needs a field_manager"):
        await client.apply(world.plain("a"))


async def test_the_status_is_written_apart(world: World) -> None:
    await world.make("a", version="1")
    app = await world.client.get(world.typed, "a")
    app.spec.version = "ignored"
    app.status.ready = 3
    updated = await world.client.update_status(app)
    assert (updated.status.ready, updated.spec.version, updated.metadata.generation) == (3, "1", 1)
    patched = await world.client.patch_status(world.typed, "a", {"status": {"ready": 4}})
    assert patched.status.ready == 4


async def test_scale(world: World) -> None:
    await world.make("a", replicas=2)
    scale = await world.client.get_scale(world.typed, "a")
    assert scale["spec"]["replicas"] == 2
    scale["spec"]["replicas"] = 5
    await world.client.update_scale(world.typed, "a", scale)
    assert (await world.client.get(world.typed, "a")).spec.replicas == 5

    def grow(scale: dict[str, Any]) -> None:
        scale["spec"]["replicas"] += 1

    await world.client.modify(world.untyped, "a", grow, subresource="scale")
    assert (await world.client.get(world.typed, "a")).spec.replicas == 6


async def test_dry_run_and_field_validation(world: World) -> None:
    client = world.client
    await client.create(world.plain("a"), dry_run=True)
    with pytest.raises(errors.NotFound):
        await client.get(world.untyped, "a")
    await client.create(world.plain("a"))
    await client.delete(world.untyped, "a", dry_run=True)
    assert await client.get(world.untyped, "a")
    with pytest.raises(errors.ApiError, match="unknown field") as caught:
        await client.create(world.plain("b", colour="red"), field_validation="Strict")
    assert caught.value.code == 400


async def test_warnings_are_passed_on(world: World, apiserver: Any) -> None:
    told: list[str] = []
    config = load(kubeconfig=apiserver.kubeconfig)
    async with Client(config, namespace=world.client.namespace, on_warning=told.append) as client:
        for name in ("a", "b"):
            await client.create(world.plain(name, colour="red"))
    assert told == ['unknown field "spec.colour"']


async def test_preconditions_of_a_deletion(world: World) -> None:
    made = await world.make("a")
    with pytest.raises(errors.Conflict):
        await world.client.delete(world.untyped, "a", uid="another")
    with pytest.raises(errors.Conflict):
        await world.client.delete(world.untyped, "a", resource_version="1")
    assert await world.client.delete(world.untyped, "a", uid=made["metadata"]["uid"]) is None


async def test_an_object_with_a_finalizer_is_given_back(world: World) -> None:
    app = world.plain("a")
    app["metadata"]["finalizers"] = ["example.org/wait"]
    await world.client.create(app)
    terminating = await world.client.delete(world.typed, "a")
    assert terminating is not None
    assert terminating.metadata.deletion_timestamp is not None
    await world.client.patch(world.untyped, "a", {"metadata": {"finalizers": None}})
    with pytest.raises(errors.NotFound):
        await world.client.get(world.untyped, "a")


async def test_a_collection_is_deleted_by_label(world: World) -> None:
    for index in range(3):
        app = world.plain(f"a{index}")
        app["metadata"]["labels"] = {"odd": str(index % 2)}
        await world.client.create(app)
    gone = await world.client.delete_collection(world.typed, label_selector="odd=0")
    assert sorted(app.metadata.name for app in gone) == ["a0", "a2"]
    assert [app.metadata.name async for app in world.client.list(world.typed)] == ["a1"]


async def test_a_list_in_pages(world: World) -> None:
    for index in range(7):
        await world.make(f"a{index}")
    listing = world.client.list(world.typed, limit=3)
    assert [app.metadata.name async for app in listing] == [f"a{index}" for index in range(7)]
    assert len(await listing.collect()) == 7


async def test_modify_reads_again_after_a_conflict(world: World) -> None:
    await world.make("a", version="0", replicas=1)
    reports: list[ConflictReport] = []
    attempts = 0

    async def change(app: Any) -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            other = {"spec": {"note": f"note {attempts}"}}
            await world.client.patch(world.untyped, "a", other, field_manager=f"rival-{attempts}")
        app.spec.version = str(attempts)

    app = await world.client.modify(world.typed, "a", change, backoff=AT_ONCE, on_conflict=reports.append)
    assert (app.spec.version, attempts) == ("3", 3)
    assert [[str(change) for change in report.changes] for report in reports] == [
        ['.spec.note: null -> "note 1" by rival-1'],
        ['.spec.note: "note 1" -> "note 2" by rival-2'],
    ]
    assert [report.writers for report in reports] == [["rival-1"], ["rival-2"]]
    assert str(reports[0]).startswith("conflict in attempt 1 of 5, written by rival-1")


async def test_modify_gives_up_with_the_last_conflict(world: World) -> None:
    await world.make("a", version="0")
    reports: list[ConflictReport] = []
    attempts = 0

    async def change(app: dict[str, Any]) -> None:
        nonlocal attempts
        attempts += 1
        await world.client.patch(world.untyped, "a", {"spec": {"note": str(attempts)}})
        app["spec"]["version"] = "never"

    with pytest.raises(errors.Conflict):
        await world.client.modify(world.untyped, "a", change, backoff=AT_ONCE, on_conflict=reports.append)
    assert attempts == 5
    assert [report.attempt for report in reports] == [1, 2, 3, 4, 5]
    assert [report.changes[0].after for report in reports] == ["1", "2", "3", "4", "5"]
    assert (await world.client.get(world.untyped, "a"))["spec"] == {"version": "0", "note": "5", "replicas": 1}


async def test_modify_writes_only_what_changes(world: World) -> None:
    for kind in world.kinds:
        before = await world.make("a", version="1", note="n")
        after = await world.client.modify(kind, "a", lambda app: None)
        assert (await world.client.get(world.untyped, "a"))["metadata"] == before["metadata"]
        assert after == await world.client.get(kind, "a")
        await world.client.delete(world.untyped, "a")


async def test_modify_takes_a_new_object_too_and_still_guards_it(world: World) -> None:
    await world.make("a", version="1")
    calls = 0

    async def replace(app: dict[str, Any]) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        if calls == 1:
            await world.client.patch(world.untyped, "a", {"spec": {"note": "seen"}})
        return world.plain("a", version="2", note=app["spec"].get("note", "unseen"))

    app = await world.client.modify(world.untyped, "a", replace, backoff=AT_ONCE)
    assert app["spec"] == {"version": "2", "note": "seen", "replicas": 1}


async def test_modify_of_the_status(world: World) -> None:
    await world.make("a", version="1")

    def ready(app: Any) -> None:
        app.status.ready = 1

    first = await world.client.modify(world.typed, "a", ready, subresource="status")
    again = await world.client.modify(world.typed, "a", ready, subresource="status")
    assert first.status.ready == 1
    assert again.metadata.resource_version == first.metadata.resource_version


async def test_modify_raises_any_other_error_at_once(world: World) -> None:
    await world.make("a", replicas=1)
    calls = 0

    def spoil(app: dict[str, Any]) -> None:
        nonlocal calls
        calls += 1
        app["spec"]["replicas"] = -1

    with pytest.raises(errors.Invalid):
        await world.client.modify(world.untyped, "a", spoil)
    assert calls == 1
    with pytest.raises(errors.NotFound):
        await world.client.modify(world.untyped, "absent", spoil)


async def test_many_writers_lose_nothing(world: World) -> None:
    await world.make("a", replicas=0)

    def grow(app: Any) -> None:
        app.spec.replicas += 1

    async def write() -> None:
        await world.client.modify(world.typed, "a", grow, backoff=Backoff(steps=200, duration=0.002, jitter=1.0))

    await asyncio.gather(*[write() for _ in range(10)])
    assert (await world.client.get(world.typed, "a")).spec.replicas == 10


async def test_retry_on_conflict_by_hand(world: World) -> None:
    await world.make("a", version="0")
    attempts = 0

    async def update() -> dict[str, Any]:
        nonlocal attempts
        attempts += 1
        app = await world.client.get(world.untyped, "a")
        if attempts == 1:
            await world.client.patch(world.untyped, "a", {"spec": {"note": "first"}})
        app["spec"]["version"] = "1"
        return await world.client.update(app)

    assert (await retry_on_conflict(update))["spec"]["version"] == "1"
    assert attempts == 2


@pytest.mark.parametrize("initial", ["auto", "list", "watchlist"])
async def test_a_watch_tells_the_state_and_what_happens(world: World, initial: Any) -> None:
    await world.make("a", version="1")
    async with asyncio.timeout(20), world.client.watch(world.typed, initial=initial) as events:
        first = await anext(events)
        assert (first.type, first.object.metadata.name, first.initial) == ("ADDED", "a", True)
        await world.make("b", version="1")
        await world.client.patch(world.untyped, "a", {"spec": {"version": "2"}})
        await world.client.delete(world.untyped, "b")
        told = [await anext(events) for _ in range(3)]
    assert [(event.type, event.object.metadata.name, event.initial) for event in told] == [
        ("ADDED", "b", False),
        ("MODIFIED", "a", False),
        ("DELETED", "b", False),
    ]
    assert told[1].object.spec.version == "2"


async def test_a_watch_with_selectors(world: World) -> None:
    async with asyncio.timeout(20), world.client.watch(world.untyped, label_selector="x=y") as events:
        for name, labels in (("a", {"x": "n"}), ("b", {"x": "y"})):
            app = world.plain(name)
            app["metadata"]["labels"] = labels
            await world.client.create(app)
        assert (await anext(events)).object["metadata"]["name"] == "b"
        await world.client.patch(world.untyped, "b", {"metadata": {"labels": {"x": "n"}}})
        assert (await anext(events)).type == "DELETED"


async def test_a_kind_that_was_defined_anew_is_found_again(world: World) -> None:
    client = world.client
    group = f"g{uuid4().hex[:10]}.example.org"
    await define(client, definition(group))
    kind = Resource(f"{group}/v1", "MyApp")
    assert [obj async for obj in client.list(kind)] == []
    await client.delete(CRD, f"myapps.{group}")
    async with asyncio.timeout(20), client.watch(CRD, name=f"myapps.{group}") as events:
        while True:
            try:
                await client.get(CRD, f"myapps.{group}")
            except errors.NotFound:
                break
            await anext(events)
    await define(client, definition(group, plural="anewapps", scope="Cluster"))
    obj = {"apiVersion": f"{group}/v1", "kind": "MyApp", "metadata": {"name": "a"}, "spec": {}}
    made = await client.create(obj)
    assert "namespace" not in made["metadata"]
    await client.delete(CRD, f"anewapps.{group}")
