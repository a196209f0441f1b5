"""A database that fills up: what is said before, what is refused then, and how it comes back."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import pytest

from steersman.store.conformance import put
from steersman.store.history import History
from steersman.store.interface import StoreFull, UnknownOutcome
from steersman.store.sqlite import SQLiteStore
from steersman.store.urls import open_store

from .. import etcd

ALL = (b"", b"\xff")
QUOTA = 4 << 20
VALUE = 20_000
LONG = History(revisions=1_000_000, seconds=3600)


async def fill(store: SQLiteStore, most: int = 1000) -> int:
    """Create keys until the store is full; returns how many there are."""
    for number in range(most):
        try:
            await store.swap(b"key-%04d" % number, 0, os.urandom(VALUE))
        except StoreFull as error:
            assert "\n" not in str(error) and "4.0 MB (--quota-backend-bytes)" in str(error)
            return number
    raise AssertionError("it is not full")


async def until_used(store: SQLiteStore, most: float) -> None:
    """Wait until what was compacted is removed."""
    async with asyncio.timeout(60):
        while True:
            if (await store.figures()).used < most:
                return
            await asyncio.sleep(0.01)


async def test_writes_are_refused_and_deletions_make_room(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db", history=LONG, quota=QUOTA, fsync=False)
    with caplog.at_level(logging.WARNING, "steersman.store.sqlite"):
        count = await fill(store)
    assert QUOTA * 0.9 <= count * VALUE <= QUOTA * 1.1
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    assert "will soon be full" in caplog.records[0].message and "is full" in caplog.records[1].message
    with pytest.raises(StoreFull):
        await store.swap(b"key-0000", 2, b"smaller")
    found = await store.range(*ALL)
    assert found.count == count and store.trouble() is None
    for item in found.items[: count // 2]:
        await store.swap(item.key, item.mod_revision, None)
    await until_used(store, QUOTA * 0.95)
    await put(store, b"more", b"x")
    assert "takes writes again" in caplog.messages[-1]
    await store.close()


async def test_history_is_given_up_before_anything_is_refused(tmp_path: Path) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db", history=LONG, quota=QUOTA, fsync=False)
    for number in range(2500):
        await put(store, b"key-%d" % (number % 10), os.urandom(5_000))
    assert store.compacted > 500
    assert (await store.range(*ALL)).count == 10
    await store.close()


async def test_a_file_that_is_full_when_it_is_opened(tmp_path: Path) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db", quota=QUOTA)
    await fill(store)
    await store.close()
    store = await SQLiteStore.open(tmp_path / "store.db", quota=QUOTA)
    with pytest.raises(StoreFull):
        await store.swap(b"more", 0, b"x")
    await store.close()
    store = await SQLiteStore.open(tmp_path / "store.db")
    await store.swap(b"more", 0, b"x")
    await store.close()


async def test_figures(tmp_path: Path) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db", quota=QUOTA)
    empty = await store.figures()
    assert (empty.kind, empty.quota, empty.keys) == ("sqlite", QUOTA, 0)
    assert 0 < empty.used <= empty.size and empty.disk_left > 0
    await asyncio.gather(*(put(store, b"key-%d" % number, os.urandom(VALUE)) for number in range(50)))
    filled = await store.figures()
    assert filled.keys == 50 and filled.used >= empty.used + 50 * VALUE and filled.log >= 50 * VALUE
    for number in range(50):
        found = await store.get(b"key-%d" % number)
        assert found is not None
        await store.swap(found.key, found.mod_revision, None)
    await store.compact(store.revision)
    await until_used(store, filled.used - 40 * VALUE)
    left = await store.figures()
    assert left.keys == 0 and left.size >= filled.size
    await store.close()


@pytest.fixture(scope="module")
def etcd_program() -> Path:
    return etcd.program()


async def test_a_full_etcd_is_told_as_one(etcd_program: Path, tmp_path: Path) -> None:
    async with etcd.etcd(etcd_program, tmp_path, "--quota-backend-bytes=2000000") as cluster:
        store = await open_store(cluster.url)
        revision = await store.swap(b"/registry/first", 0, b"x")
        with pytest.raises(StoreFull, match="database space exceeded"):
            for number in range(100):
                await store.swap(b"/registry/%d" % number, 0, os.urandom(200_000))
        await store.swap(b"/registry/first", revision, None)
        found = await store.figures()
        assert found.kind == "etcd" and 0 < found.used <= found.size and found.size > 1_500_000
        await store.close()


async def test_what_a_full_etcd_has_refused_is_not_there(etcd_program: Path, tmp_path: Path) -> None:
    """It carries out what it had begun with, and says that it is full all the same."""
    async with etcd.etcd(etcd_program, tmp_path, "--quota-backend-bytes=2000000") as cluster:
        store = await open_store(cluster.url)
        written: list[bytes] = []
        refused: list[bytes] = []

        async def write(name: str) -> None:
            for number in range(1_000):
                key = f"/registry/{name}-{number}".encode()
                try:
                    await store.swap(key, 0, os.urandom(20_000))
                    written.append(key)
                except UnknownOutcome:
                    return
                except StoreFull:
                    refused.append(key)
                    return

        await asyncio.gather(*(write(str(number)) for number in range(24)))
        await write("after")
        assert refused, "at least the last one came when nothing more was begun with"
        for keys, there in ((written, True), (refused, False)):
            for key in keys:
                assert (await store.get(key) is not None) is there
        await store.close()
