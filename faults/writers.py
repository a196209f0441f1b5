"""Clients that write and read: some compete for a few objects, some make and delete many."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

from faults.history import COLORS, History, Snapshot, Violation, color_of, plural_of
from faults.linearizability import Operation, OperationKind, Outcome
from faults.requests import KINDS, NAMESPACE, PATHS, Answer, Connection, now
from steersman.client.transport import ConnectError, TransportError

LABEL = "color"
_WEIGHTS: dict[OperationKind, int] = {"read": 5, "create": 2, "put": 6, "patch": 2, "delete": 1}
_OUTCOMES = {
    "NotFound": Outcome.ABSENT,
    "AlreadyExists": Outcome.EXISTS,
    "Conflict": Outcome.CONFLICT,
}
_PAUSE_OFFLINE = 0.2


def value_of(obj: Any) -> str:
    value: str = obj["data"]["value"]
    return value


def version_of(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


class Client:
    """What writers and readers have in common: a name, a source of chance, and the history that they write."""

    def __init__(self, name: str, connection: Connection, history: History, chance: Random) -> None:
        self.name = name
        self.connection = connection
        self.history = history
        self.chance = chance
        self._count = 0
        self._known: dict[str, Any] = {}

    def new_value(self) -> str:
        self._count += 1
        return f"{self.name}-{self._count}-{self.chance.choice(COLORS)}"

    async def operate(self, kind: OperationKind, key: str) -> Outcome | None:
        """Carry an operation out and record it; None when nothing was sent or the server had no time for it."""
        value = self.new_value()
        known = self._known.get(key)
        expected = value_of(known) if known is not None and kind in ("put", "delete") else None
        await self.connection.serving.wait()
        invoked = now()
        try:
            answer = await self._send(kind, key, value, known)
            outcome = self._outcome(answer, f"{kind} {key}")
        except ConnectError:
            self.history.counts["never sent"] += 1
            await asyncio.sleep(_PAUSE_OFFLINE)
            return None
        except TransportError:
            answer, outcome = Answer(0, None), Outcome.UNKNOWN
        if outcome is None:
            self.history.counts["turned away"] += 1
            await asyncio.sleep(_PAUSE_OFFLINE)
            return None
        version = 0
        if outcome is Outcome.OK:
            self.history.answered.append(now())
            if kind != "delete":
                self._known[key] = answer.body
                version = version_of(answer.body)
                value = value_of(answer.body) if kind == "read" else value
                if value_of(answer.body) != value:
                    self._complain(f"{kind} {key} was answered with another value than {value}: {answer.body}")
        state = value if kind in ("create", "put", "patch") or (kind == "read" and outcome is Outcome.OK) else None
        self.history.operations.append(Operation(kind, key, invoked, now(), outcome, state, expected, version))
        if outcome is Outcome.UNKNOWN:
            await asyncio.sleep(_PAUSE_OFFLINE)
        return outcome

    async def list(self, plural: str) -> None:
        """List all, at once, in pages, or what a server happens to have; record what was found."""
        form = self.chance.choice(("consistent", "pages", "any"))
        query = {"consistent": {}, "pages": {"limit": "7"}, "any": {"resourceVersion": "0"}}[form]
        objects: dict[str, tuple[int, str]] = {}
        await self.connection.serving.wait()
        invoked = now()
        try:
            while True:
                answer = await self.connection.ask("GET", PATHS[plural], query)
                if answer.status != 200:
                    if self._outcome(answer, f"list {plural}") is Outcome.UNKNOWN:
                        self.history.counts["failed lists"] += 1
                    return
                for item in answer.body["items"]:
                    if LABEL in item["metadata"].get("labels", {}):
                        objects[f"{plural}/{item['metadata']['name']}"] = version_of(item), value_of(item)
                version, more = version_of(answer.body), answer.body["metadata"].get("continue")
                if not more:
                    break
                query = {**query, "continue": more}
        except TransportError:
            self.history.counts["failed lists"] += 1
            await asyncio.sleep(_PAUSE_OFFLINE)
            return
        self.history.answered.append(now())
        self.history.snapshots.append(Snapshot(plural, invoked, now(), version, form != "any", objects))

    async def _send(self, kind: OperationKind, key: str, value: str, known: Any) -> Answer:
        plural = plural_of(key)
        name, path = key.partition("/")[2], PATHS[plural]
        api_version, kind_name = KINDS[plural]
        labels = {LABEL: color_of(value)}
        data = {"value": value}
        ask = self.connection.ask
        match kind:
            case "read":
                return await ask("GET", f"{path}/{name}")
            case "create":
                meta = {"name": name, "namespace": NAMESPACE, "labels": labels}
                return await ask("POST", path, None, _object(api_version, kind_name, meta, data))
            case "put":
                meta = {**known["metadata"], "labels": labels}
                return await ask("PUT", f"{path}/{name}", None, _object(api_version, kind_name, meta, data))
            case "patch":
                patch = {"metadata": {"labels": labels}, "data": data}
                return await ask("PATCH", f"{path}/{name}", None, patch, "merge-patch+json")
        preconditions = {"resourceVersion": known["metadata"]["resourceVersion"]}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        return await ask("DELETE", f"{path}/{name}", None, options)

    def _outcome(self, answer: Answer, what: str) -> Outcome | None:
        """What an answer says; None when the server says that it has done nothing. One that must not be is told."""
        if answer.status in (200, 201):
            return Outcome.OK
        if answer.status == 429:
            return None
        if answer.status >= 500:
            self.history.counts[f"answers {answer.status}"] += 1
            return Outcome.UNKNOWN
        found = _OUTCOMES.get(answer.reason)
        if found is not None:
            self.history.answered.append(now())
            return found
        if answer.status == 410:
            self.history.counts["expired lists"] += 1
            return None
        self._complain(f"{what}: {answer.status} {answer.body}")
        return Outcome.UNKNOWN

    def _complain(self, text: str) -> None:
        self.history.violations.append(Violation("answers make sense", text))


def _object(api_version: str, kind: str, meta: Any, data: Any) -> Any:
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "data": data}


class Competitor(Client):
    """Reads and writes a few objects that others write, too; what it knows of one may be old."""

    async def run(self, keys: Sequence[str], over: asyncio.Event) -> None:
        while not over.is_set():
            if self.chance.random() < 0.04:
                await self.list(plural_of(self.chance.choice(keys)))
                continue
            key = self.chance.choice(keys)
            [kind] = self.chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
            if kind in ("put", "delete") and key not in self._known:
                kind = "read"
            if await self.operate(kind, key) in (Outcome.CONFLICT, Outcome.ABSENT):
                self._known.pop(key, None)


class Churner(Client):
    """Makes objects of its own, and deletes them again."""

    async def run(self, plural: str, over: asyncio.Event) -> None:
        alive: list[str] = []
        number = 0
        while not over.is_set():
            if len(alive) < self.chance.randint(1, 20):
                number += 1
                key = f"{plural}/{self.name}-{number}"
                if await self.operate("create", key) is Outcome.OK:
                    alive.append(key)
            else:
                key = alive.pop(self.chance.randrange(len(alive)))
                await self.operate("delete", key)
