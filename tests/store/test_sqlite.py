"""What the SQLite store adds to the protocol: durability over restarts, files that are wrong, disks that fail."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from steersman.store.conformance import Recorder, put
from steersman.store.history import History
from steersman.store.interface import Compacted, CompareFailed, KeyValue, StoreUnavailable
from steersman.store.sqlite import SQLiteStore
from steersman.store.sqlite.errors import (
    Damaged,
    DiskFull,
    ForeignFile,
    InUse,
    NewerFormat,
    ReadOnly,
    SyncFailed,
)

if TYPE_CHECKING:
    from conftest import FaultyDisk

ALL = (b"", b"\xff")


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """File permissions mean nothing to root: run as nobody for a while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that any user can enter."""
    directory = Path(tempfile.mkdtemp(prefix="steersman-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


async def test_reopened_store_goes_on_where_it_was(tmp_path: Path) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db")
    await store.swap(b"a", 0, b"1")
    await store.swap(b"b", 0, b"2")
    await store.swap(b"a", 2, None)
    await store.close()
    store = await SQLiteStore.open(tmp_path / "store.db")
    assert store.revision == 4
    assert (await store.range(*ALL)).items == [KeyValue(b"b", b"2", 3, 3)]
    assert (await store.range(*ALL, revision=3)).items == [KeyValue(b"a", b"1", 2, 2), KeyValue(b"b", b"2", 3, 3)]
    recorder = Recorder()
    store.watch(*ALL, 1, recorder.deliver)
    assert [event.value for event in await recorder.until(3)] == [b"1", b"2", None]
    assert await store.swap(b"a", 0, b"3") == 5
    await store.close()


async def test_revision_survives_deleting_and_compacting_everything(tmp_path: Path) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db")
    await store.swap(b"a", 0, b"1")
    await store.swap(b"a", 2, None)
    await store.compact(3)
    await store.close()
    store = await SQLiteStore.open(tmp_path / "store.db")
    assert (store.revision, store.compacted, (await store.range(*ALL)).items) == (3, 3, [])
    with pytest.raises(Compacted):
        await store.range(*ALL, revision=2)
    assert await store.swap(b"a", 0, b"2") == 4
    await store.close()


async def test_history_is_compacted_as_configured_and_space_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = await SQLiteStore.open(path, history=History(revisions=50, seconds=0))
    await store.swap(b"kept", 0, b"k")
    for _ in range(40):
        await asyncio.gather(*(put(store, b"k%d" % number, b"x" * 500) for number in range(50)))
    assert store.revision - 55 <= store.compacted <= store.revision - 50
    assert (await store.range(*ALL, revision=store.compacted)).count == 51
    assert (await store.get(b"kept")) == KeyValue(b"kept", b"k", 2, 2)
    revision, compacted = store.revision, store.compacted
    await store.close()
    assert path.stat().st_size < 2000 * 500 / 4
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM versions").get <= revision - compacted + 51
    connection.close()
    store = await SQLiteStore.open(path)
    assert (store.revision, store.compacted) == (revision, compacted)
    await store.close()


async def test_history_young_enough_is_kept(tmp_path: Path) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db", history=History(revisions=0, seconds=3600))
    for number in range(20):
        await put(store, b"a", b"%d" % number)
    assert store.compacted == 0
    assert (await store.range(*ALL, revision=2)).items[0].value == b"0"
    await store.close()


async def test_old_ranges_beyond_what_memory_knows(tmp_path: Path) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db", history=History(revisions=1_000_000))
    for number in range(60):
        await asyncio.gather(*(put(store, b"k%02d" % key, b"%d" % number) for key in range(100)))
    for number in (0, 1, 30, 59):
        found = await store.range(b"k1", b"k2", revision=101 + number * 100)
        assert [item.value for item in found.items] == [b"%d" % number] * 10
        assert {item.create_revision for item in found.items} <= set(range(2, 102))
    writing = asyncio.gather(*(put(store, b"k%02d" % key, None) for key in range(50)))
    found = await store.range(*ALL, revision=101)
    assert (found.count, {item.value for item in found.items}) == (100, {b"0"})
    await writing
    await store.close()


async def test_files_are_private(tmp_path: Path) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db")
    await store.swap(b"a", 0, b"1")
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in os.scandir(tmp_path)}
    assert modes == dict.fromkeys(("store.db", "store.db-lock", "store.db-wal", "store.db-shm"), 0o600)
    await store.close()


async def test_second_server_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = await SQLiteStore.open(path)
    (tmp_path / "link.db").symlink_to(path)
    for name in (path, tmp_path / "link.db"):
        with pytest.raises(InUse, match=f"store.db is in use by process {os.getpid()}; stop that server"):
            await SQLiteStore.open(name)
    assert await store.swap(b"a", 0, b"1") == 2
    await store.close()
    store = await SQLiteStore.open(path)
    assert store.revision == 2
    await store.close()


async def test_lock_ends_with_the_process(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    program = (
        "import sys\nfrom steersman.store.sqlite.files import open_files\n"
        "files = open_files(sys.argv[1], None)\nprint('open', flush=True)\nsys.stdin.read()"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, path, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None and await child.stdout.readline() == b"open\n"
    with pytest.raises(InUse, match=f"process {child.pid}"):
        await SQLiteStore.open(path)
    child.kill()
    await child.communicate()
    store = await SQLiteStore.open(path)
    await store.close()


async def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"the directory .*/nowhere does not exist; create it"):
        await SQLiteStore.open(tmp_path / "nowhere" / "store.db")
    with pytest.raises(StoreUnavailable, match="is a directory"):
        await SQLiteStore.open(tmp_path)


async def test_read_only_file_and_directory(open_directory: Path) -> None:
    path = open_directory / "store.db"
    await (await SQLiteStore.open(path)).close()
    path.chmod(0o444)
    with as_ordinary_user():
        with pytest.raises(ReadOnly, match="permission denied; give this user write access"):
            await SQLiteStore.open(path)
        with pytest.raises(ReadOnly, match="permission denied; give this user write access"):
            await SQLiteStore.open(open_directory / "other.db")


@pytest.mark.parametrize("content", [b"hello, world\n" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
async def test_not_a_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content)
    with pytest.raises(Damaged, match=r"not a SQLite database|damaged"):
        await SQLiteStore.open(path)
    assert path.read_bytes() == content


async def test_foreign_database(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE versions (revision INTEGER PRIMARY KEY)")
    connection.close()
    with pytest.raises(ForeignFile, match="of another application; choose another path"):
        await SQLiteStore.open(path)


async def test_newer_format(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await (await SQLiteStore.open(path)).close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(NewerFormat, match="has format 7, this version knows up to 1"):
        await SQLiteStore.open(path)


async def fill(path: Path) -> None:
    store = await SQLiteStore.open(path)
    await asyncio.gather(*(store.swap(b"k%03d" % number, 0, b"x" * 1000) for number in range(200)))
    await store.close()


async def test_overwritten_pages_are_noticed_at_open(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await fill(path)
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xee" * 4096 * 20)
    with pytest.raises(Damaged, match=r"is damaged .*; .*restore a backup"):
        await SQLiteStore.open(path)


async def test_truncated_file_is_noticed_at_open(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await fill(path)
    os.truncate(path, 4096 * 10)
    with pytest.raises(Damaged, match="damaged"):
        await SQLiteStore.open(path)


async def test_missing_revisions_are_noticed_at_open(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await fill(path)
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM versions WHERE revision = 77")
    connection.close()
    with pytest.raises(Damaged, match="revision 77 is missing"):
        await SQLiteStore.open(path)


async def test_damage_is_noticed_later(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await fill(path)
    store = await SQLiteStore.open(path)
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM versions WHERE revision = 77")
    connection.close()
    with pytest.raises(Damaged, match="revision 77 is missing"):
        await store.range(*ALL)
    with pytest.raises(Damaged):
        await store.get(b"k075")
    assert (await store.get(b"k074")) is not None
    await store.close()


async def test_full_disk_loses_nothing_and_recovers(tmp_path: Path, disk: FaultyDisk) -> None:
    path = tmp_path / "store.db"
    store = await SQLiteStore.open(path, vfs=disk.vfs_name)
    recorder = Recorder()
    store.watch(*ALL, 0, recorder.deliver)
    await store.swap(b"a", 0, b"1")
    disk.full = True
    results = await asyncio.gather(
        *(store.swap(b"k%d" % number, 0, b"") for number in range(20)),
        store.swap(b"a", 7, b"2"),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [DiskFull] * 20 + [CompareFailed]
    assert str(results[0]).startswith("the disk is full: cannot write to")
    assert (await store.get(b"a"), store.revision) == (KeyValue(b"a", b"1", 2, 2), 2)
    disk.full = False
    results = await asyncio.gather(*(store.swap(b"k%d" % number, 0, b"") for number in range(20)))
    assert sorted(results) == list(range(3, 23)) == recorder.revisions[1:]
    await store.close()
    store = await SQLiteStore.open(path)
    assert (await store.range(*ALL)).count == 21
    await store.close()


async def test_only_the_write_that_does_not_fit_fails(tmp_path: Path) -> None:
    """A limit on the pages of the database: SQLite's own disk-full error."""
    writers: list[apsw.Connection] = []
    apsw.connection_hooks.append(writers.append)
    try:
        store = await SQLiteStore.open(tmp_path / "store.db")
    finally:
        apsw.connection_hooks.remove(writers.append)
    writers[0].execute("PRAGMA max_page_count = 60")
    big = [store.swap(b"big%d" % number, 0, b"x" * 500_000) for number in range(2)]
    small = [store.swap(b"small%d" % number, 0, b"x") for number in range(5)]
    results = await asyncio.gather(small[0], big[0], *small[1:3], big[1], *small[3:], return_exceptions=True)
    assert [type(result) for result in results] == [int, DiskFull, int, int, DiskFull, int, int]
    assert [result for result in results if isinstance(result, int)] == [2, 3, 4, 5, 6]
    writers[0].execute("PRAGMA max_page_count = 1000000")
    assert await store.swap(b"big0", 0, b"x" * 500_000) == 7
    await store.close()


