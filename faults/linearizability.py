"""Is a history of one compare-and-swap register linearizable?

A register is absent or holds a value; every write writes a value of its own, so a value also names the state that a
conditional write asks for. The search is that of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993) with
the memory of Lowe ("Testing for Linearizability", 2017): a set of operations that were carried out, with the state
that they led to, is never looked at twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

State = str | None
"""What a register holds; None when there is none."""
OperationKind = Literal["read", "create", "put", "patch", "delete"]


class Outcome(Enum):
    OK = "ok"
    CONFLICT = "conflict"  # there is another value than the expected one
    ABSENT = "absent"  # there is none
    EXISTS = "exists"  # there is one already
    UNKNOWN = "unknown"  # no answer: it may happen at any time after it was asked for, or never


@dataclass(frozen=True, slots=True)
class Operation:
    """What a client asked for and was answered, in [invoked, completed] (seconds of one clock).

    `value` is what a read found, or what a write writes; `expected` is the state that a put or delete depends on.
    `version` is the resourceVersion that the answer named, 0 for none; the search makes no use of it.
    """

    kind: OperationKind
    key: str
    invoked: float
    completed: float
    outcome: Outcome
    value: State = None
    expected: State = None
    version: int = 0

    @property
    def latest(self) -> float:
        """When it must have happened."""
        return math.inf if self.outcome is Outcome.UNKNOWN else self.completed


def step(state: State, operation: Operation) -> tuple[bool, State]:
    """Whether the operation can have its outcome in this state, and the state after it.

    One of unknown outcome is only asked about here when it is to have an effect.
    """
    kind, outcome = operation.kind, operation.outcome
    if kind == "read":
        return (state == operation.value if outcome is Outcome.OK else state is None), state
    if outcome is Outcome.EXISTS:
        return state is not None, state
    if outcome is Outcome.ABSENT:
        return state is None, state
    if outcome is Outcome.CONFLICT:
        return state is not None and state != operation.expected, state
    if kind == "create":
        possible = state is None
    elif kind == "patch":
        possible = state is not None
    else:
        possible = state is not None and state == operation.expected
    return possible, None if kind == "delete" else operation.value


class _Event:
    """An invocation (`completion` is its other end) or a completion, in a list linked by time."""

    __slots__ = ("completion", "next", "number", "operation", "previous")

    def __init__(self, number: int, operation: Operation, completion: _Event | None) -> None:
        self.number = number
        self.operation = operation
        self.completion = completion
        self.previous: _Event | None = None
        self.next: _Event | None = None

    def remove(self) -> None:
        """Take an invocation and its completion out of the list."""
        for event in (self, self.completion):
            assert event is not None and event.previous is not None
            event.previous.next = event.next
            if event.next is not None:
                event.next.previous = event.previous

    def put_back(self) -> None:
        for event in (self.completion, self):
            assert event is not None and event.previous is not None
            event.previous.next = event
            if event.next is not None:
                event.next.previous = event


def linearize(operations: Iterable[Operation], start: State = None) -> list[Operation] | None:
    """An order of one register's operations that explains all answers, or None when there is none.

    Operations without an answer may be missing from it.
    """
    asked = [operation for operation in operations if not _is_void(operation)]
    open_answers = sum(operation.outcome is not Outcome.UNKNOWN for operation in asked)
    head = _linked(asked)
    state, done = start, 0
    seen: set[tuple[int, State]] = set()
    taken: list[tuple[_Event, State]] = []
    event = head.next
    while open_answers:
        if event is not None and event.completion is not None:
            possible, after = step(state, event.operation)
            now = done | 1 << event.number
            if possible and (now, after) not in seen:
                seen.add((now, after))
                taken.append((event, state))
                open_answers -= event.operation.outcome is not Outcome.UNKNOWN
                state, done = after, now
                event.remove()
                event = head.next
            else:
                event = event.next
            continue
        # The first completion of an operation that was not carried out: one of those carried out was a wrong choice.
        if not taken:
            return None
        wrong, state = taken.pop()
        done &= ~(1 << wrong.number)
        open_answers += wrong.operation.outcome is not Outcome.UNKNOWN
        wrong.put_back()
        event = wrong.next
    return [event.operation for event, _ in taken]


def _is_void(operation: Operation) -> bool:
    """A read without an answer says nothing."""
    return operation.kind == "read" and operation.outcome is Outcome.UNKNOWN


def _linked(operations: Sequence[Operation]) -> _Event:
    """The list of all ends in the order of time; invocations first where times are equal. Returns its head."""
    ends: list[tuple[float, int, int, _Event]] = []
    for number, operation in enumerate(operations):
        completion = _Event(number, operation, None)
        ends.append((operation.invoked, 0, number, _Event(number, operation, completion)))
        ends.append((operation.latest, 1, number, completion))
    head = last = _Event(-1, operations[0], None) if operations else _Event(-1, _NOTHING, None)
    for _, _, _, event in sorted(ends, key=lambda end: end[:3]):
        last.next, event.previous = event, last
        last = event
    return head


_NOTHING = Operation("read", "", 0, 0, Outcome.UNKNOWN)
