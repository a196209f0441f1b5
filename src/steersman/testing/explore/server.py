"""The API server of an explored test: for each run a new one, which starts from what was prepared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from steersman._util.tasks import end
from steersman.apiserver.authn.tokens import StaticTokens
from steersman.apiserver.faults import FaultPlan
from steersman.apiserver.server import ADMINISTRATOR, APIServer, ServerConfig
from steersman.client.client import Client
from steersman.client.config import Config
from steersman.client.config.credentials import StaticCredentials
from steersman.client.resources import Object
from steersman.client.sync import Portal, SyncClient
from steersman.controlplane.controllers import Controllers
from steersman.controlplane.transport import InProcessTransport
from steersman.store.interface import Store
from steersman.store.memory import MemoryStore
from steersman.testing.apiserver import CRD, ApiServer
from steersman.testing.clock import check_seconds
from steersman.testing.explore.loop import VirtualLoop
from steersman.testing.explore.sealed import Seal
from steersman.testing.explore.transport import ExploredTransport, Wire, cut

T = TypeVar("T")
_TOKEN = "explored"  # noqa: S105 -- of a server that nobody else reaches
_SETTLED = 5.0


class Unprepared(BaseException):
    """A definition is not served yet, which cannot be waited for where it is loaded: a run is to begin with it."""

    def __init__(self, definition: Object) -> None:
        super().__init__(definition["metadata"]["name"])
        self.definition = definition


@asynccontextmanager
async def served(store: Store, config: ServerConfig) -> AsyncIterator[APIServer]:
    """A server and its controllers, without a socket, until the block ends; the store stays open."""
    async with AsyncExitStack() as stack:
        server = await APIServer.start(store, config, listen=False)
        stack.push_async_callback(server.stop, 0)
        controllers = Controllers(server)
        controllers.start()
        stack.push_async_callback(controllers.stop)
        yield server


class Stage:
    """An event loop for one server, with all held still that could differ between two stages of the same `seed`."""

    def __init__(self, seed: str, loop: VirtualLoop) -> None:
        self._seal = Seal(seed, loop.time)
        self._runner = asyncio.Runner(loop_factory=lambda: loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        with self._seal.held():
            return self._runner.run(coroutine)

    def close(self) -> None:
        """End what still runs."""
        with self._seal.held():
            self._runner.close()


class _Portal:
    """What `SyncClient` runs its requests with: on the preparation's event loop, or, within a run, at once."""

    def __init__(self, stage: Stage | None) -> None:
        self._stage = stage

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._stage is not None:
            return self._stage.run(coroutine)
        try:
            coroutine.send(None)
        except StopIteration as stop:
            result: T = stop.value
            return result
        coroutine.close()
        raise RuntimeError("a blocking call would have to wait, and nothing else could go on: use an async client")

    def stop(self) -> None:
        """Nothing is to be stopped."""


