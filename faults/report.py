"""A campaign on one page, and its history in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from faults.campaign import Result
from faults.history import History
from faults.linearizability import Outcome


def summary(result: Result) -> str:
    """The figures."""
    history = result.history
    outcomes = Counter(operation.outcome for operation in history.operations)
    refused = outcomes[Outcome.CONFLICT] + outcomes[Outcome.ABSENT] + outcomes[Outcome.EXISTS]
    gaps = [later - earlier for earlier, later in pairwise(sorted(history.answered))]
    terms = {(claim.token, claim.identity) for claim in history.claims}
    lines = [
        f"{result.seconds:.0f} s, judged in {result.judging:.0f} s",
        f"operations       {len(history.operations)}: {outcomes[Outcome.OK]} done, {refused} refused "
        f"(conflict, absent, exists), {outcomes[Outcome.UNKNOWN]} without an answer",
        f"lists            {len(history.snapshots)}",
        f"watches          {len({each.watcher for each in history.segments})} watchers, "
        f"{len(history.segments)} streams, "
        f"{history.counts['watch events']} events, {history.counts['bookmarks']} bookmarks, "
        f"{history.counts['watches begun anew after 410']} times anew after 410",
        f"leaders          {len(terms)} terms, {len(history.claims)} claims",
        f"faults           {sum(result.struck.values())}: {_listed(result.struck)}",
        f"could not strike {len(result.skipped)}{''.join(f'; {reason[:100]}' for reason in result.skipped[:5])}",
        f"restarts         {result.restarts}",
        f"longest silence  {max(gaps, default=0.0):.1f} s without any answer of success",
        f"also             {_listed(history.counts)}",
        f"violations       {len(result.violations)}",
    ]
    return "\n".join([*lines, *(f"  {str(violation)[:400]}" for violation in result.violations[:20])])


def _listed(counts: Any) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items())) or "none"


def write_history(history: History, directory: Path) -> None:
    """Everything as lines of JSON, a file for each kind of record."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("operations", "snapshots", "segments", "claims", "violations"):
        (directory / f"{name}.jsonl").write_bytes(b"".join(_lines(getattr(history, name))))


def _lines(records: Iterable[Any]) -> Iterable[bytes]:
    for record in records:
        yield orjson.dumps(asdict(record), default=str) + b"\n"
