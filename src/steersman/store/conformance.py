"""What every store must do, as checks to run against one.

    for check in CHECKS:
        store = await new_store()
        await check(store)
        await store.close()

Each check takes an empty store that does not compact by itself, and raises AssertionError if the store does not
keep to `steersman.store.interface.Store`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from steersman.store.interface import (
    Compacted,
    CompareFailed,
    FutureRevision,
    KeyValue,
    Store,
    StoreError,
    StoreEvent,
    StoreUnavailable,
)

Check = Callable[[Store], Awaitable[None]]

_ALL = (b"", b"\xff")
_PATIENCE = 30.0


class Recorder:
    """What a watch was given."""

    def __init__(self) -> None:
        self.events: list[StoreEvent] = []
        self.ends: list[StoreError] = []
        self._changed = asyncio.Event()

    def deliver(self, events: Sequence[StoreEvent]) -> None:
        assert events, "deliver was called without events"
        self.events += events
        self._changed.set()

    def ended(self, error: StoreError) -> None:
        self.ends.append(error)
        self._changed.set()

    async def until(self, count: int) -> list[StoreEvent]:
        """Wait for `count` events."""
        async with asyncio.timeout(_PATIENCE):
            while len(self.events) < count:
                self._changed.clear()
                await self._changed.wait()
        assert len(self.events) == count, f"{len(self.events)} events instead of {count}"
        return self.events

    async def end(self) -> StoreError:
        """Wait until the store ends the watch."""
        async with asyncio.timeout(_PATIENCE):
            while not self.ends:
                self._changed.clear()
                await self._changed.wait()
        return self.ends[0]

    @property
    def revisions(self) -> list[int]:
        return [event.revision for event in self.events]


async def put(store: Store, key: bytes, value: bytes | None) -> int:
    """Write whatever the key holds now."""
    current = await store.get(key)
    return await store.swap(key, current.mod_revision if current else 0, value)


async def fails(call: Awaitable[object], error: type[Exception]) -> Exception:
    """The error the call raises, which must be of the given class."""
    try:
        await call
    except error as raised:
        return raised
    raise AssertionError(f"no {error.__name__} was raised")


async def check_empty(store: Store) -> None:
    assert (store.revision, store.compacted) == (1, 0)
    assert await store.get(b"a") is None
    found = await store.range(*_ALL)
    assert (found.items, found.revision, found.more, found.count) == ([], 1, False, 0)


async def check_create_update_delete(store: Store) -> None:
    assert await store.swap(b"a", 0, b"1") == 2
    assert await store.get(b"a") == KeyValue(b"a", b"1", 2, 2)
    assert await store.swap(b"a", 2, b"2") == 3
    assert await store.get(b"a") == KeyValue(b"a", b"2", 2, 3)
    assert await store.swap(b"a", 3, None) == 4
    assert await store.get(b"a") is None
    assert await store.swap(b"a", 0, b"3") == 5
    assert await store.get(b"a") == KeyValue(b"a", b"3", 5, 5)
    assert store.revision == 5


async def check_failed_compares(store: Store) -> None:
    await store.swap(b"a", 0, b"1")
    for expected, value in ((0, b"x"), (1, b"x"), (3, b"x"), (1, None)):
        error = await fails(store.swap(b"a", expected, value), CompareFailed)
        assert isinstance(error, CompareFailed)
        assert (error.key, error.current) == (b"a", KeyValue(b"a", b"1", 2, 2))
    error = await fails(store.swap(b"b", 2, b"x"), CompareFailed)
    assert isinstance(error, CompareFailed) and error.current is None
    assert store.revision == 2 and await store.get(b"b") is None


async def check_bad_arguments(store: Store) -> None:
    await fails(store.swap(b"a", 0, None), ValueError)
    await fails(store.swap(b"a", -1, b"x"), ValueError)
    await fails(store.range(*_ALL, limit=-1), ValueError)
    await fails(store.range(*_ALL, revision=-1), ValueError)
    await fails(store.compact(0), ValueError)
    await fails(_watch(store, -1), ValueError)
    assert store.revision == 1


async def check_arbitrary_bytes(store: Store) -> None:
    key, value = bytes(range(255)), bytes(range(256)) * 5000
    await store.swap(key, 0, value)
    await store.swap(b"empty", 0, b"")
    assert await store.get(key) == KeyValue(key, value, 2, 2)
    assert await store.get(b"empty") == KeyValue(b"empty", b"", 3, 3)
    recorder = Recorder()
    store.watch(*_ALL, 1, recorder.deliver)
    assert [event.value for event in await recorder.until(2)] == [value, b""]


async def check_range_order_and_bounds(store: Store) -> None:
    for key in (b"b", b"a/2", b"a", b"a/10", b"c", b"a0"):
        await store.swap(key, 0, key)
    found = await store.range(b"a", b"b")
    assert [item.key for item in found.items] == [b"a", b"a/10", b"a/2", b"a0"]
    assert [item.value for item in found.items] == [item.key for item in found.items]
    assert [item.key for item in (await store.range(b"a/", b"a0")).items] == [b"a/10", b"a/2"]
    assert (await store.range(b"c", b"a")).count == 0


async def check_range_limit_and_continuation(store: Store) -> None:
    keys = [b"k%03d" % number for number in range(150)]
    for key in reversed(keys):
        await store.swap(key, 0, key)
    first = await store.range(*_ALL, limit=70)
    for key in keys[::3]:
        await put(store, key, None)
    await store.swap(b"k0000", 0, b"new")
    seen, page = list(first.items), first
    while page.more:
        assert page.count == 150 - len(seen) + len(page.items)
        page = await store.range(seen[-1].key + b"\0", _ALL[1], limit=70, revision=first.revision)
        assert page.revision == first.revision
        seen += page.items
    assert [item.key for item in seen] == keys
    exact = await store.range(*_ALL, limit=101)
    assert (len(exact.items), exact.more, exact.count) == (101, False, 101)


async def check_range_at_old_revisions(store: Store) -> None:
    states: dict[int, list[KeyValue]] = {}
    for step in range(60):
        await put(store, b"k%d" % (step * 7 % 11), b"v%d" % step)
        if step % 3 == 2:
            items = (await store.range(*_ALL)).items
            await put(store, items[step % len(items)].key, None)
        states[store.revision] = (await store.range(*_ALL)).items
    for revision, items in states.items():
        found = await store.range(*_ALL, revision=revision)
        assert (found.items, found.count, found.revision) == (items, len(items), revision)
        some = await store.range(b"k2", b"k7", limit=2, revision=revision)
        wanted = [item for item in items if b"k2" <= item.key < b"k7"]
        assert (some.items, some.more, some.count) == (wanted[:2], len(wanted) > 2, len(wanted))
    assert (await store.range(*_ALL, revision=1)).items == []
    error = await fails(store.range(*_ALL, revision=store.revision + 1), FutureRevision)
    assert isinstance(error, FutureRevision) and error.revision == store.revision


async def check_watch_from_now(store: Store) -> None:
    await store.swap(b"a", 0, b"1")
    recorder, late = Recorder(), Recorder()
    store.watch(b"a", b"b", 0, recorder.deliver)
    store.watch(b"a", b"b", 4, late.deliver)
    await store.swap(b"a", 2, b"2")
    assert recorder.events == [StoreEvent(b"a", b"2", 3, 2, 2)], "events come before the write's answer"
    await store.swap(b"b", 0, b"elsewhere")
    await store.swap(b"a", 3, None)
    await store.swap(b"a", 0, b"3")
    wanted = [StoreEvent(b"a", None, 5, 2, 3), StoreEvent(b"a", b"3", 6, 6, 0)]
    assert recorder.events[1:] == wanted and late.events == wanted


async def check_watch_from_past(store: Store) -> None:
    for number in range(300):
        await put(store, b"k%d" % (number % 7), b"%d" % number)
    await put(store, b"k1", None)
    everything, some = Recorder(), Recorder()
    store.watch(*_ALL, 1, everything.deliver)
    store.watch(b"k1", b"k2", 102, some.deliver)
    await put(store, b"k1", b"new")
    assert [event.revision for event in await everything.until(302)] == list(range(2, 304))
    wanted = [event for event in everything.events if event.key == b"k1" and event.revision >= 102]
    assert await some.until(len(wanted)) == wanted
    assert wanted[-2].value is None and wanted[-1].create_revision == 303
    await put(store, b"k1", b"newer")
    assert some.revisions[-1] == everything.revisions[-1] == 304


async def check_watch_caught_up(store: Store) -> None:
    for number in range(200):
        await put(store, b"k%d" % (number % 7), b"%d" % number)
    everything, none = Recorder(), Recorder()
    watch = store.watch(*_ALL, 2, everything.deliver)
    await watch.caught_up()
    assert everything.revisions == list(range(2, 202)), "all that had happened has been delivered"
    elsewhere = store.watch(b"x", b"y", 2, none.deliver)
    await elsewhere.caught_up()
    await store.watch(*_ALL, 0, none.deliver).caught_up()
    assert none.events == []
    ended = store.watch(*_ALL, 2, Recorder().deliver)
    ended.cancel()
    await ended.caught_up()
    await store.settle()
    await put(store, b"a", b"")
    assert none.revisions == [202] and everything.revisions[-1] == 202


async def check_watch_from_future(store: Store) -> None:
    recorder = Recorder()
    store.watch(*_ALL, 4, recorder.deliver)
    for number in range(5):
        await put(store, b"a", b"%d" % number)
    assert recorder.revisions == [4, 5, 6]


async def check_watch_cancel(store: Store) -> None:
    recorder, other = Recorder(), Recorder()
    watch = store.watch(*_ALL, 0, recorder.deliver, recorder.ended)

    def deliver_once(events: Sequence[StoreEvent]) -> None:
        other.deliver(events)
        cancelled.cancel()

    cancelled = store.watch(*_ALL, 0, deliver_once)
    await put(store, b"a", b"1")
    watch.cancel()
    watch.cancel()
    await put(store, b"a", b"2")
    behind = store.watch(*_ALL, 1, recorder.deliver, recorder.ended)
    behind.cancel()
    count = len(recorder.events)
    await put(store, b"a", b"3")
    await store.close()
    assert (count, len(recorder.events), recorder.ends, other.revisions) in ((1, 1, [], [2]), (3, 3, [], [2]))


async def check_watch_callback_failure(store: Store) -> None:
    recorder, told = Recorder(), []
    loop = asyncio.get_running_loop()

    def broken(events: Sequence[StoreEvent]) -> None:
        raise LookupError(f"{len(events)} events")

    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
    try:
        store.watch(*_ALL, 0, broken)
        store.watch(*_ALL, 0, recorder.deliver)
        assert await put(store, b"a", b"1") == 2
        assert await put(store, b"a", b"2") == 3
    finally:
        loop.set_exception_handler(before)
    assert recorder.revisions == [2, 3]
    assert [type(error) for error in told] == [LookupError, LookupError]


async def check_watch_started_in_callback(store: Store) -> None:
    outer, inner = Recorder(), Recorder()

    def deliver(events: Sequence[StoreEvent]) -> None:
        outer.deliver(events)
        if outer.events[0] is events[0]:
            store.watch(*_ALL, events[0].revision, inner.deliver)

    store.watch(*_ALL, 0, deliver)
    await asyncio.gather(*(store.swap(b"k%d" % number, 0, b"") for number in range(20)))
    assert [event.revision for event in await inner.until(20)] == list(range(2, 22))


async def check_compaction(store: Store) -> None:
    for number in range(10):
        await put(store, b"a", b"%d" % number)
    await store.swap(b"kept", 0, b"old")
    await put(store, b"a", None)
    await store.swap(b"b", 0, b"1")
    running = Recorder()
    store.watch(*_ALL, 1, running.deliver)
    await store.compact(13)
    assert (store.revision, store.compacted) == (14, 13)
    error = await fails(store.range(*_ALL, revision=12), Compacted)
    assert isinstance(error, Compacted) and error.revision == 13
    await fails(_watch(store, 12), Compacted)
    await fails(store.compact(13), Compacted)
    await fails(store.compact(12), Compacted)
    await fails(store.compact(15), FutureRevision)
    assert (await store.range(*_ALL, revision=13)).items == [KeyValue(b"kept", b"old", 12, 12)]
    assert await store.get(b"kept") == KeyValue(b"kept", b"old", 12, 12)
    recorder = Recorder()
    store.watch(*_ALL, 13, recorder.deliver)
    deleted, created = await recorder.until(2)
    assert deleted in (StoreEvent(b"a", None, 13, 2, 11), StoreEvent(b"a", None, 13, 0, 0)), "what was before is gone"
    assert created == StoreEvent(b"b", b"1", 14, 14, 0)
    assert [event.revision for event in await running.until(13)] == list(range(2, 15))
    assert await put(store, b"a", b"again") == 15
    assert await store.get(b"a") == KeyValue(b"a", b"again", 15, 15)


async def check_compaction_of_everything(store: Store) -> None:
    await store.swap(b"a", 0, b"1")
    await store.swap(b"a", 2, None)
    await store.compact(3)
    assert (await store.range(*_ALL)).items == (await store.range(*_ALL, revision=3)).items == []
    assert await store.swap(b"a", 0, b"2") == 4
    await store.compact(4)
    assert (await store.range(*_ALL, revision=4)).items == [KeyValue(b"a", b"2", 4, 4)]


async def check_concurrent_writers(store: Store) -> None:
    """Counters on shared keys: every increment must count, once, and every watch must see each write once."""
    live, joining = Recorder(), Recorder()
    store.watch(*_ALL, 0, live.deliver)
    written: list[int] = []

    async def increment(key: bytes) -> None:
        expected, count = 0, 0
        while True:
            try:
                written.append(await store.swap(key, expected, b"%d" % (count + 1)))
            except CompareFailed as error:
                assert error.current is not None and error.current.mod_revision != expected
                expected, count = error.current.mod_revision, int(error.current.value)
            else:
                assert live.revisions[-1] >= written[-1]
                return

    async def work(number: int) -> None:
        for step in range(12):
            await increment(b"counter-%d" % ((number + step) % 4))
            if number == 5 and step == 6:
                store.watch(*_ALL, 1, joining.deliver)

    await asyncio.gather(*(work(number) for number in range(24)))
    assert sorted(written) == list(range(2, 2 + 24 * 12)), "revisions are dense and given once"
    assert live.revisions == sorted(written)
    assert (await joining.until(24 * 12)) == live.events
    assert [int(item.value) for item in (await store.range(*_ALL)).items] == [72] * 4
    previous: dict[bytes, int] = {}
    for event in live.events:
        assert event.previous_revision == previous.get(event.key, 0)
        previous[event.key] = event.revision


async def check_reads_see_own_writes(store: Store) -> None:
    async def work(key: bytes) -> None:
        revision = 0
        for number in range(20):
            revision = await store.swap(key, revision, b"%d" % number)
            assert store.revision >= revision
            found = await store.range(key, key + b"\0")
            assert found.items == [KeyValue(key, b"%d" % number, found.items[0].create_revision, revision)]
            assert found.revision >= revision

    await asyncio.gather(*(work(b"k%d" % number) for number in range(10)))


async def check_cancelled_callers(store: Store) -> None:
    """A cancelled swap is carried out or not, whole, and disturbs nobody else's."""
    tasks = [asyncio.ensure_future(store.swap(b"k%02d" % number, 0, b"%d" % number)) for number in range(40)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, int) for result in results[1::2])
    assert await store.swap(b"last", 0, b"") == store.revision
    recorder = Recorder()
    store.watch(*_ALL, 1, recorder.deliver)
    await recorder.until(store.revision - 1)
    assert recorder.revisions == list(range(2, store.revision + 1))
    held = {item.key: item.mod_revision for item in (await store.range(*_ALL)).items}
    assert held == {event.key: event.revision for event in recorder.events}
    for number, result in enumerate(results):
        assert not isinstance(result, int) or held[b"k%02d" % number] == result


