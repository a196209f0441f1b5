"""Schedules: which messages are held back, and how long; which never arrive, since the connection breaks.

A schedule without any is the order of sending.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

IN_ORDER = "in-order"
BREAK = -1
"""In the place of a number of steps: the connection breaks when the message would arrive."""
_MOST_BREAKS = 2
_WORD = re.compile(r"([0-9]+)(?:x|\+([0-9]+))")


@dataclass(frozen=True, slots=True)
class Schedule:
    """By the number of a message (they are counted as they are sent), after how many later things it arrives.

    As text, "12+3 20+1 25x": message 12 arrives after three other things have happened, message 20 after one, and
    message 25 never does.
    """

    holds: Mapping[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join(map(_word, sorted(self.holds.items()))) or IN_ORDER

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Raises ValueError."""
        if text.strip() == IN_ORDER:
            return cls()
        holds = {}
        for word in text.split():
            found = _WORD.fullmatch(word)
            if found is None:
                raise ValueError(f"{word!r} is no part of a schedule, which is such as '12+3 20+1' or {IN_ORDER!r}")
            holds[int(found[1])] = int(found[2]) if found[2] else BREAK
        return cls(holds)

    def replay(self) -> Decider:
        """What decides so."""
        return _Replay(self.holds)


def _word(hold: tuple[int, int]) -> str:
    number, steps = hold
    return f"{number}x" if steps == BREAK else f"{number}+{steps}"


class Decider(Protocol):
    """Says of each message, when it is sent, how many things are to happen before it arrives, or BREAK, where it is
    `fragile`. `holds` remembers it."""

    @property
    def holds(self) -> Mapping[int, int]: ...

    def hold(self, number: int, flow: int, *, fragile: bool) -> int: ...


@dataclass(frozen=True, slots=True)
class _Replay:
    holds: Mapping[int, int]

    def hold(self, number: int, flow: int, *, fragile: bool) -> int:
        return self.holds.get(number, 0)


class Chance:
    """Decides by a generator of random numbers, and remembers.

    Each run has a temper of its own: how many messages are held back, how long at most, whether some flows (a
    request with its answer, a watch) are slow as a whole, and how likely connections break.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 -- to be repeated, not to be secret
        self._likely = self._random.choice((0.02, 0.05, 0.1, 0.2, 0.4))
        self._most = self._random.choice((2, 4, 8, 16, 48))
        self._slow_flows = self._random.choice((0.0, 0.0, 0.1, 0.3))
        self._flows: dict[int, bool] = {}
        self._breaking = random.Random(f"{seed}/breaks")  # noqa: S311 -- the same
        self._breaks = self._breaking.choice((0.0, 0.02, 0.05, 0.2))
        self._broken = 0
        self.holds: dict[int, int] = {}

    def hold(self, number: int, flow: int, *, fragile: bool) -> int:
        if fragile and self._broken < _MOST_BREAKS and self._breaking.random() < self._breaks:
            self._broken += 1
            self.holds[number] = BREAK
            return BREAK
        slow = self._flows.get(flow)
        if slow is None:
            slow = self._flows[flow] = self._random.random() < self._slow_flows
        if self._random.random() >= (0.7 if slow else self._likely):
            return 0
        steps = int(self._most ** self._random.random())
        self.holds[number] = steps
        return steps
