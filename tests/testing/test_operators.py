"""Operators that run while a test does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import steersman as st
from steersman.testing import ApiServer, running
from steersman.testing.apiserver import fresh_server

MAP = st.Resource("v1", "ConfigMap")


@pytest.fixture
def apiserver(tmp_path: Path) -> Iterator[ApiServer]:
    with fresh_server(tmp_path) as server:
        yield server


async def test_an_operator_works_until_the_block_ends(apiserver: ApiServer) -> None:
    async def reconcile(ctx: st.Context, found: st.Object) -> None:
        await ctx.client.patch(MAP, found["metadata"]["name"], {"data": {"seen": "yes"}})

    manager = st.Manager(apiserver.config)
    manager.controller(MAP, reconcile)
    async with running(manager), apiserver.client() as client:
        assert manager.ready.is_set()
        await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        async for event in client.watch(MAP, name="a"):
            if event.object.get("data") == {"seen": "yes"}:
                break
    assert not manager.leading.is_set()


async def test_what_keeps_it_from_starting_is_raised() -> None:
    manager = st.Manager(st.Config("http://127.0.0.1:1"), health="here")
    with pytest.raises(ValueError, match="is not an address"):
        async with running(manager):
            pytest.fail("it has started")


async def test_what_ends_it_meanwhile_is_raised() -> None:
    async def broken(manager: st.Manager) -> None:
        raise ZeroDivisionError

    manager = st.Manager(st.Config("http://127.0.0.1:1"))
    manager.add(broken)
    with pytest.raises(ZeroDivisionError):
        async with running(manager):
            pass


async def test_what_never_starts_is_not_waited_for_for_ever() -> None:
    manager = st.Manager(st.Config("http://127.0.0.1:1"))
    manager.controller(MAP, lambda ctx, obj: None)
    with pytest.raises(TimeoutError, match=r"has not started within 0\.01 s"):
        async with running(manager, timeout=0.01):
            pytest.fail("it has started")


@pytest.mark.parametrize("namespaces", [None, ["default"]])
async def test_a_kind_that_is_not_served_is_told_soon(apiserver: ApiServer, namespaces: list[str] | None) -> None:
    manager = st.Manager(apiserver.config, watch_default=st.CacheScope(namespaces=namespaces))
    manager.controller(st.Resource("myorg.io/v1", "Batch"), lambda ctx, obj: None)
    told = r'cannot watch Batch.myorg.io/v1.*: no matches for kind "Batch" in version "myorg.io/v1"; `apiserver.load'
    with pytest.raises(TimeoutError, match=told):
        async with running(manager, timeout=3600):
            pytest.fail("it has started")


async def test_what_was_not_ready_in_time_says_why() -> None:
    manager = st.Manager(st.Config("http://127.0.0.1:1"))
    manager.controller(MAP, lambda ctx, obj: None)
    with pytest.raises(TimeoutError, match=r"has not started within 2 s: cannot watch ConfigMap\.v1: .*127\.0\.0\.1:1"):
        async with running(manager, timeout=2):
            pytest.fail("it has started")
