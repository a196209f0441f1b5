"""Planned compactions and restarts, and webhooks that are slow, fail or talk nonsense."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.apiserver.admission.test_webhooks import Hook, entry, register, serving
from tests.conftest import RunningServer, running

from steersman.apiserver.faults import Fault, FaultPlan
from steersman.apiserver.server import ServerConfig
from steersman.client.client import Client
from steersman.client.config import Config
from steersman.client.errors import ClientError
from steersman.client.resources import Resource
from steersman.client.transport import TransportError
from steersman.net.pki import ServerFiles
from steersman.runtime.cache.cache import CacheScope
from steersman.runtime.manager import Manager
from steersman.testing import control_plane, eventually_async
from steersman.testing import running as working

MAP = Resource("v1", "ConfigMap")
MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


@pytest.fixture
def plan() -> FaultPlan:
    return FaultPlan()


@pytest.fixture
async def server(certificates: ServerFiles, tmp_path: Path, plan: FaultPlan) -> AsyncIterator[RunningServer]:
    async with running(certificates, tmp_path, faults=plan) as server:
        yield server


@pytest.mark.parametrize("store", ["memory://", "sqlite:///{}/store.db"])
async def test_old_revisions_are_gone_after_a_compaction(
    certificates: ServerFiles, tmp_path: Path, plan: FaultPlan, store: str
) -> None:
    async with running(certificates, tmp_path, store.format(tmp_path), faults=plan) as server:
        made = [await server.request("POST", MAPS, config_map(name)) for name in "abc"]
        page = (await server.request("GET", MAPS, params={"limit": "1"})).body
        old = made[0].body["metadata"]["resourceVersion"]
        newest = (await server.request("POST", MAPS, config_map("d"))).body["metadata"]["resourceVersion"]
        plan.add(Fault(verbs=["get"], names=["a"], compact=True, times=1))
        assert (await server.request("GET", f"{MAPS}/a")).status == 200
        for parameters in ({"limit": "1", "continue": page["metadata"]["continue"]}, exact(old)):
            gone = await server.request("GET", MAPS, params=parameters)
            assert (gone.status, gone.body["reason"]) == (410, "Expired"), parameters
        assert await first_event(server, old) == ("ERROR", 410)
        assert (await server.request("GET", MAPS, params=exact(newest))).status == 200
        await server.request("POST", MAPS, config_map("e"))
        assert await first_event(server, newest) == ("ADDED", "e")


def exact(version: str) -> dict[str, str]:
    return {"resourceVersion": version, "resourceVersionMatch": "Exact"}


async def first_event(server: RunningServer, after: str) -> tuple[str, Any]:
    parameters = {"watch": "true", "resourceVersion": after}
    async with server.session() as session, session.get(f"{server.url}{MAPS}", params=parameters) as answer:
        assert answer.status == 200
        event = json.loads(await answer.content.readline())
    return event["type"], event["object"].get("code") or event["object"]["metadata"]["name"]


async def test_an_informer_bears_a_compaction_while_it_is_cut_off(server: RunningServer, plan: FaultPlan) -> None:
    seen: set[str] = set()

    async def reconcile(ctx: Any, obj: dict[str, Any]) -> None:
        seen.add(obj["metadata"]["name"])

    plan.add(Fault(verbs=["watch"], resources=["configmaps"], watch="drop", events=2, times=1))
    plan.add(Fault(verbs=["create"], resources=["configmaps"], compact=True))
    async with await server.client(namespace="default") as client:
        manager = Manager(client=client, watch_default=CacheScope(namespaces=["default"]))
        manager.controller(MAP, reconcile)
        async with working(manager):
            for name in "abcdef":
                await client.create(config_map(name))

            async def check() -> None:
                assert {*"abcdef"} <= seen

            await eventually_async(check, timeout=60)


async def test_connections_are_cut_and_the_server_comes_back(server: RunningServer, plan: FaultPlan) -> None:
    plan.add(Fault(verbs=["create"], restart=0.05, times=1))
    async with server.session() as session, session.get(f"{server.url}{MAPS}?watch=true") as watch:
        assert watch.status == 200
        with pytest.raises(aiohttp.ClientError):
            await server.request("POST", MAPS, config_map("a"))
        with pytest.raises(aiohttp.ClientError):
            async for _ in watch.content:
                pass
    async with asyncio.timeout(60):
        while True:
            try:
                answer = await server.request("GET", f"{MAPS}/a")
                break
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.02)
    assert answer.status == 404


async def test_who_connects_while_it_is_away_is_refused(
    certificates: ServerFiles, tmp_path: Path, plan: FaultPlan
) -> None:
    """And it can be stopped then."""
    async with asyncio.timeout(60):
        async with running(certificates, tmp_path, faults=plan) as server:
            plan.add(Fault(verbs=["create"], restart=3600))
            with pytest.raises(aiohttp.ClientError):
                await server.request("POST", MAPS, config_map("a"))
            with pytest.raises(aiohttp.ClientConnectorError):
                await server.request("GET", f"{MAPS}/a")


async def test_an_informer_bears_a_restart() -> None:
    """On the event loop that a server uses by itself."""
    plan, seen = FaultPlan(), set()

    async def reconcile(ctx: Any, obj: dict[str, Any]) -> None:
        seen.add(obj["metadata"]["name"])

    plan.add(Fault(verbs=["get"], names=["nothing"], restart=0.1, times=3))
    with control_plane(config=ServerConfig(insecure=True, faults=plan)) as plane:
        async with Client(Config(plane.url)) as client:
            manager = Manager(Config(plane.url), watch_default=CacheScope(namespaces=["default"]))
            manager.controller(MAP, reconcile)
            async with working(manager):
                for name in "abc":
                    await created(client, name)
                    await away(client)

                async def check() -> None:
                    assert {*"abc"} <= seen

                await eventually_async(check, timeout=60)
    assert plan.struck == 3


async def away(client: Client) -> None:
    with pytest.raises(ClientError):
        await client.rest.json("GET", f"{MAPS}/nothing")


async def created(client: Client, name: str) -> None:
    async def check() -> None:
        try:
            await client.create(config_map(name))
        except TransportError:
            raise AssertionError from None

    await eventually_async(check, timeout=60)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(webhooks=["hook.example.com"], delay=30), "context deadline exceeded"),
        (Fault(webhooks=["*"], status=500), "a fault was planned here"),
        (Fault(webhooks=["hook.example.com"], disconnect="before"), "EOF"),
        (Fault(webhooks=["hook.example.com"], disconnect="after"), "EOF"),
        (Fault(webhooks=["other.example.com", "hook.example.com"], garbage=True), "unexpected end of JSON input"),
    ],
    ids=str,
)
async def test_webhooks_fail(server: RunningServer, plan: FaultPlan, fault: Fault, said: str) -> None:
    async with serving() as hook:
        await register(server, "Validating", entry(hook, timeoutSeconds=1))
        plan.add(fault)
        refused = await server.request("POST", MAPS, config_map("a"))
        assert (refused.status, refused.body["reason"]) == (500, "InternalError")
        assert 'failed calling webhook "hook.example.com"' in refused.body["message"]
        assert said in refused.body["message"]
        assert len(hook.requests) == (1 if fault.disconnect == "after" else 0)
        plan.clear()
        assert (await server.request("POST", MAPS, config_map("a"))).status == 201


async def test_a_webhook_may_take_its_time_now_and_then(server: RunningServer, plan: FaultPlan) -> None:
    async with serving() as hook:
        await register(server, "Validating", entry(hook, failurePolicy="Ignore"), slow(hook))
        plan.add(Fault(webhooks=["slow.example.com"], delay=0.1, every=2))
        plan.add(Fault(webhooks=["slow.example.com"], status=503, after=1))
        for name in "abcd":
            await server.request("POST", MAPS, config_map(name))
        assert plan.struck > 2
        assert (await server.request("GET", f"{MAPS}/a")).status == 200


def slow(hook: Hook) -> dict[str, Any]:
    return entry(hook, name="slow.example.com", failurePolicy="Ignore")
