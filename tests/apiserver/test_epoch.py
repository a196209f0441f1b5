from __future__ import annotations

import pytest

from steersman.apiserver.epoch import Epoch, EpochEnded


def test_quiet_is_told_when_the_last_write_ends_whether_the_epoch_is_over_or_not() -> None:
    for over in (False, True):
        epoch, told = Epoch(), list[int]()
        epoch.begin()
        epoch.begin()
        if over:
            epoch.close()
        epoch.when_quiet(told.append)
        epoch.end(7)
        assert told == []
        epoch.end(5)
        assert told == [7]


def test_at_once_where_nothing_is_under_way() -> None:
    epoch, told = Epoch(), list[int]()
    epoch.when_quiet(told.append)
    assert told == [0]


def test_no_write_begins_when_it_is_over() -> None:
    epoch = Epoch()
    epoch.close()
    with pytest.raises(EpochEnded):
        epoch.begin()
