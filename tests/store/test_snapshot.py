"""Snapshots of an etcd, read without one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from steersman.net.grpc import Channel
from steersman.store.conformance import fails, put
from steersman.store.etcd import messages as pb
from steersman.store.history import History
from steersman.store.interface import Compacted, KeyValue, ReadOnlyStore, StoreUnavailable
from steersman.store.urls import open_store

from .. import etcd

ALL = (b"", b"\xff")


@pytest.fixture(scope="session")
def program() -> Path:
    return etcd.program()


async def snapshot(address: str, path: Path) -> None:
    """What `etcdctl snapshot save` fetches."""
    host, _, port = address.partition(":")
    channel, content = Channel(host, int(port), None, connect_within=30), bytearray()
    try:
        call = await channel.stream(f"/{pb.PACKAGE}.Maintenance/Snapshot")
        call.write(pb.SnapshotRequest().SerializeToString(), last=True)
        while (piece := await call.read()) is not None:
            content += pb.SnapshotResponse.FromString(piece).blob
    finally:
        await channel.close()
    path.write_bytes(content)  # noqa: ASYNC240


async def made(program: Path, directory: Path) -> tuple[Path, list[KeyValue], int]:
    """A snapshot, what its etcd held, and the revision."""
    path, dice = directory / "snapshot.db", random.Random(7)
    async with etcd.etcd(program, directory) as cluster:
        store = await open_store(cluster.url, history=History(revisions=1_000_000))
        try:
            for number in range(600):
                key = b"/registry/k%d" % dice.randrange(150)
                present = await store.get(key) is not None
                value = None if present and dice.random() < 0.3 else bytes(dice.choices(range(256), k=300))
                await put(store, key, value)
                if number == 400:
                    await store.compact(store.revision - 20)
            await put(store, b"/registry/large", bytes(300_000))
            await snapshot(cluster.members[0].address, path)
            found = await store.range(*ALL)
            return path, found.items, found.revision
        finally:
            await store.close()


async def test_a_snapshot_is_read_and_not_written(program: Path, tmp_path: Path) -> None:
    path, items, revision = await made(program, tmp_path)
    store = await open_store(f"etcd-snapshot:///{path}")
    try:
        found = await store.range(*ALL)
        assert (found.items, found.revision, store.revision) == (items, revision, revision)
        await fails(store.swap(b"/registry/new", 0, b""), ReadOnlyStore)
        await fails(store.range(*ALL, revision=revision - 1), Compacted)
    finally:
        await store.close()


async def test_damaged_files_are_refused_in_a_line(program: Path, tmp_path: Path) -> None:
    """Databases, which have no sum, too: what is torn is noticed, whatever of it is read."""
    path, _, _ = await made(program, tmp_path)
    whole, damaged, dice = path.read_bytes(), tmp_path / "damaged.db", random.Random(3)
    for number in range(150):
        content = bytearray(whole[:-32] if number % 2 else whole)
        if number % 3:
            for _ in range(1 << dice.randrange(12)):
                content[dice.randrange(len(content))] = dice.randrange(256)
        else:
            del content[dice.randrange(len(content)) :]
        damaged.write_bytes(content)
        try:
            store = await open_store(f"etcd-snapshot:///{damaged}")
        except StoreUnavailable as error:
            assert str(error).startswith(f"{damaged} is no snapshot of an etcd: ") and "\n" not in str(error)
        else:
            await store.close()


async def test_files_that_are_none(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no database " * 1000)
    for path, words in ((text, "does not begin as one"), (tmp_path, "Is a directory"), (tmp_path / "no", "No such")):
        assert words in str(await fails(open_store(f"etcd-snapshot:///{path}"), StoreUnavailable))
