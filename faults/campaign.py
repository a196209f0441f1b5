"""A campaign: a cluster under load, a plan of faults carried out, and then everything is judged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from faults.catalog import CATALOG, Skipped
from faults.checks import check, read_claims
from faults.cluster import Shape, running, start_roles
from faults.history import History, Violation
from faults.plan import Step
from faults.processes import PATIENCE
from faults.requests import GROUP, KINDS, NAMESPACE, PATHS, Connection, now
from faults.watchers import Watcher
from faults.writers import Churner, Client, Competitor
from steersman.client.transport import TransportError

COMPETED_FOR = ("configmaps/a", "configmaps/b", "configmaps/c", "registers/a", "registers/b", "registers/c")
PARENTS = 3
_IDLE = 10.0
"""Seconds without enough answers after which the next fault strikes all the same."""


@dataclass(frozen=True)
class Load:
    """How many clients of which kind there are, and how long a competitor pauses after each operation, in seconds."""

    competitors: int = 8
    churners: int = 2


@dataclass
class Result:
    """What a campaign has found. `struck` counts faults by name, `skipped` those that could not strike."""

    history: History
    violations: list[Violation]
    struck: Mapping[str, int]
    skipped: Sequence[str]
    seconds: float
    judging: float
    restarts: int


@dataclass
class Campaign:
    """One run. `say` is told how far it is; `patience` is how long, in seconds, what must come to be may take."""

    shape: Shape
    plan: Sequence[Step]
    seed: int
    directory: Path
    load: Load = field(default_factory=Load)
    patience: float = PATIENCE
    say: Callable[[str], None] = lambda text: None
    history: History = field(default_factory=History)
    struck: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    async def run(self) -> Result:
        """Raises TimeoutError when the cluster does not come up at all."""
        began = now()
        async with running(self.shape, self.directory) as cluster, AsyncExitStack() as stack:
            self._cluster, self._stack = cluster, stack
            self._writing = asyncio.Event()
            self._admin = await self._connection("admin")
            await self._prepare()
            await start_roles(cluster)
            await self._until_led()
            watchers, watching = await self._watch()
            writing = [asyncio.create_task(work) for work in await self._writers()]
            try:
                await self._strike([*watching, *writing])
                await self._finish(writing, watchers)
                restarts = sum(process.starts - 1 for process in cluster.processes)
            finally:
                for task in (*writing, *watching):
                    task.cancel()
                await asyncio.gather(*writing, *watching, return_exceptions=True)
        self.history.claims = read_claims(cluster.claims)
        ended = now()
        self.say("judging")
        violations = check(self.history)
        return Result(self.history, violations, self.struck, self.skipped, ended - began, now() - ended, restarts)

    def _chance(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")

    async def _connection(self, name: str) -> Connection:
        return await self._connect(self._cluster.kubeconfigs, name)

    async def _connect(self, kubeconfigs: Sequence[Path], name: str) -> Connection:
        connection = Connection(kubeconfigs, self._chance(f"way {name}"), self._cluster.serving)
        return await self._stack.enter_async_context(connection)

    async def _prepare(self) -> None:
        await self._insist("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for plural in ("registers", "parents"):
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            await self._insist("POST", path, _definition(plural, KINDS[plural][1]))
        for kubeconfig in self._cluster.kubeconfigs:  # each server has to have heard of them
            one = await self._connect([kubeconfig], "one")
            for plural in ("registers", "parents"):
                while (await one.ask("GET", PATHS[plural])).status != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)

    async def _insist(self, method: str, path: str, body: Any) -> None:
        """Have something done, by whatever attempt. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(TransportError):
                    form = "merge-patch+json" if method == "PATCH" else "json"
                    answer = await self._admin.ask(method, path, None, body, form)
                    if answer.status in (200, 201) or answer.reason == "AlreadyExists":
                        return
                await asyncio.sleep(0.05)

    async def _until_led(self) -> None:
        """Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while not self._cluster.claims.exists():  # noqa: ASYNC110 -- another process's file
                await asyncio.sleep(0.05)

    async def _watch(self) -> tuple[list[Watcher], list[asyncio.Task[None]]]:
        """Watchers of everything that is written; each has its state before the first write."""
        watchers = []
        for plural in ("configmaps", "registers"):
            for kind, more in {
                "plain": {},
                "streamed": {"streamed": True},
                "slow": {"slowness": 0.3},
                "red": {"color": "red"},
                "blue": {"color": "blue", "streamed": True},
            }.items():
                name = f"{kind}-{plural}"
                connection = await self._connection(name)
                watcher = Watcher(name, connection, self.history, self._chance(name), plural, **more)  # type: ignore[arg-type]
                watchers.append(watcher)
        tasks = [asyncio.create_task(watcher.run()) for watcher in watchers]
        async with asyncio.timeout(PATIENCE):
            while not all(watcher.version for watcher in watchers):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return watchers, tasks

    async def _writers(self) -> list[Any]:
        work: list[Any] = [self._change_parents()]
        for number in range(self.load.competitors):
            name = f"w{number}"
            competitor = Competitor(name, await self._connection(name), self.history, self._chance(name))
            work.append(competitor.run(COMPETED_FOR, self._writing))
        for number in range(self.load.churners):
            name = f"c{number}"
            churner = Churner(name, await self._connection(name), self.history, self._chance(name))
            work.append(churner.run(("configmaps", "registers")[number % 2], self._writing))
        return work

    async def _change_parents(self) -> None:
        """Give the operator work."""
        chance = self._chance("parents")
        self._wanted: dict[str, dict[str, Any]] = {}
        while not self._writing.is_set():
            name = f"p{chance.randrange(PARENTS)}"
            spec = {"children": chance.randint(0, 6), "value": str(chance.random())}
            api_version, kind = KINDS["parents"]
            new = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
            await self._insist("POST", PATHS["parents"], new)
            await self._insist("PATCH", f"{PATHS['parents']}/{name}", {"spec": spec})
            self._wanted[name] = spec
            with suppress(TimeoutError):
                await asyncio.wait_for(self._writing.wait(), chance.uniform(0.1, 1))

    async def _strike(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Carry the plan out. Raises what ended a client."""
        told = time.monotonic()
        for number, step in enumerate(self.plan):
            await self._until_answered(step.answers, tasks)
            chance = Random(step.seed)
            async with AsyncExitStack() as faults:
                for name in step.faults:
                    try:
                        await faults.enter_async_context(CATALOG[name](self._cluster, chance))
                        self.struck[name] = self.struck.get(name, 0) + 1
                    except Skipped as reason:
                        self.skipped.append(f"{name}: {reason}")
                await asyncio.sleep(step.lasts)
            await self._cluster.recover()
            if time.monotonic() - told > 10:
                told = time.monotonic()
                self.say(f"{number + 1} of {len(self.plan)} steps, {len(self.history.operations)} operations")
        await self._until_answered(200, tasks)

    async def _until_answered(self, more: int, tasks: Sequence[asyncio.Task[None]]) -> None:
        wanted, end = len(self.history.answered) + more, now() + _IDLE
        while len(self.history.answered) < wanted and now() < end:
            done, _ = await asyncio.wait(tasks, timeout=0.01, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    async def _finish(self, writing: Sequence[asyncio.Task[None]], watchers: Sequence[Watcher]) -> None:
        """The faults are over: what must come to be in the end, does."""
        self.say("all faults are over")
        self._writing.set()
        try:
            async with asyncio.timeout(self.patience):
                await asyncio.gather(*writing)
        except TimeoutError:
            self._complain("requests come to an end", "a client still waits for an answer")
        reader = Client("reader", self._admin, self.history, self._chance("reader"))
        for plural in ("configmaps", "registers"):
            try:
                async with asyncio.timeout(self.patience):
                    await self._read_finally(reader, plural)
            except TimeoutError:
                self._complain("requests come to an end", f"{plural} can be read and written no more")
        await self._until_told(watchers)
        await self._until_converged()

    async def _read_finally(self, reader: Client, plural: str) -> None:
        """A list of all that there is, and one more write of its kind, which every watcher must come to."""
        lists = len(self.history.snapshots)
        while len(self.history.snapshots) == lists:
            await reader.list(plural)
        for color in ("red", "blue"):
            await self._write_last(reader, plural, color)

    async def _write_last(self, reader: Client, plural: str, color: str) -> None:
        for number in range(1000):
            operations = len(self.history.operations)
            await reader.operate("create", f"{plural}/last-{color}-{number}")
            new = self.history.operations[operations:]
            if new and new[0].version and (new[0].value or "").endswith(color):
                return

    async def _until_told(self, watchers: Sequence[Watcher]) -> None:
        last = {
            (operation.key.partition("/")[0], (operation.value or "").rpartition("-")[2]): operation.version
            for operation in self.history.operations
            if "/last-" in operation.key and operation.version
        }
        end = now() + self.patience
        for watcher in watchers:
            colors = ("red", "blue") if watcher.color is None else (watcher.color,)
            wanted = max(last.get((watcher.plural, color), 0) for color in colors)
            while watcher.version < wanted:
                if now() > end:
                    text = f"{watcher.name} is at version {watcher.version}, and is not told of {wanted}"
                    self._complain("watches go on", text)
                    break
                await asyncio.sleep(0.02)

    async def _until_converged(self) -> None:
        end = now() + self.patience
        while (wrong := await self._not_converged()) is not None:
            if now() > end:
                self._complain("operators converge", wrong)
                return
            await self._cluster.recover()
            await asyncio.sleep(0.1)

    async def _not_converged(self) -> str | None:
        try:
            answer = await self._admin.ask("GET", PATHS["configmaps"], {"labelSelector": "parent"})
        except TransportError as error:
            return str(error)
        if answer.status != 200:
            return str(answer)
        found = {item["metadata"]["name"]: item["data"]["value"] for item in answer.body["items"]}
        wanted = {
            f"{name}-{number}": spec["value"]
            for name, spec in self._wanted.items()
            for number in range(spec["children"])
        }
        return None if found == wanted else f"there is {found} instead of {wanted}"

    def _complain(self, law: str, text: str) -> None:
        self.history.violations.append(Violation(law, text))


def _definition(plural: str, kind: str) -> Any:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
