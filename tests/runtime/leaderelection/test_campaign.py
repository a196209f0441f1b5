"""A short campaign, and what one process does when its work does not end."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path

import pytest

from ...conftest import RunningServer
from .campaign import FAULTS, Campaign, Stretch, read
from .contender import LEASE
from .proxy import FaultyProxy

SHORT = [fault for harm in FAULTS if harm not in ("terminate", "lost", "late") for fault in (harm, "terminate")]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_forced_fail_overs(tmp_path: Path) -> None:
    report = await Campaign(tmp_path, [*SHORT, *SHORT[:8]], seed=0).run()
    assert report.terms >= 20
    assert not report.overlaps
    assert report.tokens_grow
    # Not of all: on a slow machine the successor may have to be started first.
    assert min(report.takeovers["terminate"]) < LEASE / 2, "nobody waited for a lease that was given up"


async def test_a_process_whose_work_holds_up_the_event_loop_ends_before_another_may_lead(
    apiserver: RunningServer, tmp_path: Path
) -> None:
    file = tmp_path / "notes"
    async with apiserver.session() as session, FaultyProxy(session) as proxy:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.runtime.leaderelection.contender", proxy.url, "me", str(file), "0", "exit"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[3],
        )
        assert process.stdout is not None
        assert json.loads(await process.stdout.readline())["token"] == 0
        process.send_signal(signal.SIGUSR1)
        blocked = time.monotonic()
        _, said = await process.communicate()
    assert process.returncode == 1
    assert (
        b"the work has not ended 0.94 s after the last renewal, another process may lead after 1 s: this one exits"
        in said
    )
    (stretch,) = read(file)
    assert stretch.last - blocked < LEASE + 0.1


def test_notes_become_terms_and_the_judge_sees_overlaps(tmp_path: Path) -> None:
    notes = [
        {"who": "a", "pid": 1, "token": 0, "what": "begin", "t": 1.0},
        {"who": "a", "pid": 1, "token": 0, "what": "step", "t": 2.0},
        {"who": "b", "pid": 2, "token": 1, "what": "begin", "t": 2.5},
        {"who": "a", "pid": 1, "token": 0, "what": "after", "t": 3.0},
    ]
    (tmp_path / "notes").write_text("".join(f"{json.dumps(note)}\n" for note in notes))
    assert read(tmp_path / "notes") == [Stretch("a", 1, 0, 1.0, 2.0, 3.0), Stretch("b", 2, 1, 2.5, 2.5, 2.5)]
    campaign = Campaign(tmp_path, [], seed=0)
    campaign.judge()
    assert len(campaign.report.overlaps) == 1
