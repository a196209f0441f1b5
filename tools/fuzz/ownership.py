"""Asks a kube-apiserver and another server to write the same objects by many managers, and tells where they differ.

    python -m tools.fuzz.ownership --reference URL --server URL [--token TOKEN] [--interleavings N] [--seed S]

An interleaving is what happens to one object: creates, updates, patches of three types, applies by several managers,
writes to its subresources, in any order. After every step the whole answers are compared, with managedFields, or the
Status. Some interleavings are of one kind: a case, which depends on the seed and its number only. A custom kind's
schema changes in the middle of its case. Objects are made in the namespace default, and definitions of the group
fuzz.example.com; both servers should be of no other use, and collect no garbage. The exit code is 1 when there are
differences.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random

from . import definitions
from .compare import differences
from .crd import DEFINITIONS, READY_SECONDS, TABLE, NeverReadyError, Tally, _anchored, _mark
from .owned_answers import (
    comparable,
    leaves_no_trace,
    only_order_of_times,
    only_place_of_entry,
    only_rewritten,
    plain,
    stores_raw,
)
from .owned_kinds import BUILTIN, Definition, KindMaker
from .owned_steps import Kind, Steps
from .values import write
from .wire import VERSION_OF, Answer, Ask, Server, ask_both

REPEATS = 24  # how often the reference is asked again for an answer that may be one of several
Lines = list[str]


class Interleaving:
    """What happens to one object."""

    def __init__(self, case: Case, kind: Kind, number: int) -> None:
        self.case, self.tally = case, case.tally
        self.kind = kind
        self.steps = Steps(Random(f"{case.seed}/{case.number}/{number}"), kind, f"i{case.number}x{number}")  # noqa: S311
        self.history: list[Ask] = []
        self.going = True
        self.raw = False  # whether the last change was one that the reference stores as it is

    async def play(self, count: int) -> None:
        """That many steps more; none after a difference."""
        for _ in range(count):
            if not self.going:
                return
            await self.step(self.steps.next())

    async def step(self, ask: Ask) -> None:
        self.history.append(ask)
        self.tally.counts["steps"] += 1
        answers = await ask_both(self.case.pair, ask)
        if self.case.verbose:
            sys.stderr.write(f"{ask}\n  reference {answers[0]}\n  server {answers[1]}\n")
        if not await self.agree(ask, answers):
            return
        status = answers[0].status
        self.tally.counts[f"answered {status}"] += 1
        if status >= 300 or "dryRun" in ask.query:
            return
        if _changed(answers[0]):
            self.raw = stores_raw(ask, custom=self.kind.custom)
        if ask.method == "DELETE" or ask.path.endswith("/scale"):
            await self.look(ask)
        else:
            self.steps.live = plain(answers[0].body)

    async def look(self, after: Ask) -> None:
        """Read the object, as it is after a write to something else than itself."""
        ask = Ask("GET", self.steps.path, subject=self.steps.subject)
        answers = await ask_both(self.case.pair, ask)
        if await self.agree(after, answers):
            self.steps.live = plain(answers[0].body) if answers[0].status == 200 else None

    async def agree(self, ask: Ask, answers: tuple[Answer, Answer]) -> bool:
        lines = differences(*map(comparable, answers))
        if not lines:
            return True
        if answers[0].status >= 400 and await self._varies(ask, answers[1]):
            self.tally.counts["answers that vary on the reference"] += 1
            return True
        if only_rewritten(lines) and self.kind.custom and leaves_no_trace(ask):
            self.tally.counts["explained: what is applied and leaves no trace is written each time"] += 1
            return True
        if only_rewritten(lines) and self.raw and await self._rewrites_once(ask):
            self.tally.counts["explained: what was applied or scaled is stored as it is, tidied by the next write"] += 1
            return True
        self.going = False
        if answers[0].status == 0:
            self.tally.counts["explained: the reference panics"] += 1
            return False
        if only_order_of_times(*answers) or only_place_of_entry(*answers):
            self.tally.counts["explained: a second began between two servers' writes"] += 1
            return False
        self.tally.counts["interleavings that differ"] += 1
        asks = await self.minimised(lines)
        self.tally.counts["differences"] += 1
        self.report(asks, answers, lines)
        return False

    async def _rewrites_once(self, ask: Ask) -> bool:
        """Whether both servers do nothing when a write that the reference took for a change is asked again."""
        self.history.append(ask)
        answers = await ask_both(self.case.pair, ask)
        same = answers[0].body["metadata"].get("resourceVersion") == "<as before>"
        return same and not differences(*map(comparable, answers))

    async def _varies(self, ask: Ask, answer: Answer) -> bool:
        for _ in range(REPEATS):
            if not differences(comparable(await self.case.pair[0].ask(ask)), comparable(answer)):
                return True
        return False

    async def minimised(self, lines: Lines) -> list[Ask]:
        """The fewest steps that lead to a difference in the same places; all when they do not do so again."""
        asks, places = self.history, _places(lines)
        if _places(await self.replayed(asks, 0)) != places:
            return asks
        at = len(asks) - 2
        while at >= 0:
            fewer = asks[:at] + asks[at + 1 :]
            if _places(await self.replayed(fewer, at + 1)) == places:
                asks = fewer
            at -= 1
        return asks

    async def replayed(self, asks: list[Ask], turn: int) -> Lines:
        """The first difference when other objects take these steps."""
        name = f"{self.steps.name}r{turn}n{len(asks)}"
        for ask in (_renamed(ask, self.steps.name, name) for ask in asks):
            answers = await ask_both(self.case.pair, ask)
            if (ask.method == "DELETE" or ask.path.endswith("/scale")) and answers[0].status < 300:
                answers = await ask_both(self.case.pair, replace(ask, method="GET", path=ask.subject, body=None))
            lines = differences(*map(comparable, answers))
            if (
                lines
                and not only_order_of_times(*answers)
                and not (answers[0].status >= 400 and await self._varies(ask, answers[1]))
            ):
                return lines
        return []

    def report(self, asks: list[Ask], answers: tuple[Answer, Answer], lines: Lines) -> None:
        listed = "\n".join(f"  {line}" for line in lines)
        steps = "\n".join(f" {ask}" for ask in asks)
        schemas = {version: write(schema) for version, schema in self.kind.versions.items() if self.kind.custom}
        found = {
            "case": self.case.number,
            "object": self.steps.name,
            "lines": lines,
            "steps": [vars(ask) | {"query": dict(ask.query)} for ask in asks],
            "reference": str(answers[0]),
            "server": str(answers[1]),
            "definition": self.case.revisions if self.kind.custom else None,
        }
        out = self.tally.out
        out.write(
            json.dumps(found) + "\n"
            if self.tally.as_json
            else f"case {self.case.number}: {schemas}\n{steps}\n{listed}\n"
        )
        out.flush()

    async def clear(self) -> None:
        """Take the object away."""
        for server in self.case.pair:
            patch = '{"metadata": {"finalizers": null}}'
            await server.ask(Ask("PATCH", self.steps.subject, patch, "application/merge-patch+json"))
            await server.ask(Ask("DELETE", self.steps.subject))


class Case:
    """Some interleavings of one kind, and a change of its schema between their halves."""

    def __init__(self, pair: tuple[Server, Server], tally: Tally, number: int, options: argparse.Namespace) -> None:
        self.pair, self.tally, self.number = pair, tally, number
        self.seed, self.size, self.verbose = options.seed, options.size, options.verbose
        self.rng = Random(f"{self.seed}/{number}")  # noqa: S311
        self.revisions: list[Definition] = []

    async def play(self) -> None:
        if self.rng.random() < 0.3:
            root, plural, schema = BUILTIN[name := self.rng.choice(sorted(BUILTIN))]
            base, _, version = root.rpartition("/")
            below = {"Deployment": ("status", "scale"), "Service": ("status",)}.get(name, ())
            await self._interleave(Kind(base, plural, name, False, {version: schema}, {version: below}))
            return
        maker = KindMaker(self.rng)
        definition = maker.definition(f"{self.seed}x{self.number}".lower())
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        try:
            if await self._defined(definition, Ask("POST", DEFINITIONS, subject=path), 0):
                await self._interleave(_custom(definition), definition)
        finally:
            await asyncio.gather(*(each.ask(Ask("DELETE", path)) for each in self.pair))

    async def _defined(self, definition: Definition, ask: Ask, revision: int) -> bool:
        """Create or change the definition, and wait until both serve it; False if it is refused."""
        _mark(definition, revision)
        answers = await ask_both(self.pair, replace(ask, body=write(definition)))
        if answers[0].status >= 300 or answers[1].status >= 300:
            self.tally.counts[f"definitions refused {answers[0].status} {answers[1].status}"] += 1
            return False
        self.revisions.append(copy.deepcopy(definition))
        kind = _custom(definition)
        await asyncio.gather(*(self._serves(each, kind, f"R{revision}") for each in self.pair))
        return True

    async def _serves(self, server: Server, kind: Kind, column: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        for version in kind.versions:
            while True:
                answer = await server.ask(Ask("GET", kind.collection(version), accept=TABLE))
                body = answer.body if isinstance(answer.body, dict) else {}
                if any(each["name"] == column for each in body.get("columnDefinitions") or ()):
                    break
                if time.monotonic() > deadline:
                    raise NeverReadyError(f"case {self.number}: {kind.plural} is not served")
                await asyncio.sleep(0.03)

    async def _interleave(self, kind: Kind, definition: Definition | None = None) -> None:
        runs = [Interleaving(self, kind, number) for number in range(self.size)]
        self.tally.counts["interleavings"] += len(runs)
        counts = [self.rng.randint(4, 12) for _ in runs]
        halves = [self.rng.randint(2, count) if definition and self.rng.random() < 0.6 else count for count in counts]
        await asyncio.gather(*(run.play(count) for run, count in zip(runs, halves, strict=True)))
        if definition is not None and halves != counts:
            for version in definition["spec"]["versions"]:
                if self.rng.random() < 0.8:
                    KindMaker(self.rng).reshape(version["schema"]["openAPIV3Schema"])
            path = f"{DEFINITIONS}/{definition['metadata']['name']}"
            definition["metadata"]["resourceVersion"] = VERSION_OF.format(path)
            await ask_both(self.pair, Ask("GET", path, subject=path))
            if await self._defined(definition, Ask("PUT", path, subject=path), 1):
                kind.versions = _custom(definition).versions
                self.tally.counts["schemas changed"] += 1
        await asyncio.gather(*(run.play(count - half) for run, count, half in zip(runs, counts, halves, strict=True)))
        await asyncio.gather(*(run.clear() for run in runs))


def _custom(definition: Definition) -> Kind:
    spec = definition["spec"]
    return Kind(
        f"/apis/{spec['group']}",
        spec["names"]["plural"],
        spec["names"]["kind"],
        True,
        {each["name"]: each["schema"]["openAPIV3Schema"] for each in spec["versions"]},
        {each["name"]: tuple(each["subresources"]) for each in spec["versions"]},
    )


def _changed(answer: Answer) -> bool:
    """Whether an object's write was stored; that of a Scale shows its object's version."""
    return bool(answer.body["metadata"].get("resourceVersion") == "<new>") if "metadata" in answer.body else True


def _places(lines: Lines) -> list[str]:
    return sorted(line.partition(": ")[0] for line in lines)


def _renamed(ask: Ask, old: str, new: str) -> Ask:
    body = ask.body.replace(old, new) if isinstance(ask.body, str) else ask.body
    return replace(ask, path=ask.path.replace(old, new), subject=ask.subject.replace(old, new), body=body)


async def campaign(options: argparse.Namespace, tally: Tally) -> None:
    """Play all cases, some at a time."""
    cases = -(-options.interleavings // options.size)
    numbers = iter(range(options.first, options.first + cases))
    reference, server = (Server(url, options.token, 4 * options.jobs) for url in (options.reference, options.server))

    async def work() -> None:
        for number in numbers:
            try:
                await Case((reference, server), tally, number, options).play()
            except NeverReadyError as error:
                sys.stderr.write(f"{error}\n")
                tally.counts["never ready"] += 1
            if (number + 1) % 20 == 0:
                sys.stderr.write(f"{number + 1 - options.first}: {dict(tally.counts)}\n")

    try:
        for each in (reference, server):
            await each.ask(Ask("POST", DEFINITIONS, write(definitions.anchor())))
            await _anchored(each)
        async with asyncio.TaskGroup() as group:
            for _ in range(options.jobs):
                group.create_task(work())
    finally:
        for each in (reference, server):
            await each.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools.fuzz.ownership", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reference", required=True, help="URL of a kube-apiserver")
    parser.add_argument("--server", required=True, help="URL of the server to compare with it")
    parser.add_argument("--token", default="admintoken", help="bearer token of an administrator of both")
    parser.add_argument("--interleavings", type=int, default=500)
    parser.add_argument("--size", type=int, default=25, help="interleavings of a case")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=4, help="cases at a time")
    parser.add_argument("--verbose", action="store_true", help="show every request and both answers")
    parser.add_argument("--out", type=Path, help="file for the differences, a JSON line each, instead of the output")
    return parser.parse_args()


def main() -> int:
    options = _options()
    started = time.monotonic()
    with ExitStack() as stack:
        out = sys.stdout if options.out is None else stack.enter_context(options.out.open("w"))
        tally = Tally(out, options.out is not None, Counter())
        asyncio.run(campaign(options, tally))
    for name, count in sorted(tally.counts.items()):
        sys.stdout.write(f"{count:8} {name}\n")
    seconds = time.monotonic() - started
    sys.stdout.write(f"{seconds:8.0f} seconds, {tally.counts['steps'] / seconds:.0f} steps a second on each server\n")
    return 1 if tally.counts["differences"] or tally.counts["never ready"] else 0


if __name__ == "__main__":
    sys.exit(main())