async def test_unconfirmed_write_stops_the_store(tmp_path: Path, disk: FaultyDisk) -> None:
    """After a failed sync nobody knows what the disk holds: no later write may be acknowledged."""
    path = tmp_path / "store.db"
    store = await SQLiteStore.open(path, vfs=disk.vfs_name)
    await store.swap(b"a", 0, b"1")
    disk.unsynced = True
    results = await asyncio.gather(
        *(store.swap(b"k%d" % number, 0, b"") for number in range(300)), return_exceptions=True
    )
    assert {type(result) for result in results} == {SyncFailed}
    disk.unsynced = False
    with pytest.raises(StoreUnavailable, match=r"did not confirm a write to .*; check the disk, then restart"):
        await store.swap(b"b", 0, b"")
    assert await store.get(b"a") == KeyValue(b"a", b"1", 2, 2)
    await store.close()
    store = await SQLiteStore.open(path)
    assert await store.get(b"a") == KeyValue(b"a", b"1", 2, 2)
    await store.swap(b"b", 0, b"")
    await store.close()


async def test_unconfirmed_compaction_stops_the_store(tmp_path: Path, disk: FaultyDisk) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db", vfs=disk.vfs_name)
    await store.swap(b"a", 0, b"1")
    await store.swap(b"a", 2, b"2")
    disk.unsynced = True
    await store.compact(3)
    with pytest.raises(StoreUnavailable, match="did not confirm a write"):
        await store.swap(b"a", 3, b"3")
    assert await store.get(b"a") == KeyValue(b"a", b"2", 2, 3)
    await store.close()


