"""Short campaigns on real processes: all is well with the server, and a server that lies is found out."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from faults.campaign import Campaign, Load, Result
from faults.catalog import CATALOG, ON_ETCD, ON_SQLITE
from faults.cluster import Shape
from faults.plan import Step, make_plan
from faults.report import summary, write_history

from .. import etcd

LOAD = Load(competitors=4, churners=1)


async def run(shape: Shape, directory: Path, *faults: str, lasts: float = 0.5, **options: Any) -> Result:
    plan = [Step(60, (name,), lasts, f"{number}") for number, name in enumerate(faults)]
    result = await Campaign(shape, plan, 1, directory, LOAD, **options).run()
    assert sum(result.struck.values()) + len(result.skipped) == len(faults)
    return result


@pytest.mark.slow
async def test_on_sqlite(tmp_path: Path) -> None:
    result = await run(
        Shape(), tmp_path, "kill-server", "disturb-clients", "full-disk", "slow-fsync", "clock-jump", "kill-server"
    )
    assert not result.violations, summary(result)
    assert result.history.operations and result.history.claims and result.history.snapshots
    assert result.restarts >= 2


@pytest.fixture
def program() -> str:
    return str(etcd.program())


@pytest.mark.slow
async def test_on_etcd(program: str, tmp_path: Path) -> None:
    shape = Shape(members=3, servers=2, etcd=program)
    result = await run(
        shape, tmp_path, "kill-server", "isolate-member", "compact-behind", "kill-member", "disturb-etcd"
    )
    assert not result.violations, summary(result)
    assert len({segment.watcher for segment in result.history.segments}) == 10


@pytest.mark.slow
async def test_a_server_that_acknowledges_too_early_is_found_out(tmp_path: Path) -> None:
    early = Path(__file__).with_name("early_server.py")
    shape = Shape(server=(sys.executable, str(early)))
    # What was lost never comes: there is nothing to be patient for.
    result = await run(shape, tmp_path, *["kill-server"] * 3, lasts=0.0, patience=5.0)
    assert {"a version is one write", "linearizable"} & {violation.check for violation in result.violations}
    history = tmp_path / "history"
    write_history(result.history, history)
    assert (history / "operations.jsonl").read_bytes().count(b"\n") == len(result.history.operations)
    assert f"violations       {len(result.violations)}" in summary(result)


def test_a_seed_names_a_plan() -> None:
    one = make_plan(1, 100, ON_ETCD, 3.0)
    assert one == make_plan(1, 100, ON_ETCD, 3.0) != make_plan(2, 100, ON_ETCD, 3.0)
    assert 100 <= sum(len(step.faults) for step in one) <= 101
    assert {name for step in one for name in step.faults} <= CATALOG.keys()


def test_all_faults_may_be_chosen() -> None:
    assert ON_SQLITE.keys() | ON_ETCD.keys() == CATALOG.keys()


async def test_a_wrong_command_line_is_refused() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "faults", "sqlite", "--only", "no-such-fault"),
        cwd=Path(__file__).parents[2],
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert process.returncode == 2 and b"no-such-fault" in errors
