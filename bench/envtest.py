"""Start-up time and memory of controller-runtime's envtest on the stand-ins, and on the real programs, in turns.

    python bench/envtest.py [--real DIR] [--rounds 5]

Builds `tests/interop/controller_runtime/suite` (Go), writes the stand-ins, and runs the suite with KUBEBUILDER_ASSETS
naming either. `--real` is a directory with kube-apiserver, etcd and kubectl. Prints a table in Markdown. Memory is what
kube-apiserver and etcd, and what they have started, hold together, at most: pages that they share are counted once
(PSS); in parentheses, once for each of them (RSS).
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

SOURCE = pathlib.Path(__file__).parent.parent / "tests" / "interop" / "controller_runtime"


class Run(NamedTuple):
    started: float
    whole: float
    proportional: float
    resident: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5, help="each is measured so many times, in turns")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        suite, assets = work / "suite", work / "assets"
        subprocess.run(["go", "test", "-c", "-o", str(suite), "./suite"], cwd=SOURCE, check=True)
        make = [sys.executable, "-m", "steersman.cli", "envtest-assets", str(assets)]
        subprocess.run(make, check=True, capture_output=True)
        run(suite, assets)  # an installed package has bytecode
        ours, theirs = [], []
        for _ in range(options.rounds):
            ours.append(run(suite, assets))
            if options.real is not None:
                theirs.append(run(suite, options.real))
        print(table(ours, theirs))
    return 0


def run(suite: pathlib.Path, assets: pathlib.Path) -> Run:
    """One run of the suite; a failure ends the measurement."""
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(assets.resolve())}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    process = subprocess.Popen(
        [suite, "-test.v"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    memory: list[tuple[float, float]] = [(0, 0)]
    watching = threading.Thread(target=watch, args=(process, memory))
    watching.start()
    out, _ = process.communicate()
    whole = time.perf_counter() - began
    watching.join()
    found = re.search(r"started in ([\d.]+) s", out)
    if process.returncode or found is None:
        raise SystemExit(out)
    return Run(float(found[1]), whole, max(each[0] for each in memory), max(each[1] for each in memory))


def watch(process: subprocess.Popen[str], memory: list[tuple[float, float]]) -> None:
    """What is held by all that the process has started, in MB, until it ends."""
    while process.poll() is None:
        held = [pages(number) for number in descendants(process.pid)]
        memory.append((sum(each[0] for each in held) / 1e6, sum(each[1] for each in held) / 1e6))
        time.sleep(0.05)


def descendants(number: int) -> list[int]:
    found = []
    try:
        for task in pathlib.Path(f"/proc/{number}/task").iterdir():
            for child in (task / "children").read_text().split():
                if b"kubectl" not in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                    found += [int(child), *descendants(int(child))]
    except OSError:  # it has ended
        pass
    return found


def pages(number: int) -> tuple[float, float]:
    """Its share of the pages that it has mapped, and all of them, in bytes."""
    try:
        content = pathlib.Path(f"/proc/{number}/smaps_rollup").read_text()
    except OSError:
        return 0, 0
    found = {line.split()[0]: int(line.split()[1]) * 1024 for line in content.splitlines()[1:]}
    return found.get("Pss:", 0), found.get("Rss:", 0)


def table(ours: list[Run], theirs: list[Run]) -> str:
    lines = ["| | stand-ins | kube-apiserver, etcd | ratio |", "|---|--:|--:|--:|"]
    for label, field, form in (
        ("`Environment.Start`, median, s", "started", ".3f"),
        ("the whole suite, median, s", "whole", ".2f"),
        ("memory, at most, MB", "proportional", ".0f"),
    ):
        us, them = ([getattr(each, field) for each in runs] for runs in (ours, theirs))
        mine = statistics.median(us)
        cells = [f"{mine:{form}}", "", ""]
        if them:
            other = statistics.median(them)
            cells[1:] = [f"{other:{form}}", f"{other / mine:.1f}x"]
        if field == "proportional":
            for index, runs in enumerate((ours, theirs)):
                if runs:
                    cells[index] += f" ({statistics.median(each.resident for each in runs):.0f})"
        elif field == "started":
            for index, values in enumerate((us, them)):
                if values:
                    cells[index] += f" ({min(values):{form}} to {max(values):{form}})"
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
