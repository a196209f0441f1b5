"""What happens when: made of a seed, so that it can be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Step:
    """After so many more answers, faults strike together and last for so many seconds; `seed` is for their choices."""

    answers: int
    faults: tuple[str, ...]
    lasts: float
    seed: str


def make_plan(seed: int, number: int, weights: Mapping[str, int], longest: float) -> list[Step]:
    """Steps with `number` faults in all; a fifth of the steps has two at a time."""
    chance = Random(f"plan {seed}")
    steps: list[Step] = []
    left = number
    while left > 0:
        together = 2 if left > 1 and chance.random() < 0.2 else 1
        together = 2 if left > 1 and chance.random() < 0.2 else 1
        chosen = chance.choices(list(weights), list(weights.values()), k=together)
        some = tuple(dict.fromkeys(chosen))
        lasts = chance.uniform(0, 0.2) if chance.random() < 0.3 else chance.uniform(0.2, longest)
        steps.append(Step(chance.randint(20, 200), some, lasts, f"{seed}/{len(steps)}"))
        left -= len(some)
    return steps
