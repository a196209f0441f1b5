"""The checker accepts what an atomic register can do, and nothing else."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from faults.linearizability import Operation, Outcome, linearize, step
from hypothesis import given
from hypothesis import strategies as st

OK, CONFLICT, ABSENT, EXISTS, UNKNOWN = Outcome


def op(kind: Any, invoked: float, completed: float, outcome: Outcome = OK, **more: Any) -> Operation:
    return Operation(kind, "key", invoked, completed, outcome, **more)


CREATED = op("create", 0, 1, value="a")

GOOD = {
    "nothing": [],
    "a read of what was written": [CREATED, op("read", 2, 3, value="a")],
    "a read during a write sees the new value": [CREATED, op("patch", 2, 5, value="b"), op("read", 3, 4, value="b")],
    "a read during a write sees the old value": [CREATED, op("patch", 2, 5, value="b"), op("read", 3, 4, value="a")],
    "one of two puts wins": [
        CREATED,
        op("put", 2, 5, value="b", expected="a"),
        op("put", 3, 4, CONFLICT, value="c", expected="a"),
    ],
    "a lost answer, carried out": [CREATED, op("patch", 2, 3, UNKNOWN, value="b"), op("read", 4, 5, value="b")],
    "a lost answer, not carried out": [CREATED, op("patch", 2, 3, UNKNOWN, value="b"), op("read", 4, 5, value="a")],
    "a lost answer, carried out long after": [
        CREATED,
        op("patch", 2, 3, UNKNOWN, value="b"),
        op("read", 4, 5, value="a"),
        op("read", 6, 7, value="b"),
    ],
    "a conflict with a write whose answer was lost and that nobody saw": [
        CREATED,
        op("patch", 2, 3, UNKNOWN, value="b"),
        op("put", 4, 5, CONFLICT, value="c", expected="a"),
        op("patch", 6, 7, value="d"),
    ],
    "deleted and created again": [
        CREATED,
        op("delete", 2, 3, expected="a"),
        op("read", 4, 5, ABSENT),
        op("create", 6, 7, value="b"),
        op("put", 8, 9, CONFLICT, value="c", expected="a"),
    ],
    "a put to what was deleted": [
        CREATED,
        op("delete", 2, 3, expected="a"),
        op("put", 4, 5, ABSENT, value="b", expected="a"),
    ],
    "a read without an answer": [CREATED, op("read", 2, 3, UNKNOWN), op("read", 4, 5, value="a")],
}

BAD = {
    "a lost update": [
        CREATED,
        op("put", 2, 3, value="b", expected="a"),
        op("read", 4, 5, value="a"),
    ],
    "a double success": [
        CREATED,
        op("put", 2, 5, value="b", expected="a"),
        op("put", 3, 4, value="c", expected="a"),
    ],
    "a double create": [CREATED, op("create", 0.5, 2, value="b")],
    "a stale read": [CREATED, op("patch", 2, 3, value="b"), op("read", 4, 5, value="a")],
    "reads that go back in time": [
        CREATED,
        op("patch", 2, 9, value="b"),
        op("read", 3, 4, value="b"),
        op("read", 5, 6, value="a"),
    ],
    "a value from nowhere": [CREATED, op("read", 2, 3, value="z")],
    "an effect before its cause": [CREATED, op("read", 2, 3, value="b"), op("patch", 4, 5, value="b")],
    "a lost answer seen too early": [CREATED, op("read", 2, 3, value="b"), op("patch", 4, 5, UNKNOWN, value="b")],
    "a lost answer carried out twice": [
        CREATED,
        op("patch", 2, 3, UNKNOWN, value="b"),
        op("read", 4, 5, value="b"),
        op("patch", 6, 7, value="c"),
        op("read", 8, 9, value="b"),
    ],
    "a conflict that nobody caused": [CREATED, op("put", 2, 3, CONFLICT, value="b", expected="a")],
    "a write to what is not there": [CREATED, op("delete", 2, 3, expected="a"), op("patch", 4, 5, value="b")],
    "refused without a reason": [op("create", 0, 1, EXISTS, value="a")],
    "gone without a delete": [CREATED, op("read", 2, 3, ABSENT)],
    "a conflict with nothing": [op("delete", 2, 5, CONFLICT, expected="a")],
    "deleted twice": [CREATED, op("delete", 2, 5, expected="a"), op("delete", 3, 4, expected="a")],
}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD.keys())
def test_good(history: list[Operation]) -> None:
    assert linearize(history) is not None


@pytest.mark.parametrize("history", BAD.values(), ids=BAD.keys())
def test_bad(history: list[Operation]) -> None:
    assert linearize(history) is None


KINDS: dict[Any, list[Outcome]] = {
    "read": [OK, ABSENT, UNKNOWN],
    "create": [OK, EXISTS, UNKNOWN],
    "put": [OK, CONFLICT, ABSENT, UNKNOWN],
    "patch": [OK, ABSENT, UNKNOWN],
    "delete": [OK, CONFLICT, ABSENT, UNKNOWN],
}


@st.composite
def histories(draw: st.DrawFn, size: int) -> list[Operation]:
    """Any answers at any times, with few values so that some of them fit."""
    found = []
    for number in range(draw(st.integers(0, size))):
        kind = draw(st.sampled_from(list(KINDS)))
        invoked = draw(st.integers(0, 8))
        found.append(
            op(
                kind,
                invoked,
                invoked + draw(st.integers(1, 4)),
                draw(st.sampled_from(KINDS[kind])),
                value=draw(st.sampled_from("0123")) if kind == "read" else str(number),
                expected=draw(st.sampled_from("0123")) if kind in ("put", "delete") else None,
            )
        )
    return found


def by_trying_all(history: list[Operation]) -> bool:
    """The definition, word for word: some order of all answered and some of the others, true to time and answers."""
    answered = [operation for operation in history if operation.outcome is not UNKNOWN]
    lost = [operation for operation in history if operation.outcome is UNKNOWN and operation.kind != "read"]
    for mask in range(1 << len(lost)):
        chosen = answered + [operation for number, operation in enumerate(lost) if mask >> number & 1]
        if any(explains(order) for order in permutations(chosen)):
            return True
    return False


def explains(order: tuple[Operation, ...]) -> bool:
    state, earliest = None, 0.0
    for operation in order:
        earliest = max(earliest, operation.invoked)
        possible, state = step(state, operation)
        if not possible or operation.latest < earliest:
            return False
    return True


@given(histories(5))
def test_agrees_with_the_definition(history: list[Operation]) -> None:
    order = linearize(history)
    assert (order is not None) == by_trying_all(history)
    assert order is None or explains(tuple(order))


@given(st.lists(st.tuples(st.sampled_from(list(KINDS)), st.sampled_from("0123456789"), st.floats(0, 9)), max_size=60))
def test_accepts_what_an_atomic_register_answers(calls: list[tuple[Any, str, float]]) -> None:
    """Each operation happens at its number; its client waits before and after for up to nine operations of others."""
    state, history = None, []
    for number, (kind, expected, wait) in enumerate(calls):
        asked = op(kind, number - wait, number + wait, value=str(number % 10), expected=expected)
        for outcome in KINDS[kind]:
            answered = op(
                kind, asked.invoked, asked.completed, outcome, value=state if kind == "read" else asked.value,
                expected=expected,
            )  # fmt: skip
            possible, after = step(state, answered)
            if possible and not (kind == "read" and outcome is OK and state is None):
                state = after
                history.append(answered)
                break
    assert linearize(history) is not None
