"""Asks a kube-apiserver and another server the same about random custom resources, and tells where they differ.

    python -m tools.fuzz.crd --reference URL --server URL [--token TOKEN] [--schemas N] [--objects M] [--seed S]

Every schema is a case of its own that depends on the seed and the case's number only: `--first 17 --schemas 1` plays
one again. Servers are not authenticated: both should be on loopback, and of no other use, for definitions of the group
fuzz.example.com come and go. The exit code is 1 when there are differences.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TextIO

from . import definitions, faults
from .compare import CORRUPT, WHY_CORRUPT, differences, explained
from .requests import Writer
from .values import write
from .wire import VERSION_OF, Answer, Ask, Server, ask_both

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
READY_SECONDS = 30.0
REPEATS = 16  # how often the reference is asked again for an answer that may be one of several


@dataclass
class Tally:
    """What happened so far."""

    out: TextIO
    as_json: bool
    counts: Counter[str] = field(default_factory=Counter)

    def note(self, case: int, ask: Ask, answers: tuple[Answer, Answer], lines: list[str]) -> None:
        self.counts["differences"] += 1
        found = {"case": case, "ask": str(ask), "reference": str(answers[0]), "server": str(answers[1]), "lines": lines}
        listed = "\n".join(f"  {line}" for line in lines)
        self.out.write(json.dumps(found) + "\n" if self.as_json else f"case {case}: {ask}\n{listed}\n")
        self.out.flush()


class NeverReadyError(Exception):
    """A server did not come to serve a definition."""


class Case:
    """One definition, objects of it, the definition's next revision, and what becomes of the objects then."""

    def __init__(self, pair: tuple[Server, Server], tally: Tally, number: int, options: argparse.Namespace) -> None:
        self.seed, self.size, self.verbose = options.seed, options.objects, options.verbose
        self.rng = Random(f"{self.seed}/{number}")  # noqa: S311
        self.pair = pair
        self.tally = tally
        self.number = number
        self.stored: dict[str, tuple[Writer, dict[str, Any]]] = {}

    async def play(self) -> None:
        """Play all of it, and take the definition away."""
        definition = definitions.good(self.rng, f"{self.seed}x{self.number}".lower())
        spoil = self.rng.random() < 0.25
        _mark(definition, 0)
        wanted = faults.spoilt(self.rng, definition) if spoil else definition
        self.path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        self.tally.counts["schemas"] += 1
        answer = await self.exchange(Ask("POST", DEFINITIONS, write(wanted), subject=self.path, query=self._level()))
        try:
            if answer is None or answer.status != 201:
                self.tally.counts["schemas refused"] += 1
            elif await self._established(answer.body):
                await self._objects(self.size if not spoil else self.size // 4)
                await self._revision(definition if not spoil else None)
        finally:
            await asyncio.gather(*(each.ask(Ask("DELETE", self.path)) for each in self.pair))

    def _level(self) -> dict[str, str]:
        return {"fieldValidation": self.rng.choice(("Strict", "Warn", "Ignore"))} if self.rng.random() < 0.4 else {}

    async def exchange(self, ask: Ask) -> Answer | None:
        """The reference's answer; None when the other one is different."""
        answers = await ask_both(self.pair, ask)
        self.tally.counts["requests"] += 1
        if self.verbose:
            sys.stderr.write(f"{ask}\n  reference {answers[0]}\n  server {answers[1]}\n")
        lines = differences(*answers)
        if not lines:
            return answers[0]
        if answers[0].status >= 400 or ask.method == "GET":
            for _ in range(REPEATS):
                again = await self.pair[0].ask(ask)
                if not differences(again, answers[1]):
                    self.tally.counts["answers that vary on the reference"] += 1
                    return answers[1]
        if reason := explained(*answers, lines):
            self.tally.counts[f"explained: {reason}"] += 1
            return None
        self.tally.note(self.number, ask, answers, lines)
        return None

    async def _established(self, definition: dict[str, Any]) -> bool:
        """Wait until both serve it; False when it serves nothing that can be stored."""
        spec = definition["spec"]
        served = [version for version in spec["versions"] if version["served"]]
        if not served or spec["group"] != definitions.GROUP or any(v["name"] not in ("v1", "v2") for v in served):
            return False
        self.kind, self.namespaced = spec["names"]["kind"], spec["scope"] == "Namespaced"
        self.plural = spec["names"]["plural"]
        self.versions = {v["name"]: (v.get("schema") or {}).get("openAPIV3Schema") or {} for v in served}
        self.subresources = {v["name"]: v.get("subresources") or {} for v in served}
        column = served[0]["additionalPrinterColumns"][0]["name"] if "additionalPrinterColumns" in served[0] else ""
        await asyncio.gather(*(self._serves(each, column) for each in self.pair))
        await self.exchange(Ask("GET", self.path, subject=self.path))
        return True

    def _collection(self, version: str) -> str:
        below = f"namespaces/default/{self.plural}" if self.namespaced else self.plural
        return f"/apis/{definitions.GROUP}/{version}/{below}"

    async def _serves(self, server: Server, column: str) -> None:
        deadline, answers = time.monotonic() + READY_SECONDS, list[Answer]()
        asks = [Ask("GET", self._collection(version), accept=TABLE) for version in self.versions]
        while time.monotonic() < deadline:
            answers = [await server.ask(ask) for ask in asks]
            if await self._is_established(server) and all(answer.status == 200 for answer in answers):
                names = {each["name"] for answer in answers for each in answer.body.get("columnDefinitions") or ()}
                if not column or column in names:
                    return
            await asyncio.sleep(0.03)
        raise NeverReadyError(f"case {self.number}: {self.path} is not served: {answers[-1]}")

    async def _is_established(self, server: Server) -> bool:
        definition = (await server.ask(Ask("GET", self.path))).body
        conditions = definition["status"].get("conditions") or ()
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

    async def _is_established(self, server: Server) -> bool:
        definition = (await server.ask(Ask("GET", self.path))).body
        conditions = definition["status"].get("conditions") or ()
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

    async def _objects(self, count: int) -> None:
        for number in range(count):
            version = self.rng.choice(list(self.versions))
            api_version = f"{definitions.GROUP}/{version}"
            writer = Writer(self.rng, self._collection(version), api_version, self.kind, self.versions[version])
            name = f"o{number}"
            ask = writer.create(name)
            self.tally.counts["objects"] += 1
            answer = await self.exchange(ask)
            if answer is None:
                await self._forget(name)
                continue
            self.tally.counts["objects taken" if answer.status == 201 else "objects refused"] += 1
            if answer.status == 201 and "dryRun" not in ask.query:
                self.stored[name] = writer, answer.body
                await self._look(name)
                if name in self.stored and self.rng.random() < 0.6:
                    await self._update(name)

    async def _forget(self, name: str) -> None:
        self.stored.pop(name, None)
        ask = Ask("DELETE", f"{self._collection(next(iter(self.versions)))}/{name}")
        await ask_both(self.pair, ask)

    async def _look(self, name: str) -> None:
        for version in self.versions:
            if (name in self.stored) and (len(self.versions) == 1 or self.rng.random() < 0.6):
                path = f"{self._collection(version)}/{name}"
                answer = await self.exchange(Ask("GET", path, subject=path))
                if answer is None or answer.status != 200:
                    await self._forget(name)
                elif path == f"{self.stored[name][0].collection}/{name}":
                    self.stored[name] = self.stored[name][0], answer.body

    async def _update(self, name: str) -> None:
        writer, body = self.stored[name]
        version = writer.collection.split("/")[3]
        below = "/status" if "status" in self.subresources[version] and self.rng.random() < 0.35 else ""
        ask = writer.update(name, body, below=below)
        answer = await self.exchange(ask)
        self.tally.counts["updates"] += 1
        if answer is None:
            await self._forget(name)
            return
        self.tally.counts["updates taken" if answer.status == 200 else "updates refused"] += 1
        if answer.status == 200 and "dryRun" not in ask.query:
            await self._look(name)

    async def _revision(self, definition: definitions.Definition | None) -> None:
        """Change the schema, look at what was stored before, and update it."""
        if definition is None or not self.stored or self.rng.random() < 0.15:
            return
        for number in (1, 2):
            changed = definitions.next_revision(self.rng, definition)
            _mark(changed, number)
            changed["metadata"]["resourceVersion"] = VERSION_OF.format(self.path)
            answer = await self.exchange(Ask("PUT", self.path, write(changed), subject=self.path))
            if answer is None:
                return
            if answer.status != 200:
                self.tally.counts["revisions refused"] += 1
                continue
            self.tally.counts["revisions"] += 1
            if not await self._established(answer.body):
                return
            for writer, _ in self.stored.values():
                writer.set_schema(self.versions[writer.collection.split("/")[3]])
            for name in self.rng.sample(list(self.stored), min(25, len(self.stored))):
                await self._look(name)
                if name in self.stored:
                    await self._update(name)
            definition = changed


def _mark(definition: definitions.Definition, revision: int) -> None:
    """A column whose name tells, in tables, which revision of the definition is served."""
    for version in definition["spec"]["versions"]:
        version["additionalPrinterColumns"] = [{"name": f"R{revision}", "type": "string", "jsonPath": ".spec.a"}]


async def campaign(options: argparse.Namespace, tally: Tally) -> None:
    """Play all cases, some at a time."""
    numbers = iter(range(options.first, options.first + options.schemas))
    pair = tuple(Server(url, options.token, 4 * options.jobs) for url in (options.reference, options.server))
    assert len(pair) == 2

    async def work() -> None:
        for number in numbers:
            case = Case(pair, tally, number, options)
            try:
                await case.play()
            except NeverReadyError as error:
                sys.stderr.write(f"{error}\n")
                known = CORRUPT in str(error)  # one such object keeps all of them from being listed
                tally.counts["explained: " + WHY_CORRUPT if known else "never ready"] += 1
            if (number + 1) % 50 == 0:
                sys.stderr.write(f"{number + 1 - options.first}: {dict(tally.counts)}\n")

    try:
        for each in pair:
            await each.ask(Ask("POST", DEFINITIONS, write(definitions.anchor())))
            await _anchored(each)
        async with asyncio.TaskGroup() as group:
            for _ in range(options.jobs):
                group.create_task(work())
    finally:
        for each in pair:
            await each.close()


async def _anchored(server: Server) -> None:
    deadline = time.monotonic() + READY_SECONDS
    for version in ("v1", "v2"):
        while (await server.ask(Ask("GET", f"/apis/{definitions.GROUP}/{version}/anchors"))).status != 200:
            if time.monotonic() > deadline:
                raise NeverReadyError("the group is not served")
            await asyncio.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.fuzz.crd", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reference", required=True, help="URL of a kube-apiserver")
    parser.add_argument("--server", required=True, help="URL of the server to compare with it")
    parser.add_argument("--token", default="admintoken", help="bearer token of an administrator of both")
    parser.add_argument("--schemas", type=int, default=50)
    parser.add_argument("--objects", type=int, default=40, help="of each schema")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=8, help="schemas at a time")
    parser.add_argument("--verbose", action="store_true", help="show every request and both answers")
    parser.add_argument("--out", type=Path, help="file for the differences, a JSON line each, instead of the output")
    options = parser.parse_args()
    started = time.monotonic()
    with ExitStack() as stack:
        out = sys.stdout if options.out is None else stack.enter_context(options.out.open("w"))
        tally = Tally(out, options.out is not None)
        asyncio.run(campaign(options, tally))
    for name, count in sorted(tally.counts.items()):
        sys.stdout.write(f"{count:8} {name}\n")
    seconds = time.monotonic() - started
    sys.stdout.write(
        f"{seconds:8.0f} seconds, {tally.counts['requests'] / seconds:.0f} requests a second to each server\n"
    )
    return 1 if tally.counts["differences"] or tally.counts["never ready"] else 0


if __name__ == "__main__":
    sys.exit(main())
