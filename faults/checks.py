"""The laws that a history is held to, all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from faults.history import Claim, History, Violation, plural_of
from faults.ledger import Ledger
from faults.linearizability import Operation, Outcome
from faults.order import check_order, check_swaps, resolve, search
from faults.streams import check_real_time, check_states, check_streams


def check(history: History) -> list[Violation]:
    """What a history must not be and is; empty when all is well."""
    ledger = Ledger(history)
    violations = [*history.violations, *ledger.violations]
    if ledger.violations:
        return violations  # there is no order to judge the rest by
    by_key: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in history.operations:
        by_key[operation.key].append(operation)
    violations += check_authors(by_key, ledger)
    for key, operations in by_key.items():
        resolved = resolve(operations, ledger)
        violations += check_swaps(key, resolved, ledger)
        violations += check_order(key, resolved, ledger) or search(key, resolved, ledger)
    violations += check_streams(history, ledger)
    violations += check_states(history, ledger)
    violations += check_real_time(history)
    violations += check_leaders(history.claims)
    return violations


def check_authors(by_key: dict[str, list[Operation]], ledger: Ledger) -> list[Violation]:
    """Nothing was written that nobody asked for."""
    violations = []
    for key, entries in ledger.timelines.items():
        asked = [each for each in by_key.get(key, []) if each.outcome in (Outcome.OK, Outcome.UNKNOWN)]
        written = {each.value for each in asked if each.kind in ("create", "put", "patch")}
        deleted = {each.expected for each in asked if each.kind == "delete"}
        before, since = None, 0
        for entry in entries:
            if entry.value is not None:
                wrong = entry.value not in written
            else:
                wrong = before not in deleted and ledger.is_known(plural_of(key), since, entry.version)
            if wrong:
                text = f"nobody has asked for {key} to be {entry.value} at version {entry.version}, after {before}"
                violations.append(Violation("everything was asked for", text))
            before, since = entry.value, entry.version
    return violations


def check_leaders(claims: Iterable[Claim]) -> list[Violation]:
    """No two lead at a time, and terms have growing numbers. A term has certainly lasted from the first answer that it
    was one to when the last one was asked for."""
    terms: defaultdict[tuple[int, str], list[Claim]] = defaultdict(list)
    for claim in claims:
        terms[claim.token, claim.identity].append(claim)
    lasted = sorted(
        (min(claim.after for claim in each), max(claim.before for claim in each), *term) for term, each in terms.items()
    )
    violations = []
    for number, (start, end, token, identity) in enumerate(lasted):
        for other_start, other_end, other_token, other in lasted[number + 1 :]:
            if other_start < end and start < other_end:
                text = f"{identity} (term {token}) and {other} (term {other_token}) both led at {other_start}"
                violations.append(Violation("one leads at a time", text))
        if number and token <= lasted[number - 1][2]:
            text = f"term {token} of {identity} began after term {lasted[number - 1][2]}"
            violations.append(Violation("fencing tokens grow", text))
    return violations


def read_claims(file: Path) -> list[Claim]:
    """What candidates have written down; a line that a kill has cut short says nothing."""
    claims = []
    for line in file.read_text().splitlines() if file.exists() else []:
        words = line.split()
        if len(words) == 4:
            claims.append(Claim(words[0], int(words[1]), float(words[2]), float(words[3])))
    return claims
