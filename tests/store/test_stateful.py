"""Both stores against a model that keeps every state there ever was."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from steersman.store.conformance import Recorder
from steersman.store.history import History
from steersman.store.interface import Compacted, CompareFailed, KeyValue, Store
from steersman.store.memory import MemoryStore
from steersman.store.sqlite import SQLiteStore

KEPT = History(revisions=1_000_000)
ALL = (b"", b"\xff")
KEYS = st.sampled_from([b"a", b"a/1", b"a/2", b"b", b"b0", b"c"])
BOUNDS = st.sampled_from([b"", b"a", b"a/", b"a/2", b"b", b"b0", b"d"])
VALUES = st.none() | st.binary(max_size=20)


class AnyStore(RuleBasedStateMachine):
    """The model: `states[r - 1]` is what there was at revision r."""

    store: Store

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.states: list[dict[bytes, KeyValue]] = [{}]
        self.compacted = 0
        self.recorder = Recorder()

    def run(self, call: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(call)

    async def make(self) -> Store:
        return MemoryStore(history=KEPT)

    @initialize()
    def begin(self) -> None:
        self.store = self.run(self.make())
        self.observe(1)

    def observe(self, revision: int) -> None:
        async def watch() -> None:
            self.store.watch(*ALL, revision, self.recorder.deliver)

        self.run(watch())

    @rule(writes=st.lists(st.tuples(KEYS, VALUES, st.sampled_from([0, 0, 0, 1])), min_size=1, max_size=5))
    def swap(self, writes: list[tuple[bytes, bytes | None, int]]) -> None:
        """Several swaps at once, which are carried out in the order they were called."""
        calls, wanted = [], []
        for key, value, error in writes:
            now = self.states[-1]
            expected = (now[key].mod_revision if key in now else 0) + error
            if expected == 0 and value is None:
                continue
            calls.append(self.store.swap(key, expected, value))
            wanted.append(None if error else len(self.states) + 1)
            if not error:
                self.model_write(key, value)

        async def together() -> list[Any]:
            return await asyncio.gather(*calls, return_exceptions=True)

        for result, revision in zip(self.run(together()), wanted, strict=True):
            assert result == revision if revision else isinstance(result, CompareFailed)

    def model_write(self, key: bytes, value: bytes | None) -> None:
        state, revision = dict(self.states[-1]), len(self.states) + 1
        before = state.pop(key, None)
        if value is not None:
            state[key] = KeyValue(key, value, before.create_revision if before else revision, revision)
        self.states.append(state)

    @rule(start=BOUNDS, end=BOUNDS, limit=st.integers(0, 4), back=st.integers(0, 12))
    def range(self, start: bytes, end: bytes, limit: int, back: int) -> None:
        revision = max(len(self.states) - back, 1)
        if revision < self.compacted:
            with pytest.raises(Compacted):
                self.run(self.store.range(start, end, limit=limit, revision=revision))
            return
        found = self.run(self.store.range(start, end, limit=limit, revision=revision if back else 0))
        state = self.states[revision - 1]
        wanted = [state[key] for key in sorted(state) if start <= key < end]
        assert (found.items, found.count) == (wanted[: limit or None], len(wanted))
        assert (found.more, found.revision) == (0 < limit < len(wanted), revision)

    @rule(key=KEYS)
    def get(self, key: bytes) -> None:
        assert self.run(self.store.get(key)) == self.states[-1].get(key)

    @rule(start=BOUNDS, end=BOUNDS, back=st.integers(0, 12))
    def watch_history(self, start: bytes, end: bytes, back: int) -> None:
        revision = max(len(self.states) - back, self.compacted, 1)
        wanted = [event for event in self.recorder.events if event.revision >= revision and start <= event.key < end]

        async def replay() -> None:
            recorder = Recorder()
            watch = self.store.watch(start, end, revision, recorder.deliver)
            assert await recorder.until(len(wanted)) == wanted
            watch.cancel()

        self.run(replay())

    @rule(back=st.integers(0, 6))
    def compact(self, back: int) -> None:
        revision = len(self.states) - back
        if revision > self.compacted and revision >= 1:
            self.run(self.store.compact(revision))
            self.compacted = revision

    @invariant()
    def everything_was_watched(self) -> None:
        assert self.store.revision == len(self.states)
        assert self.store.compacted == self.compacted
        self.run(self.recorder.until(len(self.states) - 1))
        for event in self.recorder.events:
            after = self.states[event.revision - 1].get(event.key)
            before = self.states[event.revision - 2].get(event.key)
            assert event.value == (after.value if after else None)
            assert event.previous_revision == (before.mod_revision if before else 0)
            assert event.create_revision == (after or before).create_revision  # type: ignore[union-attr]
        assert self.recorder.revisions == list(range_of(2, len(self.states) + 1))

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.close()


range_of = range


class AnySQLiteStore(AnyStore):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="steersman-"))

    async def make(self) -> Store:
        return await SQLiteStore.open(self.directory / "store.db", history=KEPT)

    @rule()
    def reopen(self) -> None:
        self.run(self.store.close())
        self.store = self.run(self.make())
        self.observe(0)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.directory)


FEW = settings(max_examples=30, stateful_step_count=25, deadline=None)

TestMemoryStore = AnyStore.TestCase
TestMemoryStore.settings = settings(FEW, max_examples=60)
TestSQLiteStore = AnySQLiteStore.TestCase
TestSQLiteStore.settings = FEW
