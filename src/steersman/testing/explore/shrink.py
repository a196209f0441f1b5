"""Making a schedule short: delta debugging of the messages that it holds back, then of how long.

Source: A. Zeller, R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002 (ddmin).
"""

from __future__ import annotations

from collections.abc import Callable

from steersman.testing.explore.schedule import Schedule

Fails = Callable[[Schedule], bool]


def shortest(schedule: Schedule, fails: Fails) -> Schedule:
    """A schedule that fails, and none that holds back one message less, or one of them half as long, does."""
    holds = dict(schedule.holds)
    while True:
        before = dict(holds)
        holds = _fewer(holds, fails)
        holds = _shorter(holds, fails)
        if holds == before:
            return Schedule(holds)


def _fewer(holds: dict[int, int], fails: Fails) -> dict[int, int]:
    parts = 2
    while holds:
        items = sorted(holds.items())
        size = max(len(items) // parts, 1)
        for start in range(0, len(items), size):
            rest = dict(items[:start] + items[start + size :])
            if fails(Schedule(rest)):
                holds, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(parts * 2, len(items))
    return holds


def _shorter(holds: dict[int, int], fails: Fails) -> dict[int, int]:
    for number in sorted(holds):
        for steps in _less(holds[number]):
            tried = {**holds, number: steps}
            if fails(Schedule(tried)):
                holds = tried
                break
    return holds


def _less(steps: int) -> list[int]:
    return sorted({1, 2, steps // 2, steps - 1} - {0, steps}) if steps > 1 else []
