"""All stores against the conformance suite, and the suite against a store that is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from steersman.store.conformance import CHECKS, Check, check_compaction, check_create_update_delete
from steersman.store.history import History
from steersman.store.interface import Premises, Store
from steersman.store.memory import MemoryStore
from steersman.store.sqlite import SQLiteStore
from steersman.store.urls import open_store

from .. import etcd

KEPT = History(revisions=1_000_000)


@pytest.fixture(params=["memory", "sqlite", "etcd", "Debian's etcd"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def etcd_program(kind: str) -> Path | None:
    versions = {"etcd": etcd.NEWEST, "Debian's etcd": etcd.DEBIAN}
    return etcd.program(versions[kind]) if kind in versions else None


@pytest.fixture
async def store(kind: str, etcd_program: Path | None, tmp_path: Path) -> AsyncIterator[Store]:
    async with AsyncExitStack() as stack:
        if kind == "memory":
            opened: Store = MemoryStore(history=KEPT)
        elif etcd_program is None:
            opened = await SQLiteStore.open(tmp_path / "store.db", history=KEPT)
        else:
            cluster = await stack.enter_async_context(etcd.etcd(etcd_program, tmp_path))
            opened = await open_store(cluster.url, history=KEPT)
        stack.push_async_callback(opened.close)
        yield opened


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_store_conforms(check: Check, kind: str, store: Store) -> None:
    if kind.startswith("Debian") and check is check_compaction:
        pytest.skip("before 3.4.36 etcd forgets the deletion of the compacted revision: a watch from there is refused")
    await check(store)


async def test_suite_notices_a_wrong_store() -> None:
    class Careless(MemoryStore):
        async def swap(self, key: bytes, expected: int, value: bytes | None, premises: Premises | None = None) -> int:
            return await super().swap(key, expected, value, premises) + 1

    with pytest.raises(AssertionError):
        await check_create_update_delete(Careless())
