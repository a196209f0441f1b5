"""A server that is killed at any moment loses no acknowledged write and leaves nothing half done."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

from steersman.store.conformance import Recorder
from steersman.store.history import History
from steersman.store.interface import StoreEvent
from steersman.store.sqlite import SQLiteStore

SERVER = Path(__file__).with_name("killed_server.py")
ROUNDS = 16

Writes = dict[int, tuple[bytes, bytes]]


async def serve_and_kill(path: Path, number: int, lines: int) -> Writes:
    """Run the server until it has acknowledged some writes; return all that it acknowledged."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, SERVER, path, str(number), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    seen = [await child.stdout.readline() for _ in range(lines)]
    child.kill()
    seen += (await child.stdout.read()).splitlines(keepends=True)
    await child.wait()
    whole = (line.split() for line in seen if line.endswith(b"\n"))
    return {int(revision): (key, name) for revision, key, name in whole}


def check_whole(event: StoreEvent) -> None:
    if event.value is not None:
        name = event.value.partition(b":")[0]
        times = sum(position * byte for position, byte in enumerate(name, 1)) % 600
        assert event.value == name + b":" + name * times


async def check_reopened(path: Path, acknowledged: Writes, floor: int) -> int:
    """Every acknowledged write that was not compacted is there, as it was acknowledged; returns the revision."""
    store = await SQLiteStore.open(path, history=History(revisions=1_000_000))
    oldest = max(store.compacted, 1)
    recorder = Recorder()
    store.watch(b"", b"\xff", oldest, recorder.deliver)
    await recorder.until(store.revision - oldest + (oldest > 1))
    events = {event.revision: event for event in recorder.events}
    assert list(events) == list(range(max(oldest, 2), store.revision + 1))
    assert store.revision >= max(acknowledged, default=floor)
    for event in events.values():
        check_whole(event)
    for revision, (key, name) in acknowledged.items():
        if revision in events:
            event = events[revision]
            assert event.key == key
            assert event.value is None if name == b"-" else (event.value or b"").startswith(name + b":")
    held = {item.key: item.mod_revision for item in (await store.range(b"", b"\xff")).items}
    for key in {key for key, _ in acknowledged.values()}:
        last = max(revision for revision, (other, _) in acknowledged.items() if other == key)
        assert held.get(key, store.revision) >= last
    await store.close()
    return store.revision


async def test_acknowledged_writes_survive_kills(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    revision = 1
    for number in range(ROUNDS):
        lines = random.choice((0, 1, random.randint(2, 100), random.randint(100, 5000)))
        acknowledged = await serve_and_kill(path, number, lines)
        assert len(acknowledged) >= lines and min(acknowledged, default=revision + 1) > revision
        revision = await check_reopened(path, acknowledged, revision)
