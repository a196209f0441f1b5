"""What operators are allowed by the roles that are generated for them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.generate.permissions import Target, grants, under

from steersman.client.config import load
from steersman.generate.rbac import Identity

NEEDED = grants(Identity("myapp-operator", "ops-0"))


async def run(apiserver: Any, given: list[Any]) -> list[tuple[str, str, str]]:
    async with await apiserver.client() as admin:
        return await under(Target(load(kubeconfig=apiserver.kubeconfig), admin), given)


async def test_the_example_may_do_all_that_it_does(apiserver: Any) -> None:
    assert await run(apiserver, NEEDED) == []


@pytest.mark.parametrize("removed", NEEDED, ids=lambda grant: f"{grant.verb}-{grant.resource}")
async def test_the_example_needs_each_verb(apiserver: Any, removed: Any) -> None:
    forbidden = await run(apiserver, [grant for grant in NEEDED if grant is not removed])
    assert forbidden[0] == (removed.verb, removed.group, removed.resource)
