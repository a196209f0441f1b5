"""What clients asked for and were told, as plain values. Times are seconds of CLOCK_MONOTONIC, which processes share.

A value is `WORKER-NUMBER-COLOR`, written once by one worker; the color is also the object's label. A key is
`PLURAL/NAME`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from faults.linearizability import Operation

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
COLORS = ("red", "blue")


def color_of(value: str) -> str:
    """The label that the object with this value has."""
    return value.rpartition("-")[2]


def plural_of(key: str) -> str:
    return key.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Told:
    """An event of a watch, or an object of a state; `at` is when it arrived."""

    type: EventType
    key: str
    version: int
    value: str
    at: float


@dataclass(slots=True)
class Segment:
    """One stream of a watcher of the objects of `plural`, or of those with a color.

    It begins after the version `start`: with `initial`, the state at that version; or, where `initial` is None, where
    the watcher's last segment ended. `last` is the newest version that an event or a bookmark named.
    """

    watcher: str
    plural: str
    color: str | None
    start: int
    initial: dict[str, Told] | None
    events: list[Told] = field(default_factory=list)
    last: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a list found. One that is not `consistent` may be old."""

    plural: str
    invoked: float
    completed: float
    version: int
    consistent: bool
    objects: dict[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Claim:
    """A candidate was certain to lead at some moment in [before, after]."""

    identity: str
    token: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Violation:
    """What must not be; `check` names the law."""

    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


@dataclass(slots=True)
class History:
    """All that happened in a campaign. `answered` are the times of answers with success; `counts` is for the report."""

    operations: list[Operation] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
