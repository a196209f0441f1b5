from __future__ import annotations

import pytest

from steersman.store.history import History, HistoryKeeper
from steersman.store.memory import MemoryStore


def test_both_count_and_age_must_allow_it() -> None:
    keeper = HistoryKeeper(History(revisions=100, seconds=60))
    assert keeper.target(50, 0, now=0.0) == 0
    assert keeper.target(500, 0, now=59.0) == 0, "all of it is young"
    assert keeper.target(510, 0, now=60.0) == 50, "what was written by second 0 is a minute old"
    assert keeper.target(520, 50, now=61.0) == 0
    assert keeper.target(530, 50, now=130.0) == 430, "of the old ones, the last hundred stay"


def test_steps() -> None:
    keeper = HistoryKeeper(History(revisions=100, seconds=0))
    assert [keeper.target(revision, 0, now=float(revision)) for revision in (100, 105, 109, 110)] == [0, 0, 0, 10]


def test_negative_history() -> None:
    with pytest.raises(ValueError, match="negative"):
        History(revisions=-1)


async def test_memory_store_forgets() -> None:
    store = MemoryStore(history=History(revisions=10, seconds=0))
    revision = 0
    for number in range(100):
        revision = await store.swap(b"a", revision, b"%d" % number)
    assert store.compacted == revision - 10
    assert (await store.range(b"a", b"b", revision=store.compacted)).items[0].value == b"89"
    assert len(store._versions) == 11
