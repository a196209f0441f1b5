"""Both stores against the conformance suite, and the suite against a store that is wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from steersman.store.conformance import CHECKS, Check, check_create_update_delete
from steersman.store.history import History
from steersman.store.interface import Store
from steersman.store.memory import MemoryStore
from steersman.store.sqlite import SQLiteStore

KEPT = History(revisions=1_000_000)

OpenStore = Callable[[], Awaitable[Store]]


@pytest.fixture(params=["memory", "sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    async def memory() -> Store:
        return MemoryStore(history=KEPT)

    async def sqlite() -> Store:
        return await SQLiteStore.open(tmp_path / "store.db", history=KEPT)

    return memory if request.param == "memory" else sqlite


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_store_conforms(check: Check, open_store: OpenStore) -> None:
    store = await open_store()
    try:
        await check(store)
    finally:
        await store.close()


async def test_suite_notices_a_wrong_store() -> None:
    class Careless(MemoryStore):
        async def swap(self, key: bytes, expected: int, value: bytes | None) -> int:
            return await super().swap(key, expected, value) + 1

    with pytest.raises(AssertionError):
        await check_create_update_delete(Careless())
