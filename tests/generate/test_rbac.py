"""What operators are allowed by the roles that are generated for them: all that they do, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.generate.permissions import STORIES, Target, grants, under

from steersman.client.config import load
from steersman.generate.grants import Grant

NEEDED = {operator: grants(operator) for operator in STORIES}
EACH = [
    pytest.param(operator, grant, id=f"{operator.stem}-{grant.verb}-{grant.resource}")
    for operator, all_of_them in NEEDED.items()
    for grant in all_of_them
]


async def run(apiserver: Any, operator: Path, given: list[Grant]) -> list[tuple[str, str, str]]:
    async with await apiserver.client() as admin:
        return await under(Target(load(kubeconfig=apiserver.kubeconfig), admin), given, STORIES[operator])


@pytest.mark.parametrize("operator", STORIES, ids=lambda path: path.stem)
async def test_an_operator_may_do_all_that_it_does(apiserver: Any, operator: Path) -> None:
    assert await run(apiserver, operator, NEEDED[operator]) == []


@pytest.mark.parametrize(("operator", "removed"), EACH)
async def test_an_operator_needs_each_verb(apiserver: Any, operator: Path, removed: Grant) -> None:
    forbidden = await run(apiserver, operator, [grant for grant in NEEDED[operator] if grant is not removed])
    assert forbidden[0] == (removed.verb, removed.group, removed.resource)
