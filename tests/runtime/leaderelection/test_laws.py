"""Whatever the network does, two electors never work at the same time, and tokens only grow."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .virtual import Process, Stint, Store, overlaps, uneven, virtually

PROCESSES = 3
MINUTES = 30


async def disturb(process: Process, chance: random.Random) -> None:
    """Make one process's life harder or easier for a while."""
    network = process.network
    network.refuses = chance.random() < 0.15
    network.silent = chance.random() < 0.2
    network.loses_answers = chance.random() < 0.2
    slow = chance.choice([0.01, 0.5, 4.0, 30.0])
    network.before = uneven(chance.randrange(2**32), 0.05, slow)
    network.after = uneven(chance.randrange(2**32), 0.05, slow)
    process.ending = chance.uniform(0, 3.9)
    process.skew = timedelta(seconds=chance.uniform(-3600, 3600))
    await asyncio.sleep(chance.expovariate(1 / 15))


async def live(process: Process, chance: random.Random, until: float) -> None:
    """Lead when it can, stop and start again now and then, while the network changes."""
    loop = asyncio.get_running_loop()
    task = process.start()
    while loop.time() < until:
        await disturb(process, chance)
        if task.done() or chance.random() < 0.1:
            task.cancel()
            await asyncio.wait([task])
            task = process.start()
    task.cancel()
    await asyncio.wait([task])


async def years(seed: int) -> tuple[list[Stint], int]:
    chance = random.Random(seed)
    store, stints = Store(), list[Stint]()
    processes = [Process(f"p{number}", store, stints) for number in range(PROCESSES)]
    until = MINUTES * 60.0
    lives = [asyncio.create_task(live(process, chance, until)) for process in processes]
    while asyncio.get_running_loop().time() < until:
        await asyncio.sleep(chance.expovariate(1 / 60))
        store.touch()
    await asyncio.gather(*lives)
    return stints, sum(process.overruns for process in processes)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_two_work_at_a_time(seed: int) -> None:
    random.seed(seed)
    stints, overruns = virtually(years(seed))
    assert len(stints) > 20, "there was something to see"
    assert not overlaps(stints)
    tokens = [stint.token for stint in sorted(stints, key=lambda stint: stint.begin)]
    assert tokens == sorted(set(tokens))
    assert overruns == 0


def test_the_law_can_be_broken() -> None:
    """Two electors that do not keep to the same lease would overlap, and be seen to."""
    with pytest.raises(AssertionError):
        assert not overlaps([Stint("a", 0, 0.0, 2.0), Stint("b", 1, 1.0, 3.0)])
