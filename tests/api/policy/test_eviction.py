"""What evictions do to budgets."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.policy import eviction
from steersman.apimachinery.errors import Forbidden, TooManyRequests

NOW = "2026-01-01T00:00:00Z"


def budget(**status: Any) -> dict[str, Any]:
    facts = {"observedGeneration": 1, "desiredHealthy": 2, "currentHealthy": 2, **status}
    return {"metadata": {"name": "b", "generation": 1}, "spec": {"selector": {}}, "status": facts}


def pod(ready: str = "True", phase: str = "Running") -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}}


def test_each_disruption_takes_one_and_the_last_says_so() -> None:
    before = budget(disruptionsAllowed=2)
    once = eviction.disrupt(before, "p", NOW)
    assert once["status"]["disruptionsAllowed"] == 1 and once["status"]["disruptedPods"] == {"p": NOW}
    assert "conditions" not in once["status"] and before["status"]["disruptionsAllowed"] == 2
    [condition] = eviction.disrupt(once, "q", NOW)["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("DisruptionAllowed", "False")


@pytest.mark.parametrize(
    ("status", "error", "seconds"),
    [
        ({"observedGeneration": 0, "disruptionsAllowed": 9}, TooManyRequests, 10),
        ({"disruptionsAllowed": 0}, TooManyRequests, None),
        ({"disruptionsAllowed": -1}, Forbidden, None),
    ],
)
def test_budgets_refuse(status: dict[str, Any], error: type[Exception], seconds: int | None) -> None:
    with pytest.raises(error) as caught:
        eviction.disrupt(budget(**status), "p", NOW)
    assert (caught.value.details or {}).get("retryAfterSeconds") == seconds  # type: ignore[attr-defined]


def test_pods_that_serve_nobody_go_freely() -> None:
    assert eviction.guards_nothing(pod(phase="Pending")) and eviction.guards_nothing(pod(phase="Failed"))
    assert not eviction.guards_nothing(pod())


def test_unready_pods_go_while_the_budget_is_met() -> None:
    assert eviction.may_go_unready(pod("False"), budget())
    assert not eviction.may_go_unready(pod("False"), budget(currentHealthy=1))
    assert not eviction.may_go_unready(pod("True"), budget())


def test_the_condition_keeps_its_time() -> None:
    once = eviction.mark_evicted(pod(), NOW)
    again = eviction.mark_evicted(once, "2027-01-01T00:00:00Z")
    assert again == once
