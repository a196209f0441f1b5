"""Coroutines whose first step runs at once behave as if a task ran all of them."""

from __future__ import annotations

import asyncio
import contextvars

import pytest

from steersman.net.eager import EagerRunner


async def in_callback(function):
    """Calls it as the event loop calls a protocol: with no task current."""
    done = asyncio.get_running_loop().create_future()

    def call() -> None:
        try:
            done.set_result(function())
        except Exception as error:
            done.set_exception(error)

    asyncio.get_running_loop().call_soon(call)
    return await done


@pytest.fixture
async def runner():
    made = EagerRunner(asyncio.get_running_loop())
    yield made
    made.close()


async def test_a_result_without_a_wait_comes_at_once(runner) -> None:
    async def nested() -> int:
        return 1

    async def work() -> int:
        return await nested() + 1

    assert await in_callback(lambda: runner.start(work())) == 2


async def test_an_error_before_the_first_wait_is_raised(runner) -> None:
    async def work() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await in_callback(lambda: runner.start(work()))
    assert await in_callback(lambda: runner.start(asyncio.sleep(0, "again")).__class__) is not str


@pytest.mark.parametrize("seconds", [0, 0.001])
async def test_what_waits_goes_on_in_the_same_task(runner, seconds: float) -> None:
    tasks = []

    async def work() -> str:
        for _ in range(3):
            tasks.append(asyncio.current_task())
            await asyncio.sleep(seconds)
        return "done"

    task = await in_callback(lambda: runner.start(work()))
    assert await task == "done"
    assert set(tasks) == {task}


async def test_what_is_waited_for_may_be_done_before_the_task_looks(runner) -> None:
    future = asyncio.get_running_loop().create_future()

    async def work() -> str:
        return await future

    def begin():
        task = runner.start(work())
        future.set_result("early")
        return task

    assert await (await in_callback(begin)) == "early"


async def test_an_error_after_a_wait_ends_the_task(runner) -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    with pytest.raises(KeyError):
        await (await in_callback(lambda: runner.start(work())))


async def test_timeouts(runner) -> None:
    """asyncio.timeout() asks for the current task before the first wait, and cancels it later."""

    async def work(seconds: float) -> str:
        try:
            async with asyncio.timeout(seconds):
                await asyncio.sleep(0.01)
        except TimeoutError:
            return "timed out"
        return "in time"

    for seconds, outcome in ((0, "timed out"), (0.001, "timed out"), (10, "in time")):
        assert await (await in_callback(lambda s=seconds: runner.start(work(s)))) == outcome


async def test_task_groups(runner) -> None:
    async def work() -> list[int]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asyncio.sleep(0, n)) for n in range(3)]
        return [task.result() for task in tasks]

    assert await (await in_callback(lambda: runner.start(work()))) == [0, 1, 2]


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
@pytest.mark.parametrize("done_already", [False, True])
async def test_cancelling(runner, turns: int, done_already: bool) -> None:
    """At once or later; also when what it waits for is done in the same turn."""
    cleaned = []
    future = asyncio.get_running_loop().create_future()

    async def work() -> str:
        try:
            await future
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            cleaned.append(True)
            await asyncio.sleep(0)
            raise
        return "not cancelled"

    def begin():
        task = runner.start(work())
        if done_already:
            future.set_result(None)
        if not turns:
            task.cancel()
        return task

    task = await in_callback(begin)
    for _ in range(turns - 1):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == [True]
    assert future.cancelled() != done_already


async def test_a_cancellation_may_be_swallowed(runner) -> None:
    async def work() -> str:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            return "kept going"
        return ""

    def begin():
        task = runner.start(work())
        task.cancel()
        return task

    assert await (await in_callback(begin)) == "kept going"


async def test_context_variables_do_not_reach_the_next(runner) -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    async def work(waits: bool) -> tuple[str, str]:
        before = variable.get()
        token = variable.set("set")
        if waits:
            await asyncio.sleep(0)
        after = variable.get()
        if waits:
            variable.reset(token)  # works only in the same context
        return before, after

    for waits in (False, True, False, False):
        outcome = await in_callback(lambda w=waits: runner.start(work(w)))
        assert (await outcome if waits else outcome) == ("unset", "set")
    assert variable.get() == "unset"


async def test_a_self_cancelled_request_does_not_reach_the_next(runner) -> None:
    async def cancel_self() -> str:
        asyncio.current_task().cancel()
        return "answered"

    async def work() -> str:
        await asyncio.sleep(0)
        return "fine"

    assert await in_callback(lambda: runner.start(cancel_self())) == "answered"
    assert await (await in_callback(lambda: runner.start(work()))) == "fine"
