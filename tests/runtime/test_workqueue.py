"""The work queue against a model of it, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.runtime.leaderelection.virtual import VirtualLoop, virtually

from steersman.runtime.metrics import QueueMetrics
from steersman.runtime.rate_limiter import ExponentialBackoff
from steersman.runtime.requests import Reason
from steersman.runtime.workqueue import AGEING, Item, ShutDown, WorkQueue

KEYS = st.sampled_from("abcde")
PRIORITIES = st.sampled_from([-100, 0, 0, 7])
DELAYS = st.sampled_from([0.0, 0.0, 0.5, 3.0, 20.0])


class Queue(RuleBasedStateMachine):
    """Adds, delays, failures, getters that come and are cancelled: each item once, never twice at a time, none lost."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.queue: WorkQueue[str] = self.loop.run_until_complete(self._make())
        self.waiting: dict[str, tuple[float, int]] = {}
        self.again: dict[str, tuple[float, int]] = {}
        self.working: dict[str, Item[str]] = {}
        self.failures: dict[str, int] = {}
        self.getters: list[asyncio.Task[Item[str]]] = []

    async def _make(self) -> WorkQueue[str]:
        return WorkQueue("test")

    def teardown(self) -> None:
        self._pass(3000.0)
        while self.working or self.waiting:
            while self.working:
                self.finish()
            if self.waiting:
                self.ask()
        getters, self.getters = self.getters, []
        for getter in getters:
            getter.cancel()
        self._settle()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def _pass(self, seconds: float) -> None:
        """Time passes; then whoever can go on has done so."""
        self.loop.run_until_complete(asyncio.sleep(seconds))
        self._settle()

    def _settle(self) -> None:
        async def turns() -> None:
            for _ in range(5):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())
        for getter in [getter for getter in self.getters if getter.done()]:
            self.getters.remove(getter)
            self._got(getter.result())

    def _got(self, item: Item[str]) -> None:
        assert item.key not in self.working
        ready_at, priority = self.waiting.pop(item.key)
        now = self.loop.time()
        assert (item.ready_at, item.priority) == (ready_at, priority)
        assert ready_at <= now + 1e-6
        assert -1e-6 <= item.waited <= now - ready_at + 1e-6
        self.working[item.key] = item

    def _add(self, key: str, ready_at: float, priority: int) -> None:
        place = self.again if key in self.working else self.waiting
        if key in place:
            old_ready, old_priority = place[key]
            ready_at, priority = min(ready_at, old_ready), max(priority, old_priority)
        place[key] = (ready_at, priority)

    @rule(key=KEYS, after=DELAYS, priority=PRIORITIES)
    def add(self, key: str, after: float, priority: int) -> None:
        now = self.loop.time()

        async def add() -> None:
            self.queue.add(key, after=after, priority=priority)

        self.loop.run_until_complete(add())
        self._add(key, now + after, priority)
        self._settle()

    @rule()
    def ask(self) -> None:
        now = self.loop.time()
        due = {key: place for key, place in self.waiting.items() if place[0] <= now}
        before = set(self.working)
        self.getters.append(self.loop.create_task(self.queue.get()))
        self._settle()
        taken = set(self.working) - before
        assert len(taken) == min(len(due), 1)
        for key in taken:
            ranks = {each: ready - priority * AGEING for each, (ready, priority) in due.items()}
            assert ranks[key] <= min(ranks.values()) + 1e-9

    @precondition(lambda self: self.getters)
    @rule(which=st.integers(min_value=0))
    def give_up(self, which: int) -> None:
        getter = self.getters.pop(which % len(self.getters))
        getter.cancel()
        self._settle()

    @precondition(lambda self: self.getters)
    @rule(key=KEYS, which=st.integers(min_value=0))
    def give_up_when_it_comes(self, key: str, which: int) -> None:
        """The getter is cancelled in the turn in which it is woken: another one gets the item."""
        getter = self.getters.pop(which % len(self.getters))
        now = self.loop.time()

        async def both() -> None:
            self.queue.add(key)
            getter.cancel()

        self.loop.run_until_complete(both())
        self._add(key, now, 0)
        self._settle()

    @precondition(lambda self: self.working)
    @rule()
    def finish(self) -> None:
        self._finish(min(self.working), failed=False)

    @precondition(lambda self: self.working)
    @rule()
    def fail(self) -> None:
        self._finish(min(self.working), failed=True)

    def _finish(self, key: str, *, failed: bool) -> None:
        async def end() -> float:
            delay = 0.0
            if failed:
                delay = self.queue.add_rate_limited(key)
            else:
                self.queue.forget(key)
            self.queue.done(key)
            return delay

        delay = self.loop.run_until_complete(end())
        if failed:
            count = self.failures.get(key, 0)
            self.failures[key] = count + 1
            assert delay == min(0.005 * 2**count, 1000.0)
            self._add(key, self.loop.time() + delay, 0)
        else:
            self.failures.pop(key, None)
        del self.working[key]
        if key in self.again:
            self.waiting[key] = self.again.pop(key)
        self._settle()

    @rule(seconds=st.sampled_from([0.01, 1.0, 15.0]))
    def wait(self, seconds: float) -> None:
        self._pass(seconds)

    @invariant()
    def nobody_waits_for_what_is_there(self) -> None:
        now = self.loop.time()
        if self.getters:
            assert not [key for key, (ready, _) in self.waiting.items() if ready < now]
        assert len(self.queue) == len(self.waiting)
        assert len(self.queue.working()) == len(self.working)
        for key, failures in self.failures.items():
            assert self.queue.failures(key) == failures


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_the_backoff_doubles_from_5_ms_to_1000_s_and_starts_anew() -> None:
    backoff: ExponentialBackoff[str] = ExponentialBackoff()
    delays = [backoff.when("a") for _ in range(100)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[17] == 0.005 * 2**17
    assert set(delays[18:]) == {1000.0}
    assert backoff.when("b") == 0.005
    backoff.forget("a")
    assert (backoff.failures("a"), backoff.when("a")) == (0, 0.005)


def test_low_priority_does_not_starve_under_steady_work() -> None:
    """controller-runtime#3496: an item of priority -100 waits for ever there."""

    async def main() -> float:
        queue: WorkQueue[str] = WorkQueue()
        clock = asyncio.get_running_loop().time
        queue.add("patient", priority=-100)
        for number in range(3):
            queue.add(f"busy{number}")
        while True:
            item = await queue.get()
            await asyncio.sleep(0.01)
            queue.done(item.key)
            if item.key == "patient":
                return clock()
            queue.add(item.key)

    waited = virtually(main())
    assert 9.0 < waited < 11.0, "100 points of priority are worth 10 s"


def test_the_urgent_goes_first_and_equals_in_the_order_they_came() -> None:
    async def main() -> list[str]:
        queue: WorkQueue[str] = WorkQueue()
        for key, priority in [("initial1", -100), ("initial2", -100), ("event1", 0), ("event2", 0), ("urgent", 10)]:
            queue.add(key, priority=priority)
        queue.add("initial2")  # an event makes it as urgent as the others
        return [(await queue.get()).key for _ in range(5)]

    assert virtually(main()) == ["urgent", "event1", "event2", "initial2", "initial1"]


def test_an_item_keeps_all_its_reasons_but_not_without_end() -> None:
    async def main() -> list[Reason]:
        queue: WorkQueue[str] = WorkQueue()
        for number in range(100):
            queue.add("a", reason=Reason("updated", str(number)))
            queue.add("a", reason=Reason("updated", "0"))
        return (await queue.get()).reasons

    assert [reason.detail for reason in virtually(main())] == [str(number) for number in range(8)]


@pytest.mark.parametrize("after", [0.0, 60.0])
@pytest.mark.parametrize("rising", [False, True])
def test_a_hot_key_does_not_make_the_queue_grow(after: float, rising: bool) -> None:
    async def main() -> int:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("busy")
        await queue.get()
        for number in range(20_000):
            queue.add("hot", after=after - number / 1000 if after else 0.0, priority=number if rising else 0)
            queue.add("busy")
        return len(queue._later) + len(queue._ready) + len(queue._waiting) + len(queue._again)

    assert virtually(main()) < 200


def test_when_it_is_shut_down_nothing_begins_and_what_runs_is_waited_for() -> None:
    async def main() -> list[Any]:
        queue: WorkQueue[str] = WorkQueue()
        for key in ("running", "waiting"):
            queue.add(key)
        queue.add("later", after=5.0)
        assert (await queue.get()).key == "running"
        getters = [asyncio.ensure_future(queue.get()) for _ in range(3)]
        await asyncio.sleep(0)
        queue.add("running")
        queue.shut_down()
        queue.add("too late")
        ends = await asyncio.gather(*getters, return_exceptions=True)
        queue.done("waiting")
        drained = asyncio.ensure_future(queue.drained())
        await asyncio.sleep(100)
        seen = [drained.done(), len(queue)]
        queue.done("running")
        await drained
        with pytest.raises(ShutDown):
            await queue.get()
        return [*seen, *(type(end) for end in ends[1:])]

    assert virtually(main()) == [False, 0, ShutDown, ShutDown]


def test_its_metrics_have_the_names_and_the_numbers() -> None:
    async def main() -> str:
        metrics = QueueMetrics()
        queue: WorkQueue[str] = WorkQueue("mine", metrics=metrics)
        for key in ("a", "b", "a"):
            queue.add(key)
        queue.add("c", priority=-100)
        queue.add("later", after=100)
        await asyncio.sleep(2)
        await queue.get()
        await asyncio.sleep(3)
        queue.add_rate_limited("b")
        return "\n".join(line for metric in metrics.all() for line in metric.lines())

    text = virtually(main())
    labels = 'name="mine",controller="mine"'
    for line in (
        f'workqueue_depth{{{labels},priority="0"}} 1',
        f'workqueue_depth{{{labels},priority="-100"}} 1',
        f"workqueue_adds_total{{{labels}}} 6",
        f"workqueue_retries_total{{{labels}}} 1",
        f"workqueue_queue_duration_seconds_sum{{{labels}}} 2",
        f"workqueue_unfinished_work_seconds{{{labels}}} 3",
        f"workqueue_longest_running_processor_seconds{{{labels}}} 3",
    ):
        assert line in text
