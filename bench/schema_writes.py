"""Creation and update of objects of 5 KB with a schema of 200 fields, against this server and a real kube-apiserver.

    python bench/schema_writes.py --shared ../shared [--objects 2000] [--clients 16] [--rounds 3] [--without-reference]

The two take turns, each time with new data: this server on a SQLite file, both over TLS. bench/schema_load.go is the
client (needs `go`); `--shared` holds reference/, as for bench/compare.py. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from compare import measure_reference, measure_steersman, run_load
from workload import SCHEMA, definition, fields, sample

PHASES = ("create", "update_1", "update_2")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=pathlib.Path, required=True)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-reference", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        load = prepared(work, options)
        ours, theirs = [], []
        for number in range(options.rounds):
            ours.append(measure_steersman(load, work / f"us-{number}"))
            if not options.without_reference:
                theirs.append(measure_reference(load, work / f"reference-{number}", options.shared))
    print(table(ours, theirs, writes=options.objects * len(PHASES)))
    return 0


def prepared(work: pathlib.Path, options: argparse.Namespace, program: str = "schema_load.go"):
    """The load, with its program (a Go file beside this one) built and its files written."""
    sources = [str(pathlib.Path(__file__).with_name(name)) for name in (program, "load_client.go")]
    subprocess.run(["go", "build", "-o", str(work / "load"), *sources], check=True)
    (work / "crd.json").write_text(json.dumps(definition()))
    (work / "object.json").write_text(json.dumps(sample("w-000000"), separators=(",", ":")))
    files = ("-definition", str(work / "crd.json"), "-object", str(work / "object.json"))
    sizes = ("-n", str(options.objects), "-c", str(options.clients))
    return lambda url: run_load(work / "load", url, *files, *sizes)


def table(ours: list[dict], theirs: list[dict], *, writes: int) -> str:
    """Medians of all rounds, and the least ratio of a round."""
    lines = [f"{fields(SCHEMA)} fields", "", "| | steersman | reference | ratio | least ratio | bytes sent, received |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for phase in PHASES:
        us, them = ([run["load"][phase]["per_second"] for run in runs] for runs in (ours, theirs))
        label = f"{phase}/s" + errors(ours, phase, "here") + errors(theirs, phase, "there")
        first = ours[0]["load"][phase]
        lines.append(row(label, us, them, ",.0f", f"{first['bytes_sent']:,}, {first['bytes_received']:,}"))
    us, them = ([run["cpu"] / writes * 1000 for run in runs] for runs in (ours, theirs))
    lines.append(row("processor time a write, ms", us, them, ".2f", "", less_is_better=True))
    return "\n".join(lines)


def row(label: str, us: list[float], them: list[float], form: str, note: str, *, less_is_better: bool = False) -> str:
    mine = statistics.median(us)
    if not them:
        return f"| {label} | {mine:{form}} | | | | {note} |"
    other = statistics.median(them)
    ratios = [one / two for one, two in zip(us, them, strict=True)]
    ratio, least = mine / other, min(ratios)
    if less_is_better:
        ratio, least = other / mine, 1 / max(ratios)
    return f"| {label} | {mine:{form}} | {other:{form}} | {ratio:.1f}x | {least:.1f}x | {note} |"


def errors(runs: list[dict], phase: str, where: str) -> str:
    count = sum(run["load"][phase]["errors"] for run in runs)
    return f" ({count} errors {where})" if count else ""


if __name__ == "__main__":
    sys.exit(main())