class ExploredServer(ApiServer):
    """See `ApiServer`. What is done to it before the runs is a preparation: every run starts from there.

    Within a run `kube` answers at once; `config` and `client()` reach it over the explored network.
    """

    def __init__(self, directory: Path, config: ServerConfig | None = None, namespace: str = "default") -> None:
        tokens = StaticTokens({_TOKEN: ADMINISTRATOR})
        self._chosen = replace(config or ServerConfig(), fairness=False, max_reads=0, max_writes=0, tokens=tokens)
        self._store = _first_content().copy()
        self._wire: Wire | None = None
        self._server: APIServer
        self._restart: asyncio.Future[float]
        reached = Config(
            "http://explored",
            namespace=namespace,
            credentials=StaticCredentials(f"Bearer {_TOKEN}"),
            connect=self._connect,
        )
        super().__init__(reached, SyncClient.__new__(SyncClient), directory, token=_TOKEN)
        self._prepare()

    def _connect(self, config: Config) -> ExploredTransport:
        if self._wire is None:
            raise RuntimeError("a server that is explored has async clients only while the test itself runs")
        return ExploredTransport(self._wire)

    def _prepare(self) -> None:
        self._stage = Stage("preparation", VirtualLoop(_nothing))
        self._preparation = served(self._store, self._chosen)
        self._is_prepared = False
        self.faults = None
        self._reach(self._stage.run(self._preparation.__aenter__()), self._stage)

    def prepared(self) -> None:
        """The preparation is over. May be said twice."""
        if self._is_prepared:
            return
        self._is_prepared = True
        self._stage.run(self._preparation.__aexit__(None, None, None))
        self._stage.close()

    def prepare(self, definition: Object) -> None:
        """Have every run from now on begin with a definition, too. Raises as `load`."""
        self._prepare()
        try:
            self.load(definition)
        finally:
            self.prepared()

    @asynccontextmanager
    async def running(self, wire: Wire) -> AsyncIterator[None]:
        """A server for one run, from what is prepared."""
        self._wire, store = wire, self._store.copy()
        self.faults = FaultPlan(interrupt=self.restart)
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self._serve(wire, store, replace(self._chosen, faults=self.faults), started))
        try:
            await asyncio.wait([started, serving], return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            yield
        finally:
            self._wire = None
            await end([serving])
            await store.close()

    async def _serve(self, wire: Wire, store: Store, config: ServerConfig, started: asyncio.Future[None]) -> None:
        """One server after another, until this is cancelled."""
        while True:
            self._restart = asyncio.get_running_loop().create_future()
            async with served(store, config) as server:
                self._reach(server, None)
                wire.handle = server.filters.handle
                if not started.done():
                    started.set_result(None)
                try:
                    down = await self._restart
                finally:
                    await cut(wire)
            await asyncio.sleep(down)

    def compact(self) -> None:
        """See `ApiServer.compact`."""
        self.kube.portal.call(self._server.core.forget_history())

    def restart(self, down: float = 0.0) -> None:
        """See `ApiServer.restart`; it returns at once, and the server is back after `down` seconds of the run."""
        check_seconds("restart", down)
        if self._wire is None:
            raise RuntimeError("a server that is explored is started again only while the test itself runs")
        if not self._restart.done():
            self._wire.handle = None
            self._restart.set_result(down)

    def advance(self, seconds: float) -> None:
        """Raises RuntimeError: a run has one time, and it takes none to let it pass."""
        raise RuntimeError("explored tests let time pass by `await asyncio.sleep(...)`, which takes no time")

    def _reach(self, server: APIServer, stage: Stage | None) -> None:
        """Have `kube`, which a test may hold since its preparation, reach another server."""
        self._server = server
        self.kube.portal = cast("Portal", _Portal(stage))
        self.kube.client = Client(transport=InProcessTransport(server, ADMINISTRATOR), namespace=self.namespace)

    def _await_established(self, name: str) -> None:
        if self._wire is None:
            super()._await_established(name)
            return
        found = self.kube.get(CRD, name)
        conditions = found.get("status", {}).get("conditions") or []
        if not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            raise Unprepared({**found, "metadata": {"name": name}, "status": None})


@contextmanager
def explored_server(directory: Path, *, server: ServerConfig | None = None) -> Iterator[ExploredServer]:
    """A server to be explored, which is being prepared."""
    explored = ExploredServer(directory, server)
    try:
        yield explored
    finally:
        explored.prepared()


def _nothing(wait: float | None) -> bool:
    return False


@cache
def _first_content() -> MemoryStore:
    """What every server makes when it first starts, made in the same order each time."""

    async def make() -> MemoryStore:
        store = MemoryStore()
        async with served(store, ServerConfig(fairness=False)):
            await asyncio.sleep(_SETTLED)
        return store

    stage = Stage("beginning", VirtualLoop(_nothing))
    try:
        return stage.run(make())
    finally:
        stage.close()
