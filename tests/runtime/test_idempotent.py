"""Create or update, and apply: written where it makes a difference to the server, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.kit import MAPS, Lab, Log, started

from steersman.client import Resource

DEPLOYMENT = Resource("apps/v1", "Deployment")
SERVICE = Resource("v1", "Service")


def deployment(name: str, **more: Any) -> dict[str, Any]:
    """With as few fields as a person would write; the server fills in some thirty."""
    container = {
        "name": "main",
        "image": "nginx",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": "1000m", "memory": "0.5Gi"}},
        "env": [{"name": "A", "value": ""}],
        "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
    }
    spec = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        **more,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def service(name: str) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("how", ["create_or_update", "apply", "change"])
async def test_what_the_server_fills_in_is_not_written_again(lab: Lab, how: str) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        if widget.metadata.name != "w":
            return
        done = []
        for wanted in (deployment("d"), service("d")):
            if how == "apply":
                done.append((await ctx.apply(wanted)).operation)
            elif how == "change":

                def reset(found: Any, wanted: Any = wanted) -> None:
                    # The documented trap of controllerutil.CreateOrUpdate: this takes the defaults away each time.
                    found["spec"] = {**wanted["spec"], **{k: v for k, v in found["spec"].items() if "luster" in k}}

                done.append((await ctx.create_or_update(wanted, reset)).operation)
            else:
                done.append((await ctx.create_or_update(wanted)).operation)
        await runs.add((ctx.reasons[0].cause, *done))

    manager, wire = lab.manager()
    controller = manager.controller(lab.typed, reconcile).owns(DEPLOYMENT).owns(SERVICE)
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        assert runs.entries == [("created", "created", "created")]
        wire.sent.clear()
        for number in range(3):
            await lab.outside.patch(lab.widget, "w", {"metadata": {"labels": {"touch": str(number)}}})
            await runs.until(2 + number)
        await lab.settled(manager, lab.widget)
        assert {entry[1:] for entry in runs.entries if entry[0] == "updated"} == {("unchanged", "unchanged")}
        assert [sent for sent in wire.writes() if "marker" not in sent.path and sent.method == "PUT"] == []
        assert controller.name == "widget"


@pytest.mark.parametrize("how", ["create_or_update", "apply"])
async def test_drift_is_repaired_and_what_others_add_stays(lab: Lab, how: str) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg", "labels": {"a": "b"}}}
        call = ctx.apply if how == "apply" else ctx.create_or_update
        written = await call({**wanted, "data": {"replicas": str(widget.spec.replicas)}})
        await runs.add(written.operation)

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile).owns(MAPS)
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        await lab.outside.patch(
            MAPS, "cfg", {"data": {"replicas": "77", "theirs": "x"}, "metadata": {"labels": {"c": "d"}}}
        )
        found = await lab.until(
            MAPS, "cfg", lambda found: found["data"].get("replicas") == "1" and "theirs" in found["data"]
        )
        assert found["data"] == {"replicas": "1", "theirs": "x"}
        assert found["metadata"]["labels"] == {"a": "b", "c": "d"}
        await runs.until(2)
        assert runs.entries == ["created", "updated"]
        await lab.outside.patch(MAPS, "cfg", {"data": {"theirs": "y"}})
        await runs.until(3)
        assert runs.entries[2] == "unchanged"
        assert wire.conflicts() == 0
        await lab.outside.delete(MAPS, "cfg")
        await runs.until(4)
        assert runs.entries[3] == "created"


async def test_what_is_applied_no_more_goes_away(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        data = {f"k{number}": "v" for number in range(widget.spec.replicas)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg"}, "data": data}
        await runs.add((await ctx.apply(body)).object["data"])

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile).owns(MAPS)
    async with started(manager):
        await lab.make("w", 3)
        await runs.until(1)
        await lab.outside.patch(lab.widget, "w", {"spec": {"replicas": 1}})
        await runs.until(2)
    assert (await lab.outside.get(MAPS, "cfg"))["data"] == {"k0": "v"}


async def test_a_race_for_the_same_object_is_won_in_the_end(lab: Lab) -> None:
    """The object was made, changed and deleted by others, and the watch has not told it yet."""
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        wire.events.close()
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg"}, "data": {"x": "mine"}}
        written = []
        if len(runs) == 0:
            await lab.map("cfg", {"x": "theirs"})
            written.append((await ctx.create_or_update(body)).operation)
            await lab.outside.patch(MAPS, "cfg", {"data": {"x": "theirs again"}})
            body["data"]["y"] = "mine"
            written.append((await ctx.create_or_update(body)).operation)
            await lab.outside.delete(MAPS, "cfg")
            body["data"]["z"] = "mine"
            written.append((await ctx.create_or_update(body)).operation)
        await runs.add(written)
        wire.events.open()

    manager, wire = lab.manager()
    manager.controller(lab.typed, reconcile).watches(MAPS, lambda found: [])
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        assert runs.entries[0] == ["updated", "updated", "created"]
    assert (await lab.outside.get(MAPS, "cfg"))["data"] == {"x": "mine", "y": "mine", "z": "mine"}


async def test_typed_objects_and_changes_that_return_a_new_one(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        if widget.metadata.name != "parent":
            return
        typed = lab.typed(metadata={"name": "part"}, spec={"replicas": 3})
        first = await ctx.create_or_update(typed)
        second = await ctx.create_or_update(lab.typed(metadata={"name": "part"}, spec={"replicas": 3}))

        async def change(found: Any) -> Any:
            return found.model_copy(update={"spec": type(found.spec)(replicas=4)})

        third = await ctx.create_or_update(lab.typed(metadata={"name": "part"}, spec={}), change)
        fourth = await ctx.create_or_update(lab.typed(metadata={"name": "part"}, spec={}), change)
        await runs.add([each.operation for each in (first, second, third, fourth)])
        assert third.object.spec.replicas == 4
        assert third.object.metadata.owner_references[0].name == "parent"

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("parent")
        await runs.until(1)
        assert runs.entries == [["created", "unchanged", "updated", "unchanged"]]


async def test_what_belongs_to_another_is_not_taken(lab: Lab) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}}
        try:
            await runs.add((await ctx.create_or_update(body)).operation)
        except Exception as error:
            await runs.add(type(error).__name__)

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile).watches(MAPS, lambda found: [])
    async with started(manager):
        await lab.make("first")
        await runs.until(1)
        await lab.make("second")
        await runs.until(2)
        assert runs.entries[:2] == ["created", "AlreadyOwned"]
    [owner] = (await lab.outside.get(MAPS, "shared"))["metadata"]["ownerReferences"]
    assert (owner["name"], owner["controller"], owner["blockOwnerDeletion"]) == ("first", True, True)


async def test_other_owners_stay(lab: Lab) -> None:
    runs = Log()
    other = await lab.map("other")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"]}
    await lab.map("cfg", ownerReferences=[owner])

    async def reconcile(ctx: Any, widget: Any) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg"}}
        await runs.add((await ctx.create_or_update(body)).operation)

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile).owns(MAPS)
    async with started(manager):
        await lab.make("w")
        await runs.until(1)
        await lab.outside.patch(lab.widget, "w", {"metadata": {"labels": {"a": "b"}}})
        await runs.until(2)
    assert runs.entries == ["updated", "unchanged"]
    references = (await lab.outside.get(MAPS, "cfg"))["metadata"]["ownerReferences"]
    assert [(each["name"], each.get("controller")) for each in references] == [("other", None), ("w", True)]
