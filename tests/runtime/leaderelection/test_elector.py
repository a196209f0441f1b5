"""Elections with Kubernetes' own durations, in virtual time: who leads from when to when, and what is left running."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest

from steersman import Leadership, LeadershipLost
from steersman.runtime.leaderelection import Record, Timing

from .virtual import EPOCH, Process, Stint, Store, VirtualLoop, overlaps, virtually


class World:
    """Some processes and one lock."""

    def __init__(self) -> None:
        self.store = Store()
        self.stints: list[Stint] = []
        self.now = asyncio.get_running_loop().time

    def process(self, who: str, **options: Any) -> Process:
        return Process(who, self.store, self.stints, **options)

    async def leads(self, process: Process) -> asyncio.Task[None]:
        """Start a process that is alone, until it leads."""
        task = process.start()
        await asyncio.sleep(0.1)
        assert process.elector.is_leader
        return task

    async def until(self, number: int) -> float:
        """When work has begun so many times, and the time of that."""
        while len(self.stints) < number:
            assert self.now() < 10_000, f"only {len(self.stints)} have begun"
            await asyncio.sleep(0.01)
        return self.stints[number - 1].begin


async def stop(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_the_first_one_leads_at_once_and_goes_on() -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        task = one.start()
        assert await world.until(1) < 0.05
        await asyncio.sleep(1000)
        assert one.elector.is_leader and one.elector.leader == "one"
        assert world.store.record is not None
        assert (world.store.record.duration, world.store.record.transitions) == (15, 0)
        renewals = [at for at, what in one.network.requests if what == "write" and at > 1]
        assert 480 <= len(renewals) <= 500, "one each two seconds"
        await stop(task)

    virtually(main())


def test_a_killed_leader_is_succeeded_after_the_lease_and_not_before() -> None:
    async def main() -> None:
        world = World()
        one, two = world.process("one"), world.process("two")
        await world.leads(one)
        second = two.start()
        await asyncio.sleep(20)
        one.network.silent = True  # to the others, that is what a kill looks like
        last = max(at for at, what in one.network.requests if what == "write" and at < world.now() - 0.01)
        begun = await world.until(2)
        assert last + 15 <= begun <= last + 15 + 2 * 2.2 + 0.1
        assert not overlaps(world.stints)
        await stop(second)

    virtually(main())


def test_a_leader_that_cannot_renew_has_stopped_before_another_begins() -> None:
    async def main() -> None:
        world = World()
        one, two = world.process("one"), world.process("two")
        one.ending = 3.9
        first = await world.leads(one)
        second = two.start()
        await asyncio.sleep(20)
        one.network.refuses = True
        renewed = one.elector.leadership
        assert renewed is not None
        deadline = renewed.deadline
        with pytest.raises(LeadershipLost, match=r"not renewed within 10\.0 s: not today"):
            await first
        assert world.stints[0].end == pytest.approx(deadline + 3.9, abs=0.01)
        begun = await world.until(2)
        assert world.stints[0].end < begun
        assert one.overruns == 0
        await stop(second)

    virtually(main())


def test_what_the_work_sees_when_the_lock_is_lost() -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        told: list[Any] = []

        async def work(leadership: Leadership) -> None:
            leadership.check()
            leadership.check(9.0)
            with pytest.raises(LeadershipLost, match="are certain, 11 s are needed"):
                leadership.check(11)
            one.network.silent = True
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                told.append(leadership.deadline - world.now())
                assert not leadership.valid and not one.elector.is_leader
                with pytest.raises(LeadershipLost, match="not renewed within"):
                    leadership.check()
                raise

        with pytest.raises(LeadershipLost):
            await one.elector.run(work)
        assert told == [pytest.approx(0, abs=0.01)]

    virtually(main())


def test_work_that_does_not_end_is_an_overrun_and_still_awaited(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        one.ending = 7.0  # after the deadline: 4 are left of the lease, and 1 for late threads
        task = await world.leads(one)
        one.network.silent = True
        leadership = one.elector.leadership
        assert leadership is not None
        stop_by, expires = leadership.stop_by, leadership.expires
        assert stop_by == leadership.deadline + 4 == expires - 1
        await asyncio.sleep(stop_by - 0.05 - world.now())
        assert one.overruns == 0
        await asyncio.sleep(stop_by + 0.05 - world.now())
        assert (one.overruns, task.done(), one.elector.healthy()) == (1, False, True)
        await asyncio.sleep(expires + 0.05 - world.now())
        assert (task.done(), one.elector.healthy(), one.elector.healthy(1.0)) == (False, False, True)
        with pytest.raises(LeadershipLost):
            await task
        assert one.overruns == 1
        assert world.stints[0].end is not None

    with caplog.at_level(logging.CRITICAL):
        virtually(main())
    assert "the work has not ended 14 s after the last renewal, another process may lead after 15 s" in caplog.text


def test_a_cancelled_leader_keeps_the_lock_until_its_work_has_ended_and_then_gives_it_up() -> None:
    async def main() -> None:
        world = World()
        order: list[str] = []
        one = world.process("one", on_stopped_leading=lambda: order.append(repr(world.store.record)))
        two = world.process("two")
        one.ending = 60.0
        first = await world.leads(one)
        second = two.start()
        await asyncio.sleep(5)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        end = world.stints[0].end
        assert end == pytest.approx(65.1, abs=0.1)
        assert "holder='one'" in order[0] and len(order) == 1, "it was called while the lock was held"
        begun = await world.until(2)
        assert end < begun < end + 2 * 2.2 + 0.1, "a candidate that does not watch finds the lock free when it looks"
        assert [stint.token for stint in world.stints] == [0, 1]
        await stop(second)
        assert world.store.record is not None
        assert (world.store.record.holder, world.store.record.duration, world.store.record.transitions) == ("", 1, 1)

    virtually(main())


def test_without_release_the_lock_runs_out() -> None:
    async def main() -> None:
        world = World()
        one, two = world.process("one", release_on_cancel=False), world.process("two")
        await stop(await world.leads(one))
        ended = world.stints[0].end
        assert ended is not None
        second = two.start()
        assert await world.until(2) > ended + 14
        await stop(second)

    virtually(main())


@pytest.mark.parametrize("skew", [timedelta(hours=1), timedelta(hours=-1), timedelta(days=-400)])
def test_wall_clocks_do_not_matter(skew: timedelta) -> None:
    async def main() -> None:
        world = World()
        one, two = world.process("one", skew=skew), world.process("two")
        await world.leads(one)
        second = two.start()
        await asyncio.sleep(100)
        one.skew = -skew  # the clock is set while it leads
        await asyncio.sleep(100)
        assert [stint.who for stint in world.stints] == ["one"]
        one.network.silent = True
        silent = world.now()
        assert silent + 12 < await world.until(2) < silent + 20
        assert not overlaps(world.stints)
        await stop(second)

    virtually(main())


def test_each_term_has_a_number_of_its_own_also_of_one_process() -> None:
    async def main() -> None:
        world = World()
        one = world.process("one", release_on_cancel=False)
        for _ in range(3):
            await stop(await world.leads(one))
        assert [stint.token for stint in world.stints] == [0, 1, 2]

    virtually(main())


def test_a_namesake_is_another_process(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        world = World()
        one, other = world.process("same"), world.process("same")
        await world.leads(one)
        second = other.start()
        await asyncio.sleep(100)
        assert not other.elector.is_leader and one.elector.is_leader
        one.network.silent = True
        await world.until(2)
        assert not overlaps(world.stints)
        await stop(second)

    virtually(main())
    assert caplog.text.count("held by another process of our identity, same") == 1


def test_a_lock_that_vanishes_is_made_again_by_its_holder_and_not_taken_by_others() -> None:
    async def main() -> None:
        world = World()
        one, two = world.process("one"), world.process("two")
        first = await world.leads(one)
        second = two.start()
        await asyncio.sleep(5)
        one.network.silent = True
        await asyncio.sleep(0.5)
        world.store.delete()
        deleted = world.now()
        assert await world.until(2) > deleted + 10
        assert world.stints[1].token == 1, "greater than that of the lock that is gone"
        await stop(first, second)
        assert not overlaps(world.stints)

    virtually(main())


def test_the_holder_of_a_vanished_lock_makes_it_again() -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        task = await world.leads(one)
        world.store.delete()
        await asyncio.sleep(100)
        assert len(world.stints) == 1 and one.elector.is_leader
        assert world.store.record is not None and world.store.record.holder == "one"
        await stop(task)

    virtually(main())


def test_a_changed_label_costs_the_slow_path_only() -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        task = await world.leads(one)
        world.store.touch()
        await asyncio.sleep(100)
        assert len(world.stints) == 1 and one.elector.is_leader
        lines = [*one.elector.metrics.slow_path.lines(), *one.elector.metrics.master.lines()]
        assert 'leader_election_slowpath_total{name="virtual"} 1' in lines
        assert 'leader_election_master_status{name="virtual"} 1' in lines
        await stop(task)
        assert 'leader_election_master_status{name="virtual"} 0' in [*one.elector.metrics.master.lines()]

    virtually(main())


@pytest.mark.parametrize("holder", ["intruder", ""])
def test_a_lock_that_is_another_s_is_lost_at_the_next_renewal(holder: str) -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        task = await world.leads(one)
        world.store.record, world.store.version = Record(holder, 15, transitions=7), 99
        with pytest.raises(LeadershipLost, match=r"the lock has been taken by (intruder|nobody)"):
            await task
        assert world.now() < 3
        assert world.store.record == Record(holder, 15, transitions=7), "what is another's is not given up"

    virtually(main())


def test_a_renewal_whose_answer_is_lost_is_no_loss() -> None:
    async def main() -> None:
        world = World()
        one, two = world.process("one"), world.process("two")
        task = await world.leads(one)
        second = two.start()
        one.network.loses_answers = True
        await asyncio.sleep(7)
        one.network.loses_answers = False
        await asyncio.sleep(100)
        assert [stint.who for stint in world.stints] == ["one"]
        await stop(task, second)

    virtually(main())


def test_a_take_whose_answer_is_lost_is_used_at_the_next_look() -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        one.network.loses_answers = True
        task = one.start()
        await asyncio.sleep(1)
        assert world.store.record is not None and world.store.record.holder == "one"
        assert not world.stints
        one.network.loses_answers = False
        assert await world.until(1) < 2 * 2.2 + 1
        assert world.stints[0].token == 1, "a term of its own"
        await stop(task)

    virtually(main())


def test_a_take_whose_answer_is_lost_is_given_up_by_a_cancelled_candidate() -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        one.network.loses_answers = True
        task = one.start()
        await asyncio.sleep(1)
        assert world.store.record is not None and world.store.record.holder == "one"
        one.network.loses_answers = False
        await stop(task)
        assert world.store.record.holder == ""

    virtually(main())


def test_a_term_counts_from_before_its_request_was_sent() -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        one.network.after = lambda: 4.0
        task = one.start()
        await world.until(1)
        taken = max(at for at, what in one.network.requests if what == "write")
        assert one.elector.leadership is not None
        assert (one.elector.leadership.deadline, one.elector.leadership.expires) == (taken + 10, taken + 15)
        await stop(task)

    virtually(main())


def test_a_candidate_that_was_stopped_while_it_took_the_lock_does_not_lead() -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        stops = iter([0.0, 20.0])  # the answer to the read comes in time, that to the write does not

        def stopped() -> float:
            loop.sleep_through(next(stops, 0.0))
            return 0.0

        one.network.after = stopped
        task = one.start()
        await world.until(1)
        assert [stint.token for stint in world.stints] == [1], "the first term was over before it began"
        await stop(task)

    virtually(main())


def test_a_leader_that_was_stopped_is_none_when_it_goes_on() -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        task = await world.leads(one)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.sleep_through(10.5)
        assert not one.elector.is_leader
        with pytest.raises(LeadershipLost, match="not renewed for"):
            one.elector.check()
        with pytest.raises(LeadershipLost):
            await task
        assert one.overruns == 0

    virtually(main())


def test_what_is_lost_is_not_won_back_by_a_late_answer() -> None:
    now = 0.0
    leadership = Leadership("me", 1, 0.0, Timing(), lambda: now)
    now = 10.0
    leadership.renewed(9.0)
    assert not leadership.valid and leadership.deadline == 10.0


def test_a_wall_clock_that_stands_still_does_not_matter() -> None:
    async def main() -> None:
        world = World()
        one, two = world.process("one", wall_clock=lambda: EPOCH), world.process("two")
        first = await world.leads(one)
        second = two.start()
        await asyncio.sleep(100)
        assert [stint.who for stint in world.stints] == ["one"]
        assert one.elector.is_leader
        await stop(first, second)

    virtually(main())


def test_results_and_errors_of_the_work_come_back() -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")

        async def answer(leadership: Leadership) -> int:
            return leadership.fencing_token + 40

        async def fail(_: Leadership) -> None:
            raise ZeroDivisionError

        assert await one.elector.run(answer) == 40
        with pytest.raises(ZeroDivisionError):
            await one.elector.run(fail)
        assert world.store.record is not None and world.store.record.holder == ""

        async def nested(_: Leadership) -> None:
            with pytest.raises(RuntimeError, match="running already"):
                await one.elector.run(answer)

        await one.elector.run(nested)
        with pytest.raises(LeadershipLost, match="does not lead"):
            one.elector.check()

    virtually(main())


def test_callbacks_tell_who_leads_and_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        world = World()
        told: list[str] = []

        def started(leadership: Leadership) -> None:
            told.append(f"started {leadership.fencing_token}")
            raise ValueError("a callback's own error")

        one = world.process("one")
        two = world.process("two", on_new_leader=told.append, on_started_leading=started)
        first = await world.leads(one)
        second = two.start()
        await asyncio.sleep(5)
        await stop(first)
        await world.until(2)
        assert told == ["one", "two", "started 1"]
        await stop(second)

    virtually(main())
    assert "a callback of the leader election has failed" in caplog.text


def test_an_unreachable_server_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        world = World()
        one = world.process("one")
        one.network.refuses = True
        task = one.start()
        await asyncio.sleep(100)
        attempts = len(one.network.requests)
        assert 100 / 4.5 < attempts < 100 / 2
        one.network.refuses = False
        assert await world.until(1) < 105
        await stop(task)

    with caplog.at_level(logging.WARNING):
        virtually(main())
    assert caplog.text.count("cannot be read or taken: not today") == 1
