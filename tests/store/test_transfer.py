"""Backing up, restoring and moving whole stores, between all kinds."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman.store.backup import Backup, BackupError
from steersman.store.conformance import Recorder, put
from steersman.store.etcd import messages as pb
from steersman.store.etcd import parse_url
from steersman.store.etcd.client import RANGE, EtcdClient
from steersman.store.history import History
from steersman.store.interface import Compacted, KeyValue, Store, StoreError, StoreUnavailable
from steersman.store.sqlite import SQLiteStore
from steersman.store.sqlite.copying import Target
from steersman.store.sqlite.errors import InUse
from steersman.store.transfer import SQLITE_BUMP, NotEmpty, back_up, move, restore
from steersman.store.urls import BadStoreURL, open_store

from .. import etcd
from .test_snapshot import made

ALL = (b"/registry/", b"/registry0")
KINDS = ("sqlite", "etcd")


@pytest.fixture(scope="module")
def etcd_program() -> Path:
    return etcd.program()


class Places:
    """URLs of stores of both kinds, each with nothing in it."""

    def __init__(self, directory: Path, cluster: etcd.Etcd) -> None:
        self._directory = directory
        self._cluster = cluster
        self._number = 0

    def url(self, kind: str) -> str:
        self._number += 1
        name = f"place{self._number}"
        return f"{self._cluster.url}/{name}" if kind == "etcd" else f"sqlite:///{self._directory / name}.db"


@pytest.fixture
async def places(etcd_program: Path, tmp_path: Path) -> AsyncIterator[Places]:
    async with etcd.etcd(etcd_program, tmp_path) as cluster:
        yield Places(tmp_path, cluster)


async def fill(store: Store) -> list[KeyValue]:
    """Some writes, updates and deletions; returns what is there then, in the order of its revisions."""
    for number in range(300):
        await put(store, b"/registry/things/%03d" % number, b"first %d" % number)
    for number in range(0, 300, 3):
        await put(store, b"/registry/things/%03d" % number, b"second %d" % number)
    for number in range(0, 300, 50):
        current = await store.get(b"/registry/things/%03d" % number)
        assert current is not None
        await store.swap(current.key, current.mod_revision, None)
    found = (await store.range(*ALL)).items
    return sorted(found, key=lambda item: item.mod_revision)


def plain(items: list[KeyValue]) -> list[tuple[bytes, bytes]]:
    return [(item.key, item.value) for item in items]


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
async def test_a_backup_is_restored_into_either_kind(source: str, target: str, places: Places, tmp_path: Path) -> None:
    first, second, file = places.url(source), places.url(target), tmp_path / "backup"
    store = await open_store(first)
    items = await fill(store)
    revision = store.revision
    made = await back_up(first, file)
    assert (made.keys, made.revision) == (len(items), revision)
    await put(store, b"/registry/things/after", b"not in the backup")
    await store.close()

    done = await restore(file, second, bump=500)
    assert done.keys == len(items) and done.revision >= revision + 500
    store = await open_store(second)
    found = sorted((await store.range(*ALL)).items, key=lambda item: item.mod_revision)
    if target == "sqlite":
        assert found == items
    assert sorted(plain(found)) == sorted(plain(items))
    assert [item.mod_revision for item in found] == sorted(item.mod_revision for item in found)
    await check_goes_on_above(store, done.revision, revision)
    await store.close()


async def check_goes_on_above(store: Store, revision: int, before: int) -> None:
    """Nothing that clients knew can be read or watched from, and what is written is newer."""
    assert store.revision >= revision > before
    for old in (1, before, revision - 1):
        with pytest.raises(Compacted):
            await store.range(*ALL, revision=old)
    recorder = Recorder()
    store.watch(*ALL, 0, recorder.deliver)
    written = await store.swap(b"/registry/things/new", 0, b"new")
    assert written > revision
    [event] = await recorder.until(1)
    assert (event.revision, event.value) == (written, b"new")


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
async def test_a_moved_store_goes_on_above_the_old_one(source: str, target: str, places: Places) -> None:
    first, second = places.url(source), places.url(target)
    store = await open_store(first)
    items = await fill(store)
    revision = store.revision
    await store.close()
    done = await move(first, second)
    store = await open_store(second)
    found = sorted((await store.range(*ALL)).items, key=lambda item: item.mod_revision)
    assert sorted(plain(found)) == sorted(plain(items))
    if "etcd" not in (source, target):
        assert found == items
    await check_goes_on_above(store, done.revision, revision)
    await store.close()


async def test_keys_written_at_one_revision_of_etcd_are_told_apart(places: Places) -> None:
    first, second, third = places.url("sqlite"), places.url("etcd"), places.url("sqlite")
    store = await open_store(first)
    items = await fill(store)
    await store.close()
    await move(first, second)
    done = await move(second, third)
    store = await open_store(third)
    found = sorted((await store.range(*ALL)).items, key=lambda item: item.mod_revision)
    assert sorted(plain(found)) == sorted(plain(items))
    assert len({item.mod_revision for item in found}) == len(items)
    assert found[-1].mod_revision < done.revision == store.revision
    await store.close()


async def test_a_backup_of_a_running_server_is_of_one_revision(tmp_path: Path) -> None:
    """A writer goes through the keys in turn: at one revision, at most one key is ahead."""
    path = tmp_path / "store.db"
    store = await SQLiteStore.open(path, history=History(revisions=100, seconds=0))
    keys = [b"/registry/turn/%02d" % number for number in range(40)]
    stopped = False

    async def write() -> None:
        turn = 0
        while not stopped:
            turn += 1
            for key in keys:
                await put(store, key, b"%d" % turn)

    recorder = Recorder()
    store.watch(*ALL, 0, recorder.deliver)
    writer = asyncio.create_task(write())
    await recorder.until(100)
    for number in range(8):
        file = tmp_path / f"backup{number}"
        command = (sys.executable, "-m", "steersman", "store", "backup", f"sqlite:///{path}", str(file))
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        assert process.returncode == 0
        with Backup(file) as backup:
            found = {item.key: item for item in backup.items()}
            turns = [int(found[key].value) for key in keys]
            assert turns == sorted(turns, reverse=True) and turns[0] - turns[-1] <= 1
            revision = backup.manifest.revision
            assert max(item.mod_revision for item in found.values()) == revision
            assert out.decode() == f"{file}: 40 keys at revision {revision}\n"
    stopped = True
    await writer
    await store.close()


async def test_a_file_that_a_server_has_is_not_replaced_or_moved(tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path}/store.db", tmp_path / "backup"
    store = await open_store(url)
    await put(store, b"/registry/a", b"1")
    await back_up(url, file)
    with pytest.raises(InUse):
        await restore(file, url, force=True, bump=1)
    with pytest.raises(InUse):
        await move(url, f"sqlite:///{tmp_path}/other.db")
    await store.close()
    assert not (tmp_path / "other.db").exists()


async def test_what_is_there_is_replaced_only_when_that_is_wanted(places: Places, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    for kind in KINDS:
        url = places.url(kind)
        store = await open_store(url)
        await put(store, b"/registry/a", b"old")
        await back_up(url, file, force=True)
        await put(store, b"/registry/a", b"newer")
        await put(store, b"/registry/b", b"newer")
        seen = store.revision
        await store.close()
        with pytest.raises(NotEmpty, match="--force"):
            await restore(file, url)
        done = await restore(file, url, force=True, bump=1)
        assert done.revision > seen
        store = await open_store(url)
        assert plain((await store.range(*ALL)).items) == [(b"/registry/a", b"old")]
        await store.close()
        if done.kept is not None:
            kept = await SQLiteStore.open(done.kept)
            assert plain((await kept.range(*ALL)).items) == [(b"/registry/a", b"newer"), (b"/registry/b", b"newer")]
            await kept.close()


async def test_the_log_of_a_killed_server_stays_with_what_it_belongs_to(tmp_path: Path) -> None:
    """What only the log has is not mixed into the file that takes the name."""
    path = tmp_path / "store.db"
    writes = "import asyncio, os, sys\nfrom steersman.store.sqlite import SQLiteStore\n" + (
        "async def main():\n"
        "    store = await SQLiteStore.open(sys.argv[1])\n"
        "    for number in range(50):\n"
        "        await store.swap(b'/registry/%d' % number, 0, b'x' * 3000)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", writes, path)
    assert await process.wait() == -signal.SIGKILL
    assert (tmp_path / "store.db-wal").stat().st_size > 100_000
    store = await SQLiteStore.open(tmp_path / "small.db")
    await put(store, b"/registry/only", b"this")
    await store.close()
    await back_up(f"sqlite:///{tmp_path}/small.db", tmp_path / "backup")
    done = await restore(tmp_path / "backup", f"sqlite:///{path}", force=True)
    assert done.revision == 51 + SQLITE_BUMP
    store = await SQLiteStore.open(path)
    assert plain((await store.range(*ALL)).items) == [(b"/registry/only", b"this")]
    await store.close()
    assert done.kept is not None
    store = await SQLiteStore.open(done.kept)
    assert (await store.range(*ALL)).count == 50
    await store.close()


async def test_a_database_that_cannot_be_read_can_be_replaced(tmp_path: Path) -> None:
    path, file = tmp_path / "store.db", tmp_path / "backup"
    store = await SQLiteStore.open(path)
    await put(store, b"/registry/a", b"1")
    await back_up(f"sqlite:///{path}", file)
    await store.close()
    path.write_bytes(b"SQLite format 3\0" + os.urandom(8192))
    with pytest.raises(StoreUnavailable):
        await SQLiteStore.open(path)
    await restore(file, f"sqlite:///{path}", force=True)
    store = await SQLiteStore.open(path)
    assert plain((await store.range(*ALL)).items) == [(b"/registry/a", b"1")]
    assert store.revision == 2 + SQLITE_BUMP
    await store.close()


async def test_a_restore_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path, file = tmp_path / "store.db", tmp_path / "backup"
    store = await SQLiteStore.open(path)
    for number in range(200):
        await put(store, b"/registry/%d" % number, os.urandom(2000))
    await back_up(f"sqlite:///{path}", file)
    await put(store, b"/registry/later", b"than the backup")
    await store.close()
    with pytest.raises(ZeroDivisionError), Target(str(path)) as target, Backup(file) as backup:
        target.fill((item for item in backup.items() if item.mod_revision < 100 or 1 // 0), 10_000)
    assert sorted(os.listdir(tmp_path)) == ["backup", "store.db", "store.db-lock"]
    store = await SQLiteStore.open(path)
    assert (await store.range(*ALL)).count == 201 and store.revision == 202
    await store.close()


async def test_an_etcd_that_is_only_half_restored_is_not_served(places: Places, tmp_path: Path) -> None:
    url, file = places.url("etcd"), tmp_path / "backup"
    store = await open_store(f"sqlite:///{tmp_path}/store.db")
    await put(store, b"/registry/a", b"1")
    await put(store, b"/registry/large", b"x" * (4 << 20))
    await back_up(f"sqlite:///{tmp_path}/store.db", file)
    current = await store.get(b"/registry/large")
    assert current is not None
    await store.swap(current.key, current.mod_revision, b"small")
    with pytest.raises(StoreError, match="large"):
        await restore(file, url)
    for use in (open_store(url), back_up(url, tmp_path / "other")):
        with pytest.raises(StoreUnavailable, match="was not finished"):
            await use
    await back_up(f"sqlite:///{tmp_path}/store.db", file, force=True)
    await store.close()
    with pytest.raises(NotEmpty):
        await restore(file, url)
    done = await restore(file, url, force=True, bump=700)
    assert done.revision >= 4 + 700
    store = await open_store(url)
    assert plain((await store.range(*ALL)).items) == [(b"/registry/a", b"1"), (b"/registry/large", b"small")]
    await store.close()


async def test_a_restore_into_an_etcd_that_is_in_use_is_noticed(places: Places, tmp_path: Path) -> None:
    url, file = places.url("etcd"), tmp_path / "backup"
    store = await open_store(f"sqlite:///{tmp_path}/store.db")
    await asyncio.gather(*(store.swap(b"/registry/%d" % number, 0, b"x") for number in range(50)))
    await back_up(f"sqlite:///{tmp_path}/store.db", file)
    await store.close()
    other = await open_store(url)
    written = asyncio.Event()

    async def write() -> None:
        number = 0
        while True:
            number += 1
            await other.swap(b"/registry/other%d" % number, 0, b"y")
            written.set()

    writer = asyncio.create_task(write())
    await written.wait()
    with pytest.raises(StoreUnavailable, match="something else has written into this etcd meanwhile"):
        await restore(file, url, force=True, bump=500)
    writer.cancel()
    await asyncio.gather(writer, return_exceptions=True)
    await other.close()
    with pytest.raises(StoreUnavailable, match="was not finished"):
        await open_store(url)


async def test_events_that_are_restored_into_etcd_go_by_themselves(places: Places, tmp_path: Path) -> None:
    url, file = places.url("etcd"), tmp_path / "backup"
    store = await open_store(f"sqlite:///{tmp_path}/store.db")
    for key in (b"/registry/events/default/a", b"/registry/things/a", b"/registry/masterleases/10.0.0.1"):
        await put(store, key, b"x")
    await back_up(f"sqlite:///{tmp_path}/store.db", file)
    await store.close()
    await restore(file, url, bump=1)
    client = EtcdClient(parse_url(url))
    found = await client.call(RANGE, pb.RangeRequest(key=b"/place1/registry/", range_end=b"/place1/registry0"))
    leased = {each.key: bool(each.lease) for each in found.message.kvs}
    assert leased[b"/place1/registry/events/default/a"] and not leased[b"/place1/registry/things/a"]
    await client.close()
    await back_up(url, file, force=True)
    with Backup(file) as backup:
        assert sorted(item.key for item in backup.items()) == [b"/registry/events/default/a", b"/registry/things/a"]


async def test_values_that_only_their_key_decrypts_stay_below_their_root(places: Places, tmp_path: Path) -> None:
    url, file = places.url("etcd"), tmp_path / "backup"
    store = await open_store(url)
    await put(store, b"/registry/secrets/a/b", b"k8s:enc:aesgcm:v1:key:...")
    await store.close()
    await back_up(url, file)
    with pytest.raises(BackupError, match="/registry/secrets/a/b is encrypted for a store whose keys begin with"):
        await restore(file, places.url("sqlite"))
    await restore(file, url, force=True, bump=1)


async def test_the_snapshot_of_an_etcd_is_taken_over(etcd_program: Path, tmp_path: Path) -> None:
    path, items, revision = await made(etcd_program, tmp_path)
    done = await move(f"etcd-snapshot:///{path}", f"sqlite:///{tmp_path}/store.db")
    assert done.revision == revision + 1
    store = await SQLiteStore.open(tmp_path / "store.db")
    assert (await store.range(*ALL)).items == items
    await check_goes_on_above(store, done.revision, revision)
    await store.close()


async def test_no_store_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(BadStoreURL, match="a store in memory is no file"):
        await back_up("memory://", tmp_path / "backup")
    with pytest.raises(StoreUnavailable, match="does not exist"):
        await back_up(f"sqlite:///{tmp_path}/missing.db", tmp_path / "backup")
    (tmp_path / "text").write_text("hello " * 1000)
    with pytest.raises(StoreUnavailable, match="not a SQLite database"):
        await back_up(f"sqlite:///{tmp_path}/text", tmp_path / "backup")
    assert not (tmp_path / "backup").exists()