async def test_compaction_resumes_after_a_full_disk(tmp_path: Path, disk: FaultyDisk) -> None:
    path = tmp_path / "store.db"
    store = await SQLiteStore.open(path, vfs=disk.vfs_name)
    for number in range(5):
        await put(store, b"a", b"%d" % number)
    disk.full = True
    await store.compact(6)
    with pytest.raises(DiskFull):
        await put(store, b"a", b"")
    disk.full = False
    assert await put(store, b"a", b"5") == 7
    await store.close()
    store = await SQLiteStore.open(path)
    assert (store.compacted, store.revision) == (6, 7)
    await store.close()


async def test_cancelled_open_releases_the_file(tmp_path: Path) -> None:
    opening = asyncio.ensure_future(SQLiteStore.open(tmp_path / "store.db"))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with asyncio.timeout(30):
        while True:
            try:
                store = await SQLiteStore.open(tmp_path / "store.db")
            except InUse:
                continue
            break
    await store.close()


async def test_unreadable_disk_ends_a_watch_that_needs_history(tmp_path: Path, disk: FaultyDisk) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db", vfs=disk.vfs_name)
    await store.swap(b"a", 0, b"1")
    live, behind = Recorder(), Recorder()
    store.watch(*ALL, 0, live.deliver, live.ended)
    disk.unreadable = True
    store.watch(*ALL, 1, behind.deliver, behind.ended)
    with pytest.raises(StoreUnavailable, match=r"the disk failed while using .*; check the disk"):
        await store.get(b"a")
    with pytest.raises(StoreUnavailable, match="the disk failed"):
        await store.range(*ALL, revision=2)
    await behind.end()
    assert (behind.events, [type(error) for error in behind.ends]) == ([], [StoreUnavailable])
    disk.unreadable = False
    assert await store.get(b"a") == KeyValue(b"a", b"1", 2, 2)
    assert await store.swap(b"b", 0, b"2") == 3
    assert (live.revisions, live.ends, behind.events) == ([3], [], [])
    await store.close()


async def test_reads_that_have_begun_outlast_compaction(tmp_path: Path) -> None:
    store = await SQLiteStore.open(tmp_path / "store.db")
    for value in (b"old", b"new"):
        await asyncio.gather(*(put(store, b"k%04d" % key, value * 500) for key in range(3000)))
    reading = [asyncio.ensure_future(store.range(*ALL, revision=3001)) for _ in range(4)]
    await asyncio.sleep(0)
    await store.compact(store.revision)
    for found in await asyncio.gather(*reading):
        assert (found.count, {item.value for item in found.items}) == (3000, {b"old" * 500})
    with pytest.raises(Compacted):
        await store.range(*ALL, revision=3001)
    await store.close()


async def test_another_program_that_locks_the_file(tmp_path: Path) -> None:
    """A write lock held by, say, the sqlite3 shell delays writes until it is gone."""
    path = tmp_path / "store.db"
    store = await SQLiteStore.open(path)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.gather(*(store.swap(b"k%d" % number, 0, b"") for number in range(5)))
    assert await store.get(b"k0") is None
    other.execute("ROLLBACK")
    assert await writing == [2, 3, 4, 5, 6]
    other.close()
    await store.close()
