"""Nothing beyond a quota is let in, whoever creates, deletes and fails at the same time; what is not used is free."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from steersman.net.pki import ServerFiles
from steersman.store.interface import Premises
from steersman.store.memory import MemoryStore

from ...conftest import RunningServer, running

Object = dict[str, Any]
CORE = "/api/v1/namespaces/default"
QUOTAS = f"{CORE}/resourcequotas"


def quota(name: str, **hard: str) -> Object:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}}


def config_map(name: str, **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


async def until(
    server: RunningServer, name: str, wanted: Callable[[Mapping[str, str]], bool], namespace: str = "default"
) -> Mapping[str, str]:
    """What a quota says is used, once it is as wanted."""
    scope = server.plane.server.core.catalog.look_up("", "v1", "resourcequotas")
    assert scope is not None
    changed = asyncio.Event()

    def notify(change: object) -> None:
        changed.set()

    scope.cache.watchers.append(notify)
    try:
        async with asyncio.timeout(10):
            while True:
                changed.clear()
                entry = scope.cache.get(f"{namespace}/{name}")
                used = ((entry.decode().get("status") or {}).get("used") or {}) if entry else {}
                if used and wanted(used):
                    return used
                await changed.wait()
    finally:
        scope.cache.watchers.remove(notify)


async def limited(server: RunningServer, number: int) -> None:
    """A quota of so many ConfigMaps more than there are, once it counts."""
    await server.request("POST", QUOTAS, quota("q", configmaps=str(number + 1)))  # kube-root-ca.crt is one
    await until(server, "q", lambda used: used["configmaps"] == "1")


async def names(server: RunningServer) -> set[str]:
    listed = await server.request("GET", f"{CORE}/configmaps")
    return {item["metadata"]["name"] for item in listed.body["items"]} - {"kube-root-ca.crt"}


async def test_creators_at_the_same_time_get_no_more_than_there_is(durable_apiserver: RunningServer) -> None:
    await limited(durable_apiserver, 7)
    answers = await asyncio.gather(
        *(durable_apiserver.request("POST", f"{CORE}/configmaps", config_map(f"c-{number}")) for number in range(30))
    )
    assert sorted(answer.status for answer in answers) == [201] * 7 + [403] * 23
    assert len(await names(durable_apiserver)) == 7
    assert (await until(durable_apiserver, "q", lambda used: True))["configmaps"] == "8"


async def test_what_is_created_and_deleted_all_the_time_is_counted_right(durable_apiserver: RunningServer) -> None:
    await limited(durable_apiserver, 3)
    most = 0

    async def churn(number: int) -> int:
        nonlocal most
        made, chance = 0, random.Random(number)
        for attempt in range(12):
            name = f"c-{number}-{attempt}"
            if (await durable_apiserver.request("POST", f"{CORE}/configmaps", config_map(name))).status == 201:
                made += 1
                most = max(most, len(await names(durable_apiserver)))
                if chance.random() < 0.9:
                    await durable_apiserver.request("DELETE", f"{CORE}/configmaps/{name}")
        return made

    made = await asyncio.gather(*(churn(number) for number in range(6)))
    assert sum(made) > 3
    assert most <= 3
    left = str(len(await names(durable_apiserver)) + 1)
    assert (await until(durable_apiserver, "q", lambda used: used["configmaps"] == left))["configmaps"] == left


class SlowStore(MemoryStore):
    """Holds up the objects of one name until it is told not to."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._end = f"/{name}".encode()
        self.arrived, self.goes_on = asyncio.Event(), asyncio.Event()

    async def swap(self, key: bytes, expected: int, value: bytes | None, premises: Premises | None = None) -> int:
        if key.endswith(self._end):
            self.arrived.set()
            await self.goes_on.wait()
        return await super().swap(key, expected, value, premises)


async def test_what_is_on_its_way_into_the_store_counts(certificates: ServerFiles, tmp_path: Path) -> None:
    store = SlowStore("slow")
    async with running(certificates, tmp_path, store) as server:  # type: ignore[arg-type]
        await limited(server, 2)
        await server.request("POST", f"{CORE}/configmaps", config_map("a"))
        slow = asyncio.create_task(server.request("POST", f"{CORE}/configmaps", config_map("slow")))
        await store.arrived.wait()
        await server.request("DELETE", f"{CORE}/configmaps/a")
        await _let_the_controller_work(server)
        answers = [await server.request("POST", f"{CORE}/configmaps", config_map(name)) for name in ("b", "c")]
        store.goes_on.set()
        assert (await slow).status == 201
        assert [answer.status for answer in answers] == [403, 403]
        await until(server, "q", lambda used: used["configmaps"] == "2")
        assert (await server.request("POST", f"{CORE}/configmaps", config_map("b"))).status == 201


