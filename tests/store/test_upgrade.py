"""Files of earlier formats: each is read by this version, and an upgrade is whole or has not been."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
from pathlib import Path

import apsw
import pytest

from steersman.store.conformance import Recorder
from steersman.store.interface import KeyValue
from steersman.store.sqlite import SQLiteStore
from steersman.store.sqlite.copying import Snapshot
from steersman.store.sqlite.errors import OlderFormat
from steersman.store.sqlite.schema import APPLICATION_ID, FORMAT
from steersman.store.sqlite.upgrade import upgrade

from .killed_upgrade import NEWEST, OLDEST, STEPS

HERE = Path(__file__).parent
ROWS = 10_000


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
async def test_files_of_all_formats_are_opened(number: int, tmp_path: Path) -> None:
    """Each was written by the version that had the format: two keys, one compaction, a deletion after it."""
    shutil.copy(HERE / "data" / f"format-{number}.db", tmp_path / "store.db")
    store = await SQLiteStore.open(tmp_path / "store.db")
    assert (store.revision, store.compacted) == (6, 4)
    found = await store.range(b"/registry/", b"/registry0")
    assert found.items == [KeyValue(b"/registry/a", b"changed", 2, 4), KeyValue(b"/registry/b", b"second", 3, 3)]
    recorder = Recorder()
    store.watch(b"/registry/", b"/registry0", 5, recorder.deliver)
    assert [event.value for event in await recorder.until(2)] == [b"gone", None]
    assert await store.swap(b"/registry/a", 4, b"new") == 7
    await store.close()
    copies = {f"store.db.format-{number}"} if number < FORMAT else set()
    assert set(os.listdir(tmp_path)) == {"store.db", "store.db-lock"} | copies


async def test_a_format_without_a_step_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await (await SQLiteStore.open(path)).close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 0")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(OlderFormat, match="has format 0, from which this version cannot go on"):
        await SQLiteStore.open(path)
    with pytest.raises(OlderFormat, match=f"has format 0, not {FORMAT}"):
        Snapshot(str(path))
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["store.db", "store.db-lock"]


def old_file(path: Path) -> None:
    """A file of format 90."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    with connection:
        connection.execute("CREATE TABLE things (number INTEGER PRIMARY KEY, text BLOB)")
        connection.executemany("INSERT INTO things VALUES (?, ?)", ((n, b"%d" % n * 20) for n in range(ROWS)))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {OLDEST}")
    connection.close()


def check(path: Path) -> int:
    """The file's format, of which it has everything."""
    connection = apsw.Connection(str(path))
    version: int = connection.pragma("user_version")
    table = "things" if version == OLDEST else "others"
    assert [name for (name,) in connection.execute("SELECT name FROM sqlite_schema")] == [table]
    assert connection.execute(f"SELECT count(*), sum(number) FROM {table}").fetchall() == [
        (ROWS, ROWS * (ROWS - 1) // 2)
    ]
    if version == NEWEST:
        assert connection.execute("SELECT count(*) FROM others WHERE doubled = 2 * number").get == ROWS
    assert version in (OLDEST, NEWEST) and connection.pragma("integrity_check") == "ok"
    connection.close()
    return version


def test_all_steps_are_one_and_what_was_there_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    old_file(path)
    connection = apsw.Connection(str(path))
    copy = upgrade(connection, str(path), OLDEST, NEWEST, STEPS)
    connection.close()
    assert copy == tmp_path / f"store.db.format-{OLDEST}"
    assert (check(path), check(copy)) == (NEWEST, OLDEST)


def test_a_step_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    old_file(path)

    def fail(connection: apsw.Connection) -> None:
        connection.execute("DROP TABLE things")
        raise ZeroDivisionError

    connection = apsw.Connection(str(path))
    with pytest.raises(ZeroDivisionError):
        upgrade(connection, str(path), OLDEST, NEWEST, {**STEPS, OLDEST + 1: fail})
    connection.close()
    assert check(path) == OLDEST


async def test_an_upgrade_that_is_killed_is_whole_or_has_not_been(tmp_path: Path) -> None:
    first = tmp_path / "first.db"
    old_file(first)
    script = HERE / "killed_upgrade.py"
    for number in range(8):
        directory = tmp_path / str(number)
        directory.mkdir()
        path = directory / "store.db"
        shutil.copy(first, path)
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(script), str(path), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(random.uniform(0.05, 0.5)):
                await process.stdout.readline()
        except TimeoutError:
            process.kill()
        await process.wait()
        version = check(path)
        copy = directory / f"store.db.format-{OLDEST}"
        if version == NEWEST or copy.exists():
            assert check(copy) == OLDEST
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(script), str(path), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert out == b"done\n"
        assert (check(path), check(copy)) == (NEWEST, OLDEST)
        assert not list(directory.glob(".*"))
