"""What is recorded from a server is what it answers: a scenario that passes, recorded anew, is the same scenario."""

from __future__ import annotations

import json

import pytest

from .record import UnstableError, record
from .stage import SCENARIOS, Stage


@pytest.mark.asyncio(loop_scope="session")
async def test_a_passing_scenario_is_recorded_as_it_is(stage: Stage) -> None:
    scenario = json.loads((SCENARIOS / "occ/update-conflict.json").read_text())
    steps = [{key: value for key, value in step.items() if key != "expect"} for step in scenario["steps"]]
    assert await record({**scenario, "steps": steps}, stage.target, stage.webhook) == scenario


@pytest.mark.asyncio(loop_scope="session")
async def test_what_differs_from_run_to_run_is_refused(stage: Stage) -> None:
    name = {"path": "/api/v1/namespaces", "method": "POST", "body": {"metadata": {"generateName": "run-"}}}
    with pytest.raises(UnstableError, match="two runs differ"):
        await record({"steps": [name], "cleanup": []}, stage.target, stage.webhook)
