"""Bugs that need an unlucky moment are found, and shown in few steps; what has none passes all runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.testing.explore.operators import BUGS, Body

from steersman.testing.explore.explorer import Explorer
from steersman.testing.explore.schedule import Schedule
from steersman.testing.explore.server import ExploredServer, explored_server


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
    finding = Explorer(server, lambda: body(server, False)).explore(runs=60, seed=1)
    assert finding is None, finding.outcome.story.text()
