"""Are the operations on one key what one atomic register would have answered, given the versions?

Versions put the writes into one order. It remains to be seen whether that order, the answers and the clock agree:
nothing may take effect after its answer or before it was asked for. That takes one pass, however long the history is.
`linearizability` asks the same without looking at versions.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from faults.history import Violation, plural_of
from faults.ledger import Entry, Ledger, deletion_of
from faults.linearizability import Operation, Outcome, State, linearize

LAW = "linearizable"
_CHUNK = 200


def resolve(operations: Iterable[Operation], ledger: Ledger) -> list[Operation]:
    """The operations, with what is known of those without an answer: one that took effect has the version and, as its
    completion, when somebody had been told of it; one that nobody was told of is left out."""
    resolved: list[Operation] = []
    deletions: defaultdict[int, list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.kind == "delete" and operation.outcome in (Outcome.OK, Outcome.UNKNOWN):
            entry = deletion_of(ledger, operation)
            if entry is not None:
                deletions[entry.version].append(replace(operation, version=entry.version))
            elif operation.outcome is Outcome.OK:
                resolved.append(operation)
        elif operation.outcome is not Outcome.UNKNOWN:
            resolved.append(operation)
        elif operation.kind != "read" and (version := ledger.version_of(operation.value)) is not None:
            resolved.append(_happened(operation, version, ledger))
    for version, candidates in deletions.items():
        acknowledged = [operation for operation in candidates if operation.outcome is Outcome.OK]
        earliest = min(candidates, key=lambda operation: operation.invoked)
        resolved += acknowledged or [_happened(earliest, version, ledger)]
    return sorted(resolved, key=lambda operation: operation.invoked)


def _happened(operation: Operation, version: int, ledger: Ledger) -> Operation:
    seen = ledger.seen_by(operation.key, version)
    return replace(operation, outcome=Outcome.OK, version=version, completed=max(seen, operation.invoked))


def check_swaps(key: str, operations: Iterable[Operation], ledger: Ledger) -> list[Violation]:
    """Every write followed the state that it asked for; `operations` are resolved."""
    violations = []
    for operation in operations:
        if operation.outcome is not Outcome.OK or operation.kind == "read":
            continue
        if not operation.version:
            if _must_be_known(operation, ledger):
                violations.append(Violation("no acknowledged write is lost", f"{operation} has left no trace"))
            continue
        before = ledger.entry_at(key, operation.version - 1)
        held = before.value if before is not None else None
        since = before.version if before is not None else 0
        if operation.kind in ("put", "delete"):
            wrong = held != operation.expected
        else:
            wrong = (held is None) != (operation.kind == "create")
            wrong = wrong and ledger.is_known(plural_of(key), since, operation.version)
        if wrong:
            text = f"{operation} was carried out when {held} was there, since version {since}"
            violations.append(Violation("no update is lost", text))
    return violations


def _must_be_known(deletion: Operation, ledger: Ledger) -> bool:
    """Whether a deletion that was acknowledged would have been told."""
    version = ledger.version_of(deletion.expected)
    if version is None:
        return False
    after = ledger.entry_after(deletion.key, version)
    covered = ledger.covered.get(plural_of(deletion.key), [(0, 0)])
    return ledger.is_known(plural_of(deletion.key), version, after.version if after is not None else covered[-1][1])


def check_order(key: str, operations: Iterable[Operation], ledger: Ledger) -> list[Violation]:
    """The order of the versions is one that the clock allows; `operations` are resolved, in the order of their
    beginnings.

    The write of the i-th entry has the place 2i, what was answered from its state 2i + 1. Whatever began after
    something else had ended must not have a smaller place. What was refused may have any place whose state explains
    that; the smallest is taken.
    """
    entries = ledger.of(key)
    index = {entry.version: number for number, entry in enumerate(entries, 1)}
    ended: list[tuple[float, int, int]] = []
    reached, witness = 1, -1
    violations = []
    order = list(operations)
    for number, operation in enumerate(order):
        while ended and ended[0][0] < operation.invoked:
            _, place, whose = heapq.heappop(ended)
            if place > reached:
                reached, witness = place, whose
        if operation.outcome is Outcome.OK:
            if not operation.version:
                continue
            found: float = 2 * index[operation.version] + (operation.kind == "read")
        else:
            found = _place_of_refusal(operation, entries, reached, ledger)
        if found < reached or found == math.inf:
            before = order[witness] if witness >= 0 else "the beginning"
            violations.append(Violation(LAW, f"{operation} cannot come after {before}"))
            continue
        heapq.heappush(ended, (operation.completed, int(found), number))
    return violations


def _place_of_refusal(operation: Operation, entries: list[Entry], reached: int, ledger: Ledger) -> float:
    """The first place from `reached` on whose state explains a refusal; infinite where there is none."""
    plural = plural_of(operation.key)
    for number in range(reached // 2, len(entries) + 1):
        state = entries[number - 1].value if number else None
        if _explains(state, operation):
            return max(2 * number + 1, reached)
        version = entries[number - 1].version if number else 0
        following = entries[number].version if number < len(entries) else ledger.covered.get(plural, [(0, 0)])[-1][1]
        if not ledger.is_known(plural, version, following):
            return max(2 * number + 1, reached)
    return math.inf


def _explains(state: State, operation: Operation) -> bool:
    if operation.outcome is Outcome.ABSENT:
        return state is None
    if operation.outcome is Outcome.EXISTS:
        return state is not None
    return state is not None and state != operation.expected


def search(key: str, operations: Iterable[Operation], ledger: Ledger) -> list[Violation]:
    """Look for an order that explains everything, without looking at versions; `operations` are resolved. The history
    is cut where nothing is under way: there the ledger tells the state."""
    plural = plural_of(key)
    if len(ledger.covered.get(plural, [])) != 1:
        return []  # what somebody could have been told of, and was not, makes any answer possible
    state: State = None
    violations = []
    for chunk in _chunks(operations):
        after = _state_after(key, chunk, state, ledger)
        end = max(operation.completed for operation in chunk)
        outcome = Outcome.ABSENT if after is None else Outcome.OK
        last = Operation("read", key, math.nextafter(end, math.inf), math.inf, outcome, after)
        if linearize([*chunk, last], state) is None:
            text = f"no order explains {len(chunk)} operations on {key} from {chunk[0].invoked} to {end}"
            violations.append(Violation(LAW, f"{text}, between the states {state} and {after}"))
        state = after
    return violations


def _chunks(operations: Iterable[Operation]) -> Iterable[list[Operation]]:
    chunk: list[Operation] = []
    end = -math.inf
    for operation in operations:
        if len(chunk) >= _CHUNK and operation.invoked > end:
            yield chunk
            chunk = []
        chunk.append(operation)
        end = max(end, operation.completed)
    if chunk:
        yield chunk


def _state_after(key: str, chunk: list[Operation], state: State, ledger: Ledger) -> State:
    version = max((each.version for each in chunk if each.outcome is Outcome.OK), default=0)
    if not version:
        return state
    entry = ledger.entry_at(key, version)
    return None if entry is None else entry.value