async def check_close(store: Store) -> None:
    recorder = Recorder()
    store.watch(*_ALL, 0, recorder.deliver, recorder.ended)
    accepted = [asyncio.ensure_future(store.swap(b"k%d" % number, 0, b"")) for number in range(30)]
    await asyncio.sleep(0)
    await asyncio.gather(store.close(), store.close())
    assert sorted(await asyncio.gather(*accepted)) == recorder.revisions == list(range(2, 32))
    assert [type(error) for error in recorder.ends] == [StoreUnavailable]
    await store.close()
    assert store.revision == 31
    calls = [store.get(b"a"), store.range(*_ALL), store.swap(b"a", 0, b""), store.compact(2), _watch(store, 0)]
    for call in (*calls, store.settle()):
        await fails(call, StoreUnavailable)
    assert len(recorder.ends) == 1


async def _watch(store: Store, revision: int) -> None:
    store.watch(*_ALL, revision, Recorder().deliver)


CHECKS: tuple[Check, ...] = (
    check_empty,
    check_create_update_delete,
    check_failed_compares,
    check_bad_arguments,
    check_arbitrary_bytes,
    check_range_order_and_bounds,
    check_range_limit_and_continuation,
    check_range_at_old_revisions,
    check_watch_from_now,
    check_watch_from_past,
    check_watch_caught_up,
    check_watch_from_future,
    check_watch_cancel,
    check_watch_callback_failure,
    check_watch_started_in_callback,
    check_compaction,
    check_compaction_of_everything,
    check_concurrent_writers,
    check_reads_see_own_writes,
    check_cancelled_callers,
    check_close,
)
