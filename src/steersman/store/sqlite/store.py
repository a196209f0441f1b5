"""A durable store in one SQLite file.

All state but the values is on the event loop: which keys exist at which revisions. Swaps are compared there and
handed, all that wait together, to the writing thread, which commits them in one transaction; while it does, further
swaps queue up for the next one. So the thread never decides anything, and the loop never waits for the disk.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Self

from steersman.store._checks import check_compact, check_swap, read_revision, watch_position
from steersman.store._keys import ABSENT, Change, Ref, undo
from steersman.store._watching import Deliver, Ended, KeyWatch, Watching
from steersman.store.history import History, HistoryKeeper
from steersman.store.interface import (
    CompareFailed,
    Figures,
    KeyValue,
    Premises,
    Range,
    StoreError,
    StoreEvent,
    StoreFull,
    StoreUnavailable,
    Watch,
)
from steersman.store.sqlite.batch import Batch, Swap
from steersman.store.sqlite.errors import depends_on_size, explain, is_final
from steersman.store.sqlite.files import Files, open_files
from steersman.store.sqlite.reader import HISTORY_CHUNK
from steersman.store.sqlite.space import Space, sizes_beside
from steersman.store.sqlite.worker import Worker
from steersman.store.sqlite.writer import BATCH_ROWS, SLICE_REVISIONS

_RECENT = 4096
_HISTORY_WHEN_TIGHT = 20
_INLINE_VALUES = 8


class SQLiteStore:
    """A `Store` in the file at a path. Made by `open`; used on one event loop; ended by `close`."""

    shared = read_only = False

    def __init__(self, files: Files, history: History, quota: int = 0) -> None:
        """Take over what `open_files` opened; for `open`."""
        self._files = files
        self._loop = asyncio.get_running_loop()
        self._writing = Worker(self._loop, "steersman-store-writer", after=files.writer.tidy)
        self._reading = Worker(self._loop, "steersman-store-reader")
        self._keeper = HistoryKeeper(history)
        self._watching = Watching()
        loaded = files.loaded
        self._index, self._revision = loaded.index, loaded.revision
        self._compacted, self._swept = loaded.compacted, loaded.swept
        self._recent: deque[Change] = deque(maxlen=_RECENT)
        self._read_revisions: list[int] = []
        self._queue: deque[Swap] = deque()
        self._alone = 0
        self._busy = self._scheduled = False
        self._sweep_turn = self._sweep_failed = False
        self._broken: StoreError | None = None
        self._drained: asyncio.Future[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._space = Space(files.path, files.local.usage, quota)
        self._schedule()

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        history: History | None = None,
        vfs: str | None = None,
        fsync: bool = True,
        quota: int = 0,
    ) -> Self:
        """Open the file at `path`, which is created (mode 0600) if it is not there, and keep others from opening it.

        `history` says what automatic compaction leaves readable (by default History()); the space it frees is used
        again, the file does not shrink. `vfs` names a SQLite VFS to use instead of the platform's. Without `fsync`
        commits do not wait for the disk: they outlive the process, but not the machine. When `quota` bytes are in use
        (0: any number), history is given up, and only deletions are taken. Raises StoreUnavailable with a subclass of
        `steersman.store.sqlite.errors` that says what is wrong with the file.
        """
        loop = asyncio.get_running_loop()
        opening = loop.run_in_executor(None, open_files, path, vfs, fsync)
        try:
            files = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_opened)
            raise
        return cls(files, history or History(), quota)

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def compacted(self) -> int:
        return self._compacted

    async def get(self, key: bytes) -> KeyValue | None:
        self._check_open()
        return self._current(key)

    async def range(self, start: bytes, end: bytes, *, limit: int = 0, revision: int = 0) -> Range:
        self._check_open()
        at = read_revision(limit, revision, self._revision, self._compacted)
        self._read_revisions.append(at)
        try:
            undone = await self._undone(start, end, at)
            keys, count = self._index.view(start, end, undone, limit)
            items = await self._values(keys, undone)
        except StoreError:
            raise
        except Exception as error:
            raise explain(error, self._files.path) from error
        finally:
            self._read_revisions.remove(at)
            self._schedule()
        return Range(items, at, len(items) < count, count)

    async def swap(self, key: bytes, expected: int, value: bytes | None, premises: Premises | None = None) -> int:
        self._check_open()
        check_swap(expected, value)
        if self._broken is not None:
            raise StoreUnavailable(str(self._broken))
        if value is not None and self._space.full:
            raise StoreFull(self._space.refusal())
        future: asyncio.Future[int] = self._loop.create_future()
        self._queue.append(Swap(key, expected, value, future))
        self._schedule()
        return await future

    def watch(self, start: bytes, end: bytes, revision: int, deliver: Deliver, ended: Ended | None = None) -> Watch:
        self._check_open()
        position = watch_position(revision, self._revision, self._compacted)
        watch = KeyWatch(self._watching, start, end, position, deliver, ended)
        live = position > self._revision
        self._watching.add(watch, live=live)
        if not live:
            self._catch_up(watch)
        return watch

    async def settle(self) -> None:
        self._check_open()

    def expire(self, prefix: bytes, seconds: float) -> bool:
        return False

    def trouble(self) -> str | None:
        return None if self._broken is None else str(self._broken)

    async def figures(self) -> Figures:
        self._check_open()
        try:
            size, used = self._files.local.usage()
            log, left = sizes_beside(self._files.path)
        except Exception as error:
            raise explain(error, self._files.path) from error
        return Figures("sqlite", size, used, log, self._space.quota, left, len(self._index))

    async def compact(self, revision: int) -> None:
        self._check_open()
        check_compact(revision, self._revision, self._compacted)
        self._compacted = revision
        self._schedule()

    async def close(self) -> None:
        if self._closing is None:
            self._closing = self._loop.create_task(self._shut_down())
        await asyncio.shield(self._closing)

    async def _shut_down(self) -> None:
        if self._busy or self._queue:
            self._drained = self._loop.create_future()
            await self._drained
        self._watching.end(StoreUnavailable("the store is closed"))
        if self._compacted > self._swept and self._broken is None:
            self._busy = True
            await self._writing.run(self._sweep_job(min(self._swept + SLICE_REVISIONS, self._compacted)))
        await self._reading.run(lambda: None)
        self._reading.stop()
        await self._writing.run(self._files.close)
        self._writing.stop()

    # Writing

    def _schedule(self) -> None:
        """Look for work soon: after what is ready to run now has had its chance to add to the queue."""
        if not self._busy and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._start_work)

    def _start_work(self) -> None:
        """Give the idle writing thread a batch, or a slice of compaction: by turns while there is both to do."""
        self._scheduled = False
        if self._busy:
            return
        if (self._sweep_turn or not self._queue) and self._start_sweep():
            return
        while self._queue:
            if self._start_batch():
                return
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _start_batch(self) -> bool:
        batch = Batch(self._revision, 1 if self._alone else BATCH_ROWS)
        self._alone = max(self._alone - 1, 0)
        while self._queue and batch.has_room:
            swap = self._queue.popleft()
            if not swap.future.done() and not batch.add(swap, self._index.get(swap.key)):
                self._refuse(swap)
        if not batch.events:
            return False
        self._busy = True
        self._writing.submit(partial(self._files.writer.insert, batch.events), partial(self._batch_done, batch))
        return True

    def _batch_done(self, batch: Batch, _: None, error: Exception | None) -> None:
        self._busy = False
        self._sweep_turn = True
        if error is None:
            self._space.grow(batch.bytes)
            self._take_in(batch.events)
            self._watching.deliver(batch.events)
            batch.answer()
        else:
            self._batch_failed(batch, explain(error, self._files.path))
        self._schedule()

    def _take_in(self, events: Sequence[StoreEvent]) -> None:
        for event in events:
            revision, created = event.revision, event.create_revision
            self._index.apply(event.key, (revision, created), deleted=event.value is None)
            self._recent.append((revision, event.key, created, event.previous_revision))
        self._revision = events[-1].revision
        self._sweep_failed = False
        target = self._keeper.target(self._revision, self._compacted, self._loop.time())
        if self._space.full or (self._space.tight and self._revision - self._compacted >= _HISTORY_WHEN_TIGHT):
            target = self._revision
        self._compacted = max(self._compacted, target)

    def _batch_failed(self, batch: Batch, error: StoreError) -> None:
        """Fail the swaps; but if one may be too large for all, try each by itself."""
        if is_final(error):
            self._break(error)
        if len(batch.swaps) > 1 and depends_on_size(error):
            self._queue.extendleft(reversed(batch.swaps))
            self._alone = len(batch.swaps)
        else:
            for swap in batch.swaps:
                swap.fail(error)

    def _break(self, error: StoreError) -> None:
        """Accept no more writes, as what the file holds is not known any more."""
        self._broken = error
        for swap in self._queue:
            swap.fail(error)
        self._queue.clear()

    def _refuse(self, swap: Swap) -> None:
        try:
            swap.fail(CompareFailed(swap.key, self._current(swap.key)))
        except StoreError as error:
            swap.fail(error)

    # Compaction

    def _start_sweep(self) -> bool:
        """Remove some of what was compacted, but nothing that a running read or watch still needs."""
        if self._broken is not None or self._sweep_failed:
            return False
        limit = min(self._read_revisions, default=self._compacted)
        limit = min(limit, self._watching.oldest_position(limit), self._compacted, self._swept + SLICE_REVISIONS)
        if limit <= self._swept:
            return False
        self._busy = True
        self._writing.submit(self._sweep_job(limit), partial(self._sweep_done, limit))
        return True

    def _sweep_job(self, to: int) -> partial[None]:
        return partial(self._files.writer.sweep, self._swept, to, self._compacted)

    def _sweep_done(self, to: int, _: None, error: Exception | None) -> None:
        self._busy = self._sweep_turn = False
        if error is None:
            self._swept = to
            if to == self._compacted:
                self._space.look()
        else:
            # Nothing depends on it: it is tried again after the next write that works.
            self._sweep_failed = True
            reason = explain(error, self._files.path)
            if is_final(reason):
                self._break(reason)
        self._schedule()

    # Reading

    def _current(self, key: bytes) -> KeyValue | None:
        """The key as it is now, read on the loop: some 4 us, a tenth of what handing it to a thread costs."""
        ref = self._index.get(key)
        if ref is ABSENT:
            return None
        try:
            return self._files.local.value(key, *ref)
        except Exception as error:
            raise explain(error, self._files.path) from error

    async def _undone(self, start: bytes, end: bytes, at: int) -> dict[bytes, Ref]:
        """What the keys of [start, end) that were written after `at` were then; complete when this returns."""
        undone: dict[bytes, Ref] = {}
        while at < self._revision - len(self._recent):
            to = self._revision
            changes = await self._reading.run(partial(self._files.reader.undo, at, to, start, end))
            self._check_open()
            undone = undo(changes) | undone
            at = to
        recent = islice(self._recent, at - (self._revision - len(self._recent)), None)
        return undo(change for change in recent if start <= change[1] < end) | undone

    async def _values(self, keys: list[bytes], undone: dict[bytes, Ref]) -> list[KeyValue]:
        get = self._index.get
        wanted = [(key, *(undone.get(key) or get(key))) for key in keys]
        if len(wanted) <= _INLINE_VALUES:
            return self._files.local.values(wanted)
        return await self._reading.run(partial(self._files.reader.values, wanted))

    def _catch_up(self, watch: KeyWatch) -> None:
        to = self._revision
        read = partial(self._files.reader.history, watch.position - 1, to, watch.start, watch.end)
        self._reading.submit(read, partial(self._caught_up, watch, to))

    def _caught_up(self, watch: KeyWatch, to: int, events: Sequence[StoreEvent], error: Exception | None) -> None:
        """Deliver a piece of history; go on with the next one, or live when nothing happened meanwhile."""
        if not watch.active:
            return
        if error is not None:
            watch.fail(explain(error, self._files.path))
            return
        watch.position = events[-1].revision + 1 if len(events) == HISTORY_CHUNK else to + 1
        live = watch.position > self._revision
        if live:
            self._watching.go_live(watch)
        watch.give(events)
        if watch.active and not live:
            self._catch_up(watch)
        self._schedule()

    def _check_open(self) -> None:
        if self._closing is not None:
            raise StoreUnavailable("the store is closed")


def _close_opened(opening: asyncio.Future[Files]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
