"""Schedules: which messages are held back, and how long. A schedule without any is the order of sending."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

IN_ORDER = "in-order"


@dataclass(frozen=True, slots=True)
class Schedule:
    """By the number of a message (they are counted as they are sent), after how many later things it arrives.

    As text, "12+3 20+1": message 12 arrives after three other things have happened, message 20 after one.
    """

    holds: Mapping[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join(f"{number}+{steps}" for number, steps in sorted(self.holds.items())) or IN_ORDER

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Raises ValueError."""
        if text.strip() == IN_ORDER:
            return cls()
        holds = {}
        for word in text.split():
            number, plus, steps = word.partition("+")
            if not (plus and number.isdecimal() and steps.isdecimal()):
                raise ValueError(f"{word!r} is no part of a schedule, which is such as '12+3 20+1' or {IN_ORDER!r}")
            holds[int(number)] = int(steps)
        return cls(holds)

    def replay(self) -> Decider:
        """What decides so."""
        return _Replay(self.holds)


class Decider(Protocol):
    """Says of each message, when it is sent, how many things are to happen before it arrives. `holds` remembers it."""

    @property
    def holds(self) -> Mapping[int, int]: ...

    def hold(self, number: int, flow: int) -> int: ...


@dataclass(frozen=True, slots=True)
class _Replay:
    holds: Mapping[int, int]

    def hold(self, number: int, flow: int) -> int:
        return self.holds.get(number, 0)


class Chance:
    """Decides by a generator of random numbers, and remembers.

    Each run has a temper of its own: how many messages are held back, how long at most, and whether some flows (a
    request with its answer, a watch) are slow as a whole.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 -- to be repeated, not to be secret
        self._likely = self._random.choice((0.02, 0.05, 0.1, 0.2, 0.4))
        self._most = self._random.choice((2, 4, 8, 16, 48))
        self._slow_flows = self._random.choice((0.0, 0.0, 0.1, 0.3))
        self._flows: dict[int, bool] = {}
        self.holds: dict[int, int] = {}

    def hold(self, number: int, flow: int) -> int:
        slow = self._flows.get(flow)
        if slow is None:
            slow = self._flows[flow] = self._random.random() < self._slow_flows
        if self._random.random() >= (0.7 if slow else self._likely):
            return 0
        steps = int(self._most ** self._random.random())
        self.holds[number] = steps
        return steps
