import asyncio
from collections import Counter

import pytest

from steersman.controlplane.queue import WorkQueue


@pytest.fixture
async def started():
    """`started(queue)` runs a queue until the test ends."""
    tasks = []

    def start(queue):
        tasks.append(asyncio.ensure_future(queue.run()))
        return queue

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_key_that_waits_is_worked_on_once(started):
    seen, done = Counter(), asyncio.Event()

    async def work(key):
        seen[key] += 1
        if key == "last":
            done.set()

    queue = WorkQueue("test", work, workers=1)
    for key in ("a", "a", "b", "a", "last"):
        queue.add(key)
    started(queue)
    await asyncio.wait_for(done.wait(), 5)
    assert seen == {"a": 1, "b": 1, "last": 1}


async def test_a_key_added_during_its_work_is_worked_on_again_and_never_twice_at_once(started):
    running, most, rounds = 0, 0, 0
    done = asyncio.Event()

    async def work(key):
        nonlocal running, most, rounds
        running += 1
        most = max(most, running)
        rounds += 1
        if rounds < 3:
            queue.add(key)
        await asyncio.sleep(0)
        running -= 1
        if rounds == 3:
            done.set()

    queue = started(WorkQueue("test", work, workers=4))
    queue.add("a")
    await asyncio.wait_for(done.wait(), 5)
    assert (rounds, most) == (3, 1)


async def test_a_failing_key_comes_back_and_holds_up_no_other(started):
    seen, done = [], asyncio.Event()

    async def work(key):
        seen.append(key)
        if key == "bad" and seen.count("bad") < 3:
            raise ValueError("not yet")
        if key == "bad":
            done.set()

    queue = started(WorkQueue("test", work, workers=1))
    queue.add("bad")
    queue.add("good")
    await asyncio.wait_for(done.wait(), 5)
    assert seen[:2] == ["bad", "good"]
    assert seen.count("bad") == 3
