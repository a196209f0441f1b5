"""A test's own server, compacted, started again, and moved in time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

import steersman as st
from steersman._util import clock
from steersman.client.config.credentials import StaticCredentials
from steersman.testing import ApiServer, advance, eventually, eventually_async, running
from steersman.testing.apiserver import fresh_server

MAP = st.Resource("v1", "ConfigMap")
EVENT = st.Resource("v1", "Event")


def config_map(name: str) -> st.Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


@pytest.fixture
def apiserver(tmp_path: Path) -> Iterator[ApiServer]:
    with fresh_server(tmp_path) as server:
        yield server


def test_lists_at_old_revisions_expire_with_a_compaction(apiserver: ApiServer) -> None:
    old = apiserver.kube.create(config_map("a"))["metadata"]["resourceVersion"]
    apiserver.kube.create(config_map("b"))
    listing = apiserver.kube.list(MAP, resource_version=old, resource_version_match="Exact")
    assert [item["metadata"]["name"] for item in listing.collect() if item["metadata"]["namespace"] == "default"] == [
        "a"
    ]
    apiserver.compact()
    with pytest.raises(st.Gone):
        apiserver.kube.list(MAP, resource_version=old, resource_version_match="Exact").collect()


async def test_an_operator_goes_on_after_its_server_was_started_again(apiserver: ApiServer) -> None:
    seen: list[str] = []

    async def reconcile(ctx: st.Context, obj: st.Object) -> None:
        seen.append(obj["metadata"]["name"])

    url = apiserver.url
    manager = st.Manager(apiserver.config)
    manager.controller(MAP, reconcile)
    async with running(manager):
        uid = (await asyncio.to_thread(apiserver.kube.create, config_map("a")))["metadata"]["uid"]
        for turn in range(2):
            await asyncio.to_thread(apiserver.restart, 0.05)
            await asyncio.to_thread(apiserver.kube.create, config_map(f"b{turn}"))

            async def check(turn: int = turn) -> None:
                assert f"b{turn}" in seen

            await eventually_async(check, timeout=60)
    assert apiserver.url == url
    assert apiserver.kube.get(MAP, "a")["metadata"]["uid"] == uid
    assert apiserver.timeline is not None
    assert len([entry for entry in apiserver.timeline.entries() if entry.verb == "create"]) == 3


def test_events_and_tokens_expire(apiserver: ApiServer) -> None:
    kube, before = apiserver.kube, clock.now()
    involved = {"kind": "ConfigMap", "namespace": "default", "name": "a"}
    kube.create({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": involved})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    token = kube.portal.call(kube.client.rest.json("POST", path, body=request))["status"]["token"]
    bearer = st.Config(apiserver.url, credentials=StaticCredentials(f"Bearer {token}"))
    with st.SyncClient(bearer) as account:
        assert account.server_version()
        with pytest.raises(st.Forbidden):
            account.get(MAP, "a")
        apiserver.advance(1800)
        assert kube.get(EVENT, "e")
        with pytest.raises(st.Forbidden):
            account.get(MAP, "a")
        apiserver.advance(1900)
        with pytest.raises(st.Unauthorized):
            account.get(MAP, "a")

    def gone() -> None:
        with pytest.raises(st.NotFound):
            kube.get(EVENT, "e")

    eventually(gone, timeout=60)
    made = kube.create(config_map("late"))["metadata"]["creationTimestamp"]
    assert datetime.fromisoformat(made).timestamp() - before > 3600


async def test_the_wall_clock_goes_on_with_an_operators_time_if_it_is_asked_to() -> None:
    before, wall = asyncio.get_running_loop().time(), clock.now()
    await advance(100)
    assert clock.now() - wall < 90
    await advance(100, wall=True)
    try:
        assert clock.now() - wall >= 100
        assert asyncio.get_running_loop().time() - before >= 200
    finally:
        clock.move(-100)


def test_what_is_moved_is_set_back_when_the_server_stops(tmp_path: Path) -> None:
    before = clock.now()
    with fresh_server(tmp_path) as server:
        server.advance(5000)
        assert clock.now() - before >= 5000
    assert clock.now() - before < 5000


def test_a_real_cluster_is_left_alone(apiserver: ApiServer) -> None:
    real = ApiServer(apiserver.config, apiserver.kube, apiserver.directory, is_real=True)
    for act in (real.compact, real.restart, lambda: real.advance(1)):
        with pytest.raises(RuntimeError, match=r"^a real cluster cannot be "):
            act()
