"""Forced fail-overs: `python -m tests.runtime.leaderelection.campaign 200 [--seed N] [--against URL TOKEN CA_FILE]`.

Three processes compete for a Lease of a real server, each through a proxy of its own, with wall clocks an hour apart.
Again and again the leader is harmed, and its successor awaited. In the end no two of them may have worked at a time.

What is compared is all that the processes noted. Of a leader that was paused (SIGSTOP) only steps that a `check()` came
before count: what it was about to do when it was stopped, it does when it goes on, and no elector can prevent that. How
often that reached into another's term is counted apart; it is what `fencing_token` is for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import ssl
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from ...server_process import ServerProcess
from .contender import LEASE, NAME, STEP
from .proxy import FaultyProxy

FAULTS = ("kill", "errors", "pause", "terminate", "partition", "lost", "block", "late", "clock")
SKEWS = (0, 1, -1)
PATIENCE = 30.0
HALF_DEAF = 2.0
SHOWN = 10


@dataclass
class Stretch:
    """All that was noted of one term."""

    who: str
    pid: int
    token: int
    begin: float
    checked: float = 0.0
    last: float = 0.0


@dataclass
class Report:
    """What came of it."""

    terms: int = 0
    takeovers: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    overlaps: list[str] = field(default_factory=list)
    unchecked_after_pause: int = 0
    tokens_grow: bool = True
    smallest_gap: float = float("inf")

    def __str__(self) -> str:
        lines = [f"{sum(map(len, self.takeovers.values()))} fail-overs, {self.terms} terms"]
        for fault, seconds in sorted(self.takeovers.items()):
            median, most = statistics.median(seconds), max(seconds)
            lines.append(f"  {fault:10} {len(seconds):4}  successor after {median:.2f} s, at most {most:.2f} s")
        lines.append(
            f"overlaps: {len(self.overlaps)}; smallest gap between two terms: {self.smallest_gap * 1000:.1f} ms"
        )
        lines += self.overlaps[:SHOWN]
        lines.append(f"tokens grow: {self.tokens_grow}")
        lines.append(f"unchecked work of a paused process in another's term: {self.unchecked_after_pause}")
        return "\n".join(lines)


class Rival:
    """One contender: its process, which is started again when it has ended, and its proxy."""

    def __init__(self, number: int, proxy: FaultyProxy, file: Path, begun: asyncio.Queue[tuple[Rival, int]]) -> None:
        self.proxy = proxy
        self.exits = number > 0
        self._begun = begun
        self._number = number
        self._file = file
        self._life = asyncio.create_task(self._live())
        self.process: asyncio.subprocess.Process | None = None

    def send(self, *signals: int) -> None:
        for number in signals:
            if self.process is not None and self.process.returncode is None:
                self.process.send_signal(number)

    async def stop(self) -> None:
        self._life.cancel()
        await asyncio.wait([self._life])
        self.send(signal.SIGCONT, signal.SIGKILL)
        if self.process is not None:
            await self.process.wait()

    async def _live(self) -> None:
        generation = 0
        while True:
            generation += 1
            identity = f"rival{self._number}-{generation}"
            exits = "exit" if self.exits else "stay"
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.runtime.leaderelection.contender", self.proxy.url, identity),
                *(str(self._file), str(SKEWS[self._number]), exits),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=Path(__file__).parents[3],
            )
            assert self.process.stdout is not None
            async for line in self.process.stdout:
                self._begun.put_nowait((self, json.loads(line)["token"]))
            await self.process.wait()


class Campaign:
    def __init__(self, directory: Path, faults: Sequence[str], seed: int, against: Sequence[str] = ()) -> None:
        self._directory = directory
        self._against = against
        self._file = directory / "notes"
        self._faults = faults
        self._chance = random.Random(seed)
        self._begun: asyncio.Queue[tuple[Rival, int]] = asyncio.Queue()
        self._paused: set[int] = set()
        self.report = Report()

    async def run(self) -> Report:
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(self._session())
            for number in range(len(SKEWS)):
                proxy = await stack.enter_async_context(FaultyProxy(session))
                stack.push_async_callback(Rival(number, proxy, self._file, self._begun).stop)
            leader, token = await self._next(-1)
            for fault in self._faults:
                leader, token = await self._fail_over(fault, leader, token)
        self.judge()
        return self.report

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """As administrator of the server that was named, or of one that is started for this."""
        if not self._against:
            async with ServerProcess(self._directory, store="memory://") as server, server.session() as session:
                yield session
            return
        url, token, ca = self._against
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=ca), limit=0)
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(url, headers=headers, connector=connector) as session:
            async with session.delete(f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{NAME}"):
                pass
            yield session

    async def _next(self, token: int) -> tuple[Rival, int]:
        """The next leader, of a term after this one."""
        async with asyncio.timeout(PATIENCE):
            while True:
                rival, new = await self._begun.get()
                if new > token:
                    return rival, new

    async def _fail_over(self, fault: str, leader: Rival, token: int) -> tuple[Rival, int]:
        await asyncio.sleep(self._chance.uniform(0.05, 0.4))  # it works for a while
        while not self._begun.empty():  # it has lost the lock by itself meanwhile: the machine is slow
            leader, token = self._begun.get_nowait()
        started = time.monotonic()
        self._harm(fault, leader, token)
        # What a half deaf one sends arrives, so that the others must take it for the leader, which it cannot know: that
        # could go on for ever.
        limit = HALF_DEAF if fault in ("lost", "late") else PATIENCE
        healing = asyncio.get_running_loop().call_later(limit, leader.proxy.heal)
        successor, new = await self._next(token)
        healing.cancel()
        self.report.takeovers[fault].append(time.monotonic() - started)
        if fault == "pause":
            await asyncio.sleep(self._chance.uniform(0, 0.3))
        leader.proxy.heal()
        leader.send(signal.SIGCONT)
        return successor, new

    def _harm(self, fault: str, leader: Rival, token: int) -> None:
        if fault in ("errors", "partition", "lost", "late"):
            leader.proxy.harm(fault)
        elif fault == "pause":
            self._paused.add(token)
            leader.send(signal.SIGSTOP)
        elif fault == "clock":
            leader.send(signal.SIGUSR2)
            leader.proxy.harm("partition")
        elif fault == "block" and not leader.exits:
            leader.send(signal.SIGKILL)  # nothing else would end it: that is what exit_on_overrun is for
        else:
            leader.send({"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "block": signal.SIGUSR1}[fault])

    def judge(self) -> None:
        """Compare each term with all that began after it."""
        stretches = read(self._file)
        self.report.terms = len(stretches)
        tokens = [stretch.token for stretch in stretches]
        self.report.tokens_grow = tokens == sorted(set(tokens))
        for index, stretch in enumerate(stretches):
            for later in stretches[index + 1 :]:
                self._compare(stretch, later)

    def _compare(self, stretch: Stretch, later: Stretch) -> None:
        paused = stretch.token in self._paused
        end = stretch.checked if paused else stretch.last
        self.report.smallest_gap = min(self.report.smallest_gap, later.begin - end)
        if end >= later.begin:
            self.report.overlaps.append(f"{stretch} {later}")
        elif stretch.last >= later.begin:
            self.report.unchecked_after_pause += 1


def read(file: Path) -> list[Stretch]:
    """The terms, in the order in which they began."""
    found: dict[tuple[int, int], Stretch] = {}
    for line in file.read_text().splitlines():
        note = json.loads(line)
        key = note["pid"], note["token"]
        if note["what"] == "begin":
            found[key] = Stretch(note["who"], note["pid"], note["token"], note["t"], note["t"], note["t"])
        stretch = found[key]
        stretch.last = max(stretch.last, note["t"])
        if note["what"] == "step":
            stretch.checked = max(stretch.checked, note["t"])
    return sorted(found.values(), key=lambda stretch: stretch.begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("failovers", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--against", nargs=3, metavar=("URL", "TOKEN", "CA_FILE"), default=())
    arguments = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        faults = [FAULTS[number % len(FAULTS)] for number in range(arguments.failovers)]
        report = asyncio.run(Campaign(Path(directory), faults, arguments.seed, arguments.against).run())
    print(report)
    print(f"lease {LEASE} s, a step each {STEP * 1000:.0f} ms, {time.monotonic() - started:.0f} s in all")
    sys.exit(bool(report.overlaps) or not report.tokens_grow)


if __name__ == "__main__":
    main()