async def _let_the_controller_work(server: RunningServer) -> None:
    """Wait for what it does after all that is to do by now."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    await server.request("POST", "/api/v1/namespaces", space)
    await server.request("POST", "/api/v1/namespaces/other/resourcequotas", quota("q", pods="1"))
    await until(server, "q", lambda used: True, "other")


async def test_what_fails_after_it_was_charged_is_given_back(apiserver: RunningServer) -> None:
    await limited(apiserver, 2)
    assert (await apiserver.request("POST", f"{CORE}/configmaps", config_map("a"))).status == 201
    again = await apiserver.request("POST", f"{CORE}/configmaps", config_map("a"))
    assert again.status == 409
    await until(apiserver, "q", lambda used: used["configmaps"] == "2")
    assert (await apiserver.request("POST", f"{CORE}/configmaps", config_map("b"))).status == 201


async def test_several_quotas_are_charged_together(apiserver: RunningServer) -> None:
    for name, hard in (("one", "3"), ("two", "5")):
        await apiserver.request("POST", QUOTAS, quota(name, **{"count/secrets": hard}))
        await until(apiserver, name, lambda used: True)
    secret = {"apiVersion": "v1", "kind": "Secret"}
    answers = [
        await apiserver.request("POST", f"{CORE}/secrets", {**secret, "metadata": {"name": f"s-{number}"}})
        for number in range(4)
    ]
    assert [answer.status for answer in answers] == [201, 201, 201, 403]
    assert "exceeded quota: one, requested: count/secrets=1, used: count/secrets=3" in answers[3].body["message"]
    for name in ("one", "two"):
        assert (await until(apiserver, name, lambda used: True))["count/secrets"] == "3"


async def test_another_namespace_is_not_concerned(apiserver: RunningServer) -> None:
    await limited(apiserver, 0)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    await apiserver.request("POST", "/api/v1/namespaces", space)
    assert (await apiserver.request("POST", "/api/v1/namespaces/other/configmaps", config_map("a"))).status == 201
    assert (await apiserver.request("POST", f"{CORE}/configmaps", config_map("a"))).status == 403


async def test_custom_resources_are_counted_as_soon_as_they_are_served(apiserver: RunningServer) -> None:
    await apiserver.request("POST", QUOTAS, quota("q", **{"count/widgets.test.example.com": "1"}))
    path = await apiserver.define()
    used = await until(apiserver, "q", lambda used: True)
    assert used == {"count/widgets.test.example.com": "0"}
    widget = {"apiVersion": "test.example.com/v1", "kind": "Widget"}
    answers = [
        await apiserver.request("POST", path, {**widget, "metadata": {"name": name}}) for name in ("first", "second")
    ]
    assert [answer.status for answer in answers] == [201, 403]


async def test_usage_outlives_a_restart(certificates: ServerFiles, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with running(certificates, tmp_path, store) as server:
        await limited(server, 1)
        assert (await server.request("POST", f"{CORE}/configmaps", config_map("a"))).status == 201
    async with running(certificates, tmp_path, store) as server:
        assert (await server.request("POST", f"{CORE}/configmaps", config_map("b"))).status == 403


@pytest.mark.parametrize("name", ["ResourceQuota", "LimitRanger"])
async def test_the_plugins_can_be_disabled(certificates: ServerFiles, tmp_path: Path, name: str) -> None:
    limits = {"type": "Pod", "max": {"memory": "1Mi"}}
    bounds = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [limits]}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    async with running(certificates, tmp_path, disabled_plugins=frozenset({name})) as server:
        if name == "ResourceQuota":
            await server.request("POST", QUOTAS, quota("q", pods="0"))
            await until(server, "q", lambda used: True)
        else:
            await server.request("POST", f"{CORE}/limitranges", bounds)
        assert (await server.request("POST", f"{CORE}/pods", pod)).status == 201
