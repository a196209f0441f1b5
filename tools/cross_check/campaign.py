"""The operations, and what is checked while they run and afterwards.

- Increments of counters, each a GET at one server and a PUT with that resourceVersion at one or the other: all that
  were acknowledged are in the counter at the end.
- What one server has acknowledged, the other shows in a read that begins afterwards, at that version or a later one.
- Watches at both, begun before the first operation, show the same events in the same order, and every acknowledged
  write is among them, once.
- At the end both list the same objects, byte for byte but for the order of fields.
"""

from __future__ import annotations

import asyncio
import random
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.cross_check.servers import Answer, Object, Server

NAMES = [f"object-{number:02}" for number in range(24)]
COUNTERS = [f"counter-{number}" for number in range(3)]
_MERGE, _APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
_EXPECTED = {200, 201, 404, 409, 422}


@dataclass
class Report:
    done: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    events: int = 0

    def figures(self) -> dict[str, Any]:
        return {"operations": dict(sorted(self.done.items())), "events": self.events, "wrong": len(self.violations)}


class Campaign:
    def __init__(self, servers: Sequence[Server], seed: int, operations: int, workers: int) -> None:
        self.servers = servers
        self.report = Report()
        self._random = random.Random(seed)
        self._left = operations
        self._workers = workers
        group = "".join(self._random.choices(string.ascii_lowercase, k=6))
        self._group = f"{group}.example.com"
        self._written: dict[tuple[str, int], str] = {}
        self._counted: Counter[str] = Counter()
        self._seen: dict[str, list[tuple[str, str, int]]] = {server.url: [] for server in servers}

    @property
    def _path(self) -> str:
        return f"/apis/{self._group}/v1/namespaces/default/crossings"

    async def run(self) -> Report:
        await self._define()
        for name in COUNTERS:
            created = await self.servers[0].request("POST", self._path, self._object(name, count=0))
            self._written[name, created.version] = "ADDED"
        starts = [(await server.request("GET", self._path)).version for server in self.servers]
        watching = [asyncio.create_task(self._watch(*each)) for each in zip(self.servers, starts, strict=True)]
        await asyncio.gather(*(self._work() for _ in range(self._workers)))
        await self._mark()
        await asyncio.wait_for(asyncio.gather(*watching), 60)
        await self._compare(max(starts))
        await self.servers[0].request("DELETE", f"{_DEFINITIONS}/crossings.{self._group}")
        return self.report

    async def _define(self) -> None:
        answer = await self.servers[0].request("POST", _DEFINITIONS, _definition(self._group))
        assert answer.status == 201, answer.body
        for server in self.servers:
            async with asyncio.timeout(30):
                while (await server.request("GET", self._path)).status != 200:  # noqa: ASYNC110 - it is elsewhere
                    await asyncio.sleep(0.1)

    def _object(self, name: str, **spec: Any) -> Object:
        return {
            "apiVersion": f"{self._group}/v1",
            "kind": "Crossing",
            "metadata": {"name": name, "labels": {"parity": str(self._random.randrange(2))}},
            "spec": {"text": "".join(self._random.choices(string.printable, k=self._random.randrange(40))), **spec},
        }

    def _any(self) -> Server:
        return self._random.choice(self.servers)

    async def _work(self) -> None:
        while self._left > 0:
            self._left -= 1
            if self._random.random() < 0.3:
                await self._increment(self._random.choice(COUNTERS))
                continue
            name = self._random.choice(NAMES)
            operation = self._random.choice(
                [self._create, self._replace, self._patch, self._apply, self._delete, self._read]
            )
            await operation(self._any(), name)

    async def _increment(self, name: str) -> None:
        read = await self._any().request("GET", f"{self._path}/{name}")
        body = read.body
        body["spec"]["count"] += 1
        answer = await self._write(self._any(), "increment", "PUT", name, body)
        if answer.status == 200:
            self._counted[name] += 1

    async def _create(self, server: Server, name: str) -> None:
        await self._write(server, "create", "POST", name, self._object(name, count=self._random.randrange(9)))

    async def _replace(self, server: Server, name: str) -> None:
        read = await self._any().request("GET", f"{self._path}/{name}")
        if read.status == 200:
            new = self._object(name, count=self._random.randrange(9))
            read.body["spec"], read.body["metadata"]["labels"] = new["spec"], new["metadata"]["labels"]
            await self._write(server, "replace", "PUT", name, read.body)

    async def _patch(self, server: Server, name: str) -> None:
        await self._write(server, "patch", "PATCH", name, {"spec": {"count": self._random.randrange(99)}}, _MERGE)

    async def _apply(self, server: Server, name: str) -> None:
        await self._write(server, "apply", "PATCH", name, self._object(name, count=1), _APPLY)

    async def _delete(self, server: Server, name: str) -> None:
        answer = await self._write(server, "delete", "DELETE", name)
        if answer.status == 200:
            read = await self._any().request("GET", f"{self._path}/{name}")
            if read.status == 200 and read.body["metadata"]["uid"] == answer.body["details"]["uid"]:
                self._wrong(f"{name} was deleted at {server.url}, and is there afterwards")

    async def _read(self, server: Server, name: str) -> None:
        chosen = self._random.randrange(2)
        listed = await server.request("GET", f"{self._path}?labelSelector=parity%3D{chosen}")
        self._count("list", listed)
        for item in listed.body["items"]:
            if item["metadata"]["labels"]["parity"] != str(chosen):
                self._wrong(f"a list by label at {server.url} has {item['metadata']}")

    async def _write(
        self,
        server: Server,
        what: str,
        method: str,
        name: str,
        body: Object | None = None,
        media: str = "application/json",
    ) -> Answer:
        path = self._path if method == "POST" else f"{self._path}/{name}"
        if media == _APPLY:
            path += "?fieldManager=cross&force=true"
        answer = await server.request(method, path, body, media)
        self._count(what, answer)
        self.report.history.append(f"{server.url} {what} {name} {answer.status} {_version(answer)}")
        if answer.status in (200, 201) and method != "DELETE":
            self._written[name, answer.version] = "ADDED" if answer.status == 201 else "MODIFIED"
            await self._is_visible(name, answer)
        return answer

    async def _is_visible(self, name: str, answer: Answer) -> None:
        """A read at any server that begins after an acknowledgement shows that state, or a later one."""
        server = self._any()
        read = await server.request("GET", f"{self._path}/{name}")
        if read.status == 200 and read.version < answer.version:
            self._wrong(f"{server.url} shows {name} at {read.version}, after {answer.version} was acknowledged")
        if read.status == 200 and read.version == answer.version and read.body != answer.body:
            self._wrong(f"{server.url} shows {name} at {read.version} as {read.body}, not {answer.body}")

    def _count(self, what: str, answer: Answer) -> None:
        self.report.done[f"{what} {answer.status}"] += 1
        if answer.status not in _EXPECTED:
            self._wrong(f"{what}: {answer.status} {answer.body}")

    def _wrong(self, text: str) -> None:
        self.report.violations.append(text)

    async def _mark(self) -> None:
        """A last object, whose event ends the watches."""
        answer = await self.servers[1].request("POST", self._path, self._object("the-end", count=0))
        self._written["the-end", answer.version] = "ADDED"

    async def _watch(self, server: Server, since: int) -> None:
        """What happens after a version; `the-end` is the last."""
        seen = self._seen[server.url]
        while True:
            async for event in server.events(f"{self._path}?watch=1&resourceVersion={since}"):
                meta = event["object"]["metadata"]
                if event["type"] == "ERROR":
                    self._wrong(f"a watch at {server.url} has failed: {event['object']}")
                    return
                since = int(meta["resourceVersion"])
                seen.append((event["type"], meta["name"], since))
                if meta["name"] == "the-end":
                    return

    async def _compare(self, begun: int) -> None:
        """What both have told and tell of all that happened after `begun`."""
        one, other = (self._seen[server.url] for server in self.servers)
        self.report.events = len(one)
        tails = [[event for event in seen if event[2] > begun] for seen in (one, other)]
        if tails[0] != tails[1]:
            self._wrong(f"the watches differ: {_first_difference(*tails)}")
        for seen in (one, other):
            versions = [version for _, _, version in seen if version > begun]
            if versions != sorted(set(versions)):
                self._wrong("a watch shows events twice, or out of order")
            known = {(name, version) for _, name, version in seen}
            missing = [key for key in self._written if key not in known and key[1] > begun]
            if missing:
                self._wrong(f"acknowledged writes were not shown by a watch: {missing[:5]}")
        lists = [await server.request("GET", self._path) for server in self.servers]
        items = [{item["metadata"]["name"]: item for item in answer.body["items"]} for answer in lists]
        if items[0] != items[1]:
            names = [name for name in items[0] | items[1] if items[0].get(name) != items[1].get(name)]
            self._wrong(f"the servers list different objects: {names}")
        for name in COUNTERS:
            found = items[0][name]["spec"]["count"]
            if found != self._counted[name]:
                self._wrong(f"{name} is {found}, and was incremented {self._counted[name]} times")


_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def _version(answer: Answer) -> str:
    return str((answer.body.get("metadata") or {}).get("resourceVersion", "-"))


def _first_difference(one: Sequence[Any], other: Sequence[Any]) -> str:
    for at, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return f"event {at} is {mine} and {theirs}"
    return f"{len(one)} and {len(other)} events"


def _definition(group: str) -> Object:
    spec = {"type": "object", "properties": {"count": {"type": "integer"}, "text": {"type": "string"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"crossings.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "crossings", "singular": "crossing", "kind": "Crossing", "listKind": "CrossingList"},
            "versions": [version],
        },
    }
