"""What the ownership of fields costs: server-side apply, and updates of objects that five managers own.

    python bench/ownership.py --shared ../shared [--objects 1000] [--clients 16] [--rounds 3] [--without-reference]

Objects have 5 KB and the schema of bench/schema_writes.py; the servers take turns as there. Prints a table in Markdown,
and how much more an update costs with five managers than with one, on each server.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import tempfile

from compare import measure_reference, measure_steersman
from schema_writes import errors, prepared, row

WRITES = 11  # of each object, in all phases and between them
PHASES = ("apply_create", "apply_same", "apply_change", "put_1_manager", "put_5_managers")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=pathlib.Path, required=True)
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-reference", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        load = prepared(work, options, "ownership_load.go")
        ours, theirs = [], []
        for number in range(options.rounds):
            ours.append(measure_steersman(load, work / f"us-{number}"))
            if not options.without_reference:
                theirs.append(measure_reference(load, work / f"reference-{number}", options.shared))
    print(table(ours, theirs, options.objects))
    return 0


def table(ours: list[dict], theirs: list[dict], objects: int) -> str:
    """Medians of all rounds, and the least ratio of a round."""
    lines = ["| | steersman | reference | ratio | least ratio | bytes sent, received |", "|---|--:|--:|--:|--:|--:|"]
    for phase in PHASES:
        us, them = ([run["load"][phase]["per_second"] for run in runs] for runs in (ours, theirs))
        label = f"{phase}/s" + errors(ours, phase, "here") + errors(theirs, phase, "there")
        first = ours[0]["load"][phase]
        lines.append(row(label, us, them, ",.0f", f"{first['bytes_sent']:,}, {first['bytes_received']:,}"))
    us, them = ([run["cpu"] / (objects * WRITES) * 1000 for run in runs] for runs in (ours, theirs))
    lines.append(row("processor time a write, ms", us, them, ".2f", "", less_is_better=True))
    for name, runs in (("steersman", ours), ("reference", theirs)):
        if runs:
            times = f"{growth(runs):.2f} times what one with a single manager does"
            lines.append(f"\nA PUT with five managers costs {times} ({name}).")
    return "\n".join(lines)


def growth(runs: list[dict]) -> float:
    ratios = [run["load"]["put_1_manager"]["per_second"] / run["load"]["put_5_managers"]["per_second"] for run in runs]
    return statistics.median(ratios)


if __name__ == "__main__":
    sys.exit(main())
