"""Bugs that need an unlucky moment are found, and shown in few steps; what has none passes all runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st_
from tests.testing.explore.operators import BUGS, MAP, Body, config_map, lost_answer

import steersman as st
from steersman.testing import Fault, eventually_async, running
from steersman.testing.explore.explorer import Explorer
from steersman.testing.explore.schedule import BREAK, Schedule
from steersman.testing.explore.server import ExploredServer, explored_server
from steersman.testing.explore.shrink import shortest


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ExploredServer]:
    with explored_server(tmp_path) as server:
        server.prepared()
        yield server


@pytest.mark.parametrize("body", BUGS, ids=lambda body: body.__name__)
def test_a_bug_is_found_and_shrunk(body: Body, server: ExploredServer) -> None:
    explorer = Explorer(server, lambda: body(server, True))
    assert explorer.run(Schedule().replay).error is None, "in the order of sending nothing is wrong"
    finding = explorer.explore(runs=200, seed=0)
    assert finding is not None
    assert finding.repeats
    assert len(finding.outcome.schedule.holds) <= 2
    again = explorer.run(finding.outcome.schedule.replay)
    assert str(again.error) == str(finding.outcome.error)
    assert again.story.text() == finding.outcome.story.text()


@pytest.mark.parametrize("body", BUGS, ids=lambda body: body.__name__)
def test_what_has_no_bug_passes(body: Body, server: ExploredServer) -> None:
    finding = Explorer(server, lambda: body(server, False)).explore(runs=40, seed=1)
    assert finding is None, finding.outcome.story.text()


def test_what_a_lost_answer_does(server: ExploredServer) -> None:
    explorer = Explorer(server, lambda: lost_answer(server, True), breaks=["operator"])
    assert Explorer(server, lambda: lost_answer(server, True)).explore(runs=20) is None, "no connection breaks"
    finding = explorer.explore(runs=200)
    assert finding is not None
    assert list(finding.outcome.schedule.holds.values()) == [BREAK]
    told = r"operator +<-- 201 create configmaps default/child-.*\[does not arrive: the connection breaks\]"
    assert re.search(told, finding.outcome.story.text())
    finding = Explorer(server, lambda: lost_answer(server, False), breaks=["operator"]).explore(runs=40, seed=1)
    assert finding is None, finding.outcome.story.text()


async def several_leaders(server: ExploredServer) -> None:
    """Two electors take turns; messages may be under way for longer than a lease lasts."""
    leading: list[str] = []
    terms: list[str] = []

    async def work(leadership: st.Leadership) -> None:
        leading.append(leadership.identity)
        try:
            assert len(leading) == 1
            terms.append(leadership.identity)
            await asyncio.sleep(20)
        finally:
            leading.remove(leadership.identity)

    async def candidate(name: str) -> None:
        async with server.client(user_agent=name) as client:
            while len(terms) < 4:
                lock = st.LeaseLock("default", "lock")
                with suppress(st.LeadershipLost):
                    await st.LeaderElector(client, lock, identity=name, exit_on_overrun=False).run(work)

    await asyncio.gather(candidate("one"), candidate("two"))


async def restarts(server: ExploredServer) -> None:
    """An operator whose server is started again, and forgets old revisions."""
    seen: set[str] = set()

    async def reconcile(ctx: st.Context, obj: st.Object) -> None:
        seen.add(obj["metadata"]["name"])

    async def create(client: st.Client, name: str) -> None:
        async def check() -> None:
            try:
                await client.create(config_map(name))
            except st.AlreadyExists:
                return
            except st.TransportError:
                raise AssertionError from None

        await eventually_async(check, timeout=60)

    manager = st.Manager(client=server.client(user_agent="operator"))
    manager.controller(MAP, reconcile)
    async with running(manager), server.client(user_agent="user") as user:
        await create(user, "a")
        server.restart(0.5)
        await create(user, "b")
        server.compact()
        await create(user, "c")
        assert server.faults is not None
        server.faults.add(Fault(verbs=["create"], resources=["configmaps"], restart=0.2, times=1))
        await create(user, "d")
        assert server.faults.struck == 1

        async def check() -> None:
            assert {*"abcd"} <= seen

        await eventually_async(check, timeout=120)


@pytest.mark.parametrize(("body", "delay"), [(several_leaders, 40.0), (restarts, 5.0)])
def test_the_runtime_bears_it(
    body: Callable[[ExploredServer], Coroutine[Any, Any, None]], delay: float, server: ExploredServer
) -> None:
    finding = Explorer(server, lambda: body(server), delay).explore(runs=10, seed=3)
    assert finding is None, finding.outcome.story.text()


@pytest.mark.parametrize("text", ["12", "12+", "+3", "a+b", "12+3,20+1", "12-3", "x", "12+3x", "12xx"])
def test_a_schedule_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no part of a schedule, which is such as '12\+3 20\+1' or 'in-order'"):
        Schedule.parse(text)


@given(st_.dictionaries(st_.integers(1, 999), st_.integers(1, 64) | st_.just(BREAK)))
def test_a_schedule_is_what_its_text_says(holds: dict[int, int]) -> None:
    assert Schedule.parse(str(Schedule(holds))) == Schedule(holds)


@given(st_.dictionaries(st_.integers(1, 40), st_.integers(1, 64), min_size=3), st_.data())
def test_what_is_shrunk_has_nothing_that_could_be_left_out(holds: dict[int, int], data: st_.DataObject) -> None:
    needed = {n: data.draw(st_.integers(1, holds[n])) for n in data.draw(st_.sets(st_.sampled_from(sorted(holds))))}

    def fails(schedule: Schedule) -> bool:
        return all(schedule.holds.get(number, 0) >= steps for number, steps in needed.items())

    assert shortest(Schedule(holds), fails).holds == needed
