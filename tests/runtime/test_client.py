"""The client that reads from the cache: always its own writes, in whatever order answers and events come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.runtime.kit import MAPS, SOON, Lab, Wire, heard_of

from steersman.apimachinery.errors import ApiError, Conflict, NotFound
from steersman.client import Resource
from steersman.runtime.cache.cache import CacheScope
from steersman.runtime.client import CachedClient
from steersman.runtime.cluster import Cluster
from steersman.runtime.idempotent import Settled, create_or_update


@asynccontextmanager
async def cached(lab: Lab, *kinds: Any, **options: Any) -> AsyncIterator[tuple[CachedClient, Wire]]:
    """A client whose cache watches the kinds, by default ConfigMaps and Widgets."""
    client, wire = lab.client(field_manager="operator")
    cluster = Cluster(client=client, **options)
    await cluster.open()
    for kind in kinds or (MAPS, lab.widget):
        cluster.cache.kind(kind)
    await cluster.cache.start()
    await cluster.cache.wait_synced(SOON)
    wire.sent.clear()
    try:
        yield cluster.client, wire
    finally:
        wire.events.open()
        await cluster.close()


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.mark.parametrize("first", ["answer", "event"])
async def test_its_own_writes_are_read_at_once(lab: Lab, first: str) -> None:
    """Each verb, with the events of the watch held back, or told long before the answer is."""
    async with cached(lab) as (client, wire):
        informer = client.cache.kind(MAPS).informers[0]

        async def write(call: Any) -> Any:
            if first == "answer":
                wire.events.close()
                return await call
            wire.answers.close()
            writing = asyncio.ensure_future(call)
            await wire.answers.until_waiting()
            told = await lab.map(f"after-{len(wire.sent)}")
            await heard_of(informer, told)
            wire.answers.open()
            return await writing

        async def reads() -> Any:
            return await client.get(MAPS, "a")

        await write(client.create(configmap("a", x="1")))
        assert (await reads())["data"] == {"x": "1"}
        found = await reads()
        found["data"]["x"] = "2"
        await write(client.update(found))
        assert (await reads())["data"] == {"x": "2"}
        await write(client.patch(MAPS, "a", {"data": {"x": "3"}}))
        assert (await reads())["data"] == {"x": "3"}
        await write(client.apply(configmap("a", y="4")))
        assert (await reads())["data"] == {"x": "3", "y": "4"}
        [listed] = [
            each async for each in client.list(MAPS, namespace=lab.namespace) if each["metadata"]["name"] == "a"
        ]
        assert listed["data"] == {"x": "3", "y": "4"}
        await write(client.delete(MAPS, "a"))
        with pytest.raises(NotFound):
            await reads()
        await write(client.create(configmap("a", z="5")))
        assert (await reads())["data"] == {"z": "5"}
        assert wire.reads() == []
        wire.events.open()
        await heard_of(informer, await lab.map("the-end"))
        assert (await reads())["data"] == {"z": "5"}


async def test_names_that_the_server_makes_up_are_read_at_once(lab: Lab) -> None:
    async with cached(lab) as (client, wire):
        wire.events.close()
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}}
        made: dict[str, Any] = await client.create(body)
        assert (await client.get(MAPS, made["metadata"]["name"]))["metadata"] == made["metadata"]
        assert wire.reads() == []


async def test_a_status_and_a_scale_are_read_at_once(lab: Lab) -> None:
    await lab.make("a")
    async with cached(lab) as (client, wire):
        wire.events.close()
        await client.patch_status(lab.widget, "a", {"status": {"ready": 7}})
        assert (await client.get(lab.widget, "a"))["status"] == {"ready": 7}
        scale = await client.get_scale(lab.widget, "a")
        scale["spec"]["replicas"] = 9
        await client.update_scale(lab.widget, "a", scale)
        assert (await client.get(lab.widget, "a"))["spec"] == {"replicas": 9}


async def test_a_dry_run_changes_nothing(lab: Lab) -> None:
    await lab.map("a", {"x": "1"})
    async with cached(lab) as (client, _):
        await client.patch(MAPS, "a", {"data": {"x": "2"}}, dry_run=True)
        await client.delete(MAPS, "a", dry_run=True)
        assert (await client.get(MAPS, "a"))["data"] == {"x": "1"}


async def test_what_finalizers_hold_is_there_until_they_go(lab: Lab) -> None:
    await lab.map("held", finalizers=["example.com/hold"])
    await lab.outside.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{lab.namespace}-x"}})
    spaces = Resource("v1", "Namespace")
    async with cached(lab, MAPS, spaces) as (client, wire):
        wire.events.close()
        await client.delete(MAPS, "held")
        assert (await client.get(MAPS, "held"))["metadata"]["deletionTimestamp"]
        await client.delete(spaces, f"{lab.namespace}-x")
        found = await client.get(spaces, f"{lab.namespace}-x")
        assert found["status"]["phase"] == "Terminating"
        wire.events.open()
        wire.answers.close()
        releasing = asyncio.ensure_future(client.patch(MAPS, "held", {"metadata": {"finalizers": None}}))
        await wire.answers.until_waiting()
        await heard_of(client.cache.kind(MAPS).informers[0], await lab.map("later"))
        wire.answers.open()
        await releasing
        with pytest.raises(NotFound):
            await client.get(MAPS, "held")


async def test_reads_come_from_the_cache_and_live_ones_do_not(lab: Lab) -> None:
    await lab.map("a", {"x": "1"})
    async with cached(lab) as (client, wire):
        for _ in range(3):
            assert (await client.get(MAPS, "a"))["data"] == {"x": "1"}
            assert await client.list(MAPS).collect()
        assert wire.reads() == []
        wire.events.close()
        await lab.outside.patch(MAPS, "a", {"data": {"x": "2"}})
        assert (await client.get(MAPS, "a"))["data"] == {"x": "1"}
        assert (await client.live.get(MAPS, "a"))["data"] == {"x": "2"}
        assert [each["data"] async for each in client.live.list(MAPS, namespace=lab.namespace) if each.get("data")]
        assert len(wire.reads()) == 2
        await client.live.patch(MAPS, "a", {"data": {"x": "3"}})
        assert (await client.get(MAPS, "a"))["data"] == {"x": "3"}


async def test_what_is_not_there_is_said_as_the_server_says_it(lab: Lab) -> None:
    async with cached(lab) as (client, wire):
        for kind in (MAPS, lab.widget, lab.typed):
            said: list[ApiError] = []
            for reader in (client, client.live):
                with pytest.raises(NotFound) as failure:
                    await reader.get(kind, "nothing")
                said.append(failure.value)
            assert said[0].message == said[1].message
            assert said[0].details == said[1].details
            assert (said[0].code, said[0].reason) == (said[1].code, said[1].reason)
        assert len(wire.reads()) == 3


async def test_after_a_conflict_the_server_is_asked_once(lab: Lab) -> None:
    await lab.map("a", {"x": "1"})
    async with cached(lab) as (client, wire):
        stale = await client.get(MAPS, "a")
        wire.events.close()
        await lab.outside.patch(MAPS, "a", {"data": {"x": "2"}})
        with pytest.raises(Conflict):
            await client.update({**stale, "data": {"x": "mine"}})
        assert (await client.get(MAPS, "a"))["data"] == {"x": "2"}
        assert (await client.get(MAPS, "a"))["data"] == {"x": "2"}
        assert len(wire.reads()) == 1


async def test_modify_begins_with_the_cache_and_after_a_conflict_asks_the_server(lab: Lab) -> None:
    await lab.map("a", {"x": "1"})
    async with cached(lab) as (client, wire):
        wire.events.close()
        await lab.outside.patch(MAPS, "a", {"data": {"y": "2"}})
        made = await client.modify(MAPS, "a", lambda found: found["data"].update(z="3"))
        assert made["data"] == {"x": "1", "y": "2", "z": "3"}
        assert (len(wire.reads()), wire.conflicts()) == (1, 1)
        assert (await client.get(MAPS, "a"))["data"] == {"x": "1", "y": "2", "z": "3"}


async def test_a_narrowed_cache_has_what_it_selects_and_asks_for_the_rest(lab: Lab) -> None:
    await lab.map("in", {"x": "1"}, labels={"app": "mine"})
    await lab.map("out", {"x": "1"})
    scope = {MAPS: CacheScope(label_selector="app=mine")}
    async with cached(lab, MAPS, watch=scope) as (client, wire):
        assert (await client.get(MAPS, "in"))["data"] == {"x": "1"}
        assert wire.reads() == []
        assert (await client.get(MAPS, "out"))["data"] == {"x": "1"}
        assert len(wire.reads()) == 1
        names = [each["metadata"]["name"] async for each in client.list(MAPS, namespace=lab.namespace)]
        assert names == ["in", "kube-root-ca.crt", "out"] or names == ["in", "out"]
        watched = client.cache.kind(MAPS)
        wire.events.close()
        await client.create(configmap("strange"))
        assert watched.get((lab.namespace, "strange")) is None
        await client.patch(MAPS, "in", {"metadata": {"labels": {"app": "other"}}})
        assert watched.get((lab.namespace, "in")) is None
        assert (await client.get(MAPS, "in"))["metadata"]["labels"] == {"app": "other"}
        wire.events.open()
        await client.patch(MAPS, "in", {"metadata": {"labels": {"app": "mine"}}})
        await heard_of(watched.informers[0], await lab.map("later", labels={"app": "mine"}))
        known = watched.get((lab.namespace, "in"))
        assert known is not None
        assert known["metadata"]["labels"] == {"app": "mine"}


async def test_namespaces_are_watched_each_by_itself_and_others_are_asked_for(lab: Lab) -> None:
    for suffix in ("a", "b"):
        name = f"{lab.namespace}-{suffix}"
        await lab.outside.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await lab.outside.create(configmap("one"), namespace=name)
    first, second = f"{lab.namespace}-a", f"{lab.namespace}-b"
    spaces = Resource("v1", "Namespace")
    async with cached(lab, MAPS, spaces, default=CacheScope(namespaces=[first, lab.namespace])) as (client, wire):
        assert await client.get(MAPS, "one", namespace=first)
        assert await client.list(MAPS, namespace=first).collect()
        assert (await client.get(spaces, first))["metadata"]["name"] == first
        assert wire.reads() == []
        assert await client.get(MAPS, "one", namespace=second)
        assert len(wire.reads()) == 1
        assert await client.list(MAPS).collect()
        assert len(wire.reads()) > 1, "all namespaces are not watched"
        assert len(client.cache.kind(MAPS).informers) == 2
        assert len(client.cache.kind(spaces).informers) == 1, "namespaces mean nothing to a kind without one"


async def test_selectors_mean_in_the_cache_what_they_mean_to_the_server(lab: Lab) -> None:
    for number, labels in enumerate([{}, {"a": "1"}, {"a": "2", "b": "x"}, {"b": ""}]):
        await lab.map(f"m{number}", labels=labels)
    selectors = ["a", "!a", "a=1", "a!=1", "a in (1,2),b", "a notin (1)", "b=", "a,!b", "a=1,a=2"]
    async with cached(lab) as (client, wire):
        for label_selector in selectors:
            for field_selector in (None, "metadata.name=m1", "metadata.name!=m2"):
                found = []
                for reader in (client, client.live):
                    listing = reader.list(
                        MAPS, namespace=lab.namespace, label_selector=label_selector, field_selector=field_selector
                    )
                    found.append([each["metadata"]["name"] async for each in listing])
                assert found[0] == found[1], (label_selector, field_selector)
        assert len(wire.reads()) == 3 * len(selectors)


async def test_objects_are_found_by_an_index(lab: Lab) -> None:
    client, _ = lab.client()
    cluster = Cluster(client=client)
    cluster.index(lab.typed, "replicas", lambda raw: [str(raw["spec"]["replicas"])])
    await cluster.open()
    await cluster.cache.start()
    await cluster.cache.wait_synced(SOON)
    for number in range(4):
        await cluster.client.create(lab.typed(metadata={"name": f"w{number}"}, spec={"replicas": number % 2}))
    found = cluster.client.by_index(lab.typed, "replicas", "1")
    assert [(type(each).__name__, each.metadata.name) for each in found] == [("Widget", "w1"), ("Widget", "w3")]
    with pytest.raises(LookupError, match="no index 'color'"):
        cluster.client.by_index(lab.widget, "color", "red")
    with pytest.raises(LookupError, match="ConfigMap is not watched"):
        cluster.client.by_index(MAPS, "replicas", "1")
    await cluster.close()


async def test_what_is_handed_out_cannot_change_the_cache(lab: Lab) -> None:
    await lab.map("a", {"x": "1"})
    await lab.make("w", 1)
    async with cached(lab) as (client, _):
        found = await client.get(MAPS, "a")
        found["data"]["x"] = found["metadata"]["name"] = "changed"
        typed = await client.get(lab.typed, "w")
        typed.spec.replicas = 5
        for each in await client.list(MAPS).collect():
            each.clear()
        assert (await client.get(MAPS, "a"))["data"] == {"x": "1"}
        assert (await client.get(lab.typed, "w")).spec.replicas == 1


async def test_a_kind_that_is_watched_no_more_is_asked_for(lab: Lab) -> None:
    await lab.map("a", {"x": "1"})
    async with cached(lab) as (client, wire):
        await client.cache.remove(MAPS)
        assert (await client.get(MAPS, "a"))["data"] == {"x": "1"}
        assert len(wire.reads()) == 1


async def test_a_definition_made_anew_with_another_scope_is_followed(lab: Lab) -> None:
    """R10."""
    await lab.make("old")
    async with cached(lab) as (client, _):
        assert await client.get(lab.widget, "old")
        definitions = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        await lab.outside.delete(definitions, f"widgets.{lab.group}")
        await lab.until_gone(definitions, f"widgets.{lab.group}")
        await lab.define(scope="Cluster")
        made = await client.create(
            {"apiVersion": f"{lab.group}/v1", "kind": "Widget", "metadata": {"name": "new"}, "spec": {}}
        )
        assert "namespace" not in made["metadata"]
        async with asyncio.timeout(SOON):
            await heard_of(client.cache.kind(lab.widget).informers[0], made)
        assert (await client.get(lab.widget, "new"))["metadata"]["uid"] == made["metadata"]["uid"]
        with pytest.raises(NotFound):
            await client.get(lab.widget, "old")
        later = await lab.outside.create(
            {"apiVersion": f"{lab.group}/v1", "kind": "Widget", "metadata": {"name": "later"}, "spec": {}}
        )
        await heard_of(client.cache.kind(lab.widget).informers[0], later)


async def test_what_a_transform_leaves_is_never_written_back(lab: Lab) -> None:
    def names_only(raw: dict[str, Any]) -> dict[str, Any]:
        if raw["metadata"]["name"] == "bad":
            raise KeyError("data")
        return {**raw, "data": {}}

    await lab.map("a", {"x": "1"})
    async with cached(lab, MAPS, watch={MAPS: CacheScope(transform=names_only)}) as (client, _):
        assert (await client.get(MAPS, "a"))["data"] == {}
        made = await client.modify(MAPS, "a", lambda found: found["data"].update(y="2"))
        assert made["data"] == {"x": "1", "y": "2"}
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"z": "3"}}
        written = await create_or_update(client, wanted, None, Settled())
        assert written.object["data"] == {"x": "1", "y": "2", "z": "3"}
        assert (await client.create(configmap("bad", x="1")))["data"] == {"x": "1"}, "it was written all the same"


async def test_a_kind_may_be_watched_at_any_time_under_any_name_for_it(lab: Lab) -> None:
    await lab.make("w")
    async with cached(lab, MAPS) as (client, wire):
        assert (await client.get(lab.widget, "w"))["spec"] == {"replicas": 1}
        assert len(wire.reads("/widgets")) == 1
        named = Resource(f"{lab.group}/v1", "Widget", "widgets", True)
        watched = client.cache.kind(named)
        assert client.cache.kind(lab.typed) is client.cache.kind(lab.widget) is watched
        heard: list[str] = []
        watched.listen(lambda event: heard.append(event.key[1]))
        await client.cache.wait_synced(SOON)
        assert heard == ["w"]
        assert (await client.get(lab.typed, "w")).spec.replicas == 1
        assert len(wire.reads("/widgets")) == 1
        assert len([sent for sent in wire.sent if sent.watch and "/widgets" in sent.path]) == 1
        await client.cache.remove(lab.widget)
        assert await client.get(lab.widget, "w")
        assert len(wire.reads("/widgets")) == 2


async def test_a_whole_collection_that_is_deleted_goes_with_the_watch(lab: Lab) -> None:
    for name in ("a", "b"):
        await lab.make(name)
    async with cached(lab) as (client, _):
        await client.delete_collection(lab.widget)
        await heard_of(client.cache.kind(lab.widget).informers[0], await lab.make("c"))
        assert [each["metadata"]["name"] async for each in client.list(lab.widget)] == ["c"]
