"""Each recorded scenario gets the recorded answers, unless it is listed in not_passing_yet.toml."""

from __future__ import annotations

from typing import Any

import pytest

from .player import Patience
from .stage import IMPATIENT, Stage, not_passing_yet, scenario_names

LISTED = not_passing_yet()
SHOWN = 25  # differences


class DifferentError(AssertionError):
    """A server's answers are not the recorded ones."""


def case(name: str) -> Any:
    """The scenario's case; a listed one must fail, and by its answers."""
    if (issue := LISTED.get(name)) is None:
        return pytest.param(name, id=name)
    return pytest.param(
        name, id=name, marks=pytest.mark.xfail(reason=f"issue {issue}", raises=DifferentError, strict=True)
    )


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", [case(name) for name in scenario_names()])
async def test_scenario(stage: Stage, name: str) -> None:
    await _play(stage, name)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("name", [case(name) for name in scenario_names()])
async def test_scenario_at_any_of_two_servers(several: Stage, name: str) -> None:
    """On etcd; each request goes to any of them, as a load balancer would have it."""
    await _play(several, name)


async def _play(stage: Stage, name: str) -> None:
    found = await stage.play(name, IMPATIENT if name in LISTED else Patience())
    more = [f"... and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    if found:
        raise DifferentError("\n".join([*found[:SHOWN], *more]))


def test_every_listed_name_is_a_scenario() -> None:
    assert LISTED.keys() <= set(scenario_names())
