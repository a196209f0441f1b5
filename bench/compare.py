"""Measures this server and a real kube-apiserver with the same load, one after the other, in one run.

    python bench/compare.py --shared ../shared [--objects 2000] [--clients 16] [--rounds 1] [--on-etcd]

`--shared` holds bench/apiload (a Go program, built here when it is missing) and reference/up.sh, whose programs are
built by reference/build.sh. With `--on-etcd` both serve one etcd, with what is in it, one after the other. Prints a
table in Markdown; see bench/README.md for what the phases are.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

Load = Callable[[str], dict]

TOKENS = "admintoken,admin,admin,system:masters\n"
PHASES = (
    "create",
    "get",
    "list_all",
    "list_page",
    "list_label",
    "update",
    "conflict",
    "patch",
    "apply",
    "status",
    "watch",
    "delete",
)
GOALS = {"create": 3, "update": 3, "patch": 3, "status": 3, "get": 4, "conflict": 4, "list_all": 10, "watch": 3}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=pathlib.Path, required=True)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=1, help="both servers are measured so many times; medians count")
    parser.add_argument("--without-reference", action="store_true")
    parser.add_argument("--on-etcd", action="store_true", help="both on one etcd")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        loader = build_loader(options.shared / "bench" / "apiload", work)
        ours, theirs = [], []

        groups = iter(range(1000))

        def load(url: str) -> dict:
            group = f"load{next(groups)}.example.com"
            return run_load(loader, url, "-n", str(options.objects), "-c", str(options.clients), "-group", group)

        for number in range(options.rounds):
            if options.on_etcd:
                with reference(work / f"reference-{number}", options.shared) as running:
                    theirs.append(measure_running(load, running))
                    os.kill(running.pids[-1], signal.SIGTERM)  # kube-apiserver; etcd goes on
                    time.sleep(3)
                    ours.append(measure_steersman(load, work / f"us-{number}", running.store))
                continue
            ours.append(measure_steersman(load, work / f"us-{number}"))
            if not options.without_reference:
                theirs.append(measure_reference(load, work / f"reference-{number}", options.shared))
        print(table(ours, theirs))
    return 0


def build_loader(source: pathlib.Path, work: pathlib.Path) -> pathlib.Path:
    target = work / "apiload"
    copy = work / "apiload-source"
    shutil.copytree(source, copy, copy_function=shutil.copy)
    copy.chmod(0o755)
    subprocess.run(["go", "build", "-o", str(target), "."], cwd=copy, check=True)
    return target


def run_load(loader: pathlib.Path, url: str, *arguments: str) -> dict:
    """What a load generator measured of the server at a URL."""
    command = [loader, "-server", url, "-token", "admintoken", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def free_ports(count: int) -> int:
    """The first of so many consecutive free ports, below those that the system gives to clients."""
    for first in range(21000, 30000, count):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise SystemExit("no free ports")


def measure_steersman(load: Load, folder: pathlib.Path, store: str = "") -> dict:
    folder.mkdir()
    (folder / "tokens.csv").write_text(TOKENS)
    command = [
        sys.executable,
        "-m",
        "steersman.cli",
        "serve",
        "--secure-port",
        "0",
        "--store",
        store or f"sqlite:///{folder}/store.db",
        "--token-auth-file",
        str(folder / "tokens.csv"),
        "--cert-dir",
        str(folder / "certs"),
    ]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([*command, "--help"], check=True, capture_output=True, env=env)  # an installed package has bytecode
    ready = []
    for _ in range(3):  # the first start also makes certificates and the default policy
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        url = process.stdout.readline().split()[-1]
        ready.append(time.perf_counter() - started)
        if len(ready) < 3:
            process.send_signal(signal.SIGTERM)
            process.wait()
    time.sleep(1)
    fresh = resident(process.pid)
    before = processor_seconds(process.pid)
    result = load(url)
    used = processor_seconds(process.pid) - before
    after = resident(process.pid)
    process.send_signal(signal.SIGTERM)
    process.wait()
    return {
        "ready": statistics.median(ready),
        "first_ready": ready[0],
        "fresh": fresh,
        "after": after,
        "cpu": used,
        "load": result,
    }


@dataclasses.dataclass
class Reference:
    """A kube-apiserver with its etcd; `ready` is how many seconds they took."""

    port: int
    pids: list[int]
    ready: float

    @property
    def store(self) -> str:
        return f"etcd://127.0.0.1:{self.port + 1}"


@contextlib.contextmanager
def reference(folder: pathlib.Path, shared: pathlib.Path) -> Iterator[Reference]:
    port = free_ports(3)
    scripts = shared.resolve() / "reference"
    started = time.perf_counter()
    subprocess.run(
        ["bash", str(scripts / "up.sh"), str(folder), str(port)],
        check=True,
        capture_output=True,
        env={**os.environ, "KCM": "0"},
    )
    ready = time.perf_counter() - started
    try:
        time.sleep(5)
        yield Reference(port, [int((folder / f"{name}.pid").read_text()) for name in ("etcd", "apiserver")], ready)
    finally:
        subprocess.run(["bash", str(scripts / "down.sh"), str(folder)], check=False)


def measure_reference(load: Load, folder: pathlib.Path, shared: pathlib.Path) -> dict:
    with reference(folder, shared) as running:
        return measure_running(load, running)


def measure_running(load: Load, running: Reference) -> dict:
    fresh = sum(map(resident, running.pids))
    before = sum(map(processor_seconds, running.pids))
    result = load(f"https://127.0.0.1:{running.port}")
    used = sum(map(processor_seconds, running.pids)) - before
    after = sum(map(resident, running.pids))
    ready = running.ready
    return {"ready": ready, "first_ready": ready, "fresh": fresh, "after": after, "cpu": used, "load": result}


def resident(pid: int) -> float:
    """Resident memory in MB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    return 0.0


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate(phase: str, runs: list[dict]) -> float:
    values = []
    for run in runs:
        result = run["load"][phase]
        values.append(result["extra"]["events_per_second"] if phase == "watch" else result["per_second"])
    return statistics.median(values)


def table(ours: list[dict], theirs: list[dict]) -> str:
    lines = ["| | steersman | reference | ratio | goal |", "|---|--:|--:|--:|--:|"]
    for phase in PHASES:
        us = rate(phase, ours)
        errors = sum(run["load"][phase]["errors"] for run in ours)
        name = {"watch": "watch events/s", "conflict": "hot-object increments/s"}.get(phase, f"{phase}/s")
        goal = f"{GOALS[phase]}x" if phase in GOALS else ""
        note = f" ({errors} errors)" if errors else ""
        if theirs:
            them = rate(phase, theirs)
            lines.append(f"| {name} | {us:,.0f}{note} | {them:,.0f} | {us / them:.1f}x | {goal} |")
        else:
            lines.append(f"| {name} | {us:,.0f}{note} | | | {goal} |")
    us, them = (
        f"{statistics.median(run['load']['watch']['p99_ms'] for run in runs):.1f}" if runs else ""
        for runs in (ours, theirs)
    )
    lines.append(f"| watch event, 99th percentile, ms | {us} | {them} | | |")
    for key, name, goal in (
        ("ready", "ready, seconds", "0.25"),
        ("first_ready", "first start ready, seconds", ""),
        ("fresh", "resident fresh, MB", ""),
        ("after", "resident after the load, MB", "100"),
    ):
        us = statistics.median(run[key] for run in ours)
        them = f"{statistics.median(run[key] for run in theirs):.2f}" if theirs else ""
        lines.append(f"| {name} | {us:.2f} | {them} | | {goal} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
