"""Elections without waiting: an event loop whose time jumps to the next timer, and locks behind a bad network."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import selectors
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from steersman import Client, LeaderElector, Leadership
from steersman.apimachinery.errors import AlreadyExists, Conflict, InternalError
from steersman.client import Config, TransportError
from steersman.runtime.leaderelection import Observation, Place, Record

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class _Selector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events:
            assert timeout is not None, "nothing will ever happen"
            self.now += max(0.0, timeout)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """Waits for nothing: when nothing is left to do, it is at once as late as the next timer."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def sleep_through(self, seconds: float) -> None:
        """Time goes by, and nothing runs: the process is stopped."""
        self._virtual.now += seconds


def virtually(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


@dataclass
class Store:
    """What the server has of one lock: a record and its version, compared and swapped."""

    record: Record | None = None
    version: int = 0

    def touch(self) -> None:
        """Someone changes a label."""
        self.version += 1

    def delete(self) -> None:
        self.record = None
        self.version += 1


@dataclass
class Network:
    """How one process's requests fare. Delays in seconds, before and after the server has carried them out.

    `loses_answers` is about writes only.
    """

    before: Callable[[], float] = lambda: 0.001
    after: Callable[[], float] = lambda: 0.001
    refuses: bool = False
    silent: bool = False
    loses_answers: bool = False
    requests: list[tuple[float, str]] = field(default_factory=list)


class MemoryLock:
    """A `Lock` over a `Store`, through a `Network`. A request whose sender gives up may be carried out all the same."""

    name = "virtual"
    resolution = timedelta(microseconds=1)

    def __init__(self, store: Store, network: Network) -> None:
        self._store = store
        self._network = network

    def places(self) -> Sequence[Place]:
        return []

    async def read(self, client: Client) -> Observation | None:
        return await self._send("read", self._get)

    async def write(self, client: Client, record: Record, seen: Observation | None) -> Observation:
        version = None if seen is None else seen.objects[0]["version"]
        return await self._send("write", lambda: self._swap(record, version))

    async def _send(self, what: str, action: Callable[[], T]) -> T:
        loop, network = asyncio.get_running_loop(), self._network
        network.requests.append((loop.time(), what))
        if network.silent:
            await asyncio.sleep(1e6)
        if network.refuses:
            raise InternalError("not today")
        done: asyncio.Future[T] = loop.create_future()
        loop.call_later(network.before(), self._carry_out, action, done)
        answer = await done
        await asyncio.sleep(network.after())
        if network.loses_answers and what == "write":
            raise TransportError("the connection has ended")
        return answer

    @staticmethod
    def _carry_out(action: Callable[[], T], done: asyncio.Future[T]) -> None:
        try:
            answer = action()
        except Exception as error:
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(answer)

    def _get(self) -> Observation | None:
        record = self._store.record
        if record is None:
            return None
        return Observation(record, repr(record).encode(), ({"version": self._store.version},))

    def _swap(self, record: Record, version: int | None) -> Observation:
        if version is None and self._store.record is not None:
            raise AlreadyExists("there already")
        if version is not None and version != self._store.version:
            raise Conflict("changed meanwhile")
        self._store.record = record
        self._store.version += 1
        seen = self._get()
        assert seen is not None
        return seen


@dataclass
class Stint:
    """One time that work ran, in the loop's time; `end` None while it does."""

    who: str
    token: int
    begin: float
    end: float | None = None


class Process:
    """One elector with a network and a wall clock of its own; what its work does is in `stints`."""

    def __init__(
        self, who: str, store: Store, stints: list[Stint], skew: timedelta = timedelta(), **options: Any
    ) -> None:
        self.who = who
        self.network = Network()
        self.skew = skew
        self.ending = 0.0
        self.overruns = 0
        self._stints = stints
        self.client = Client(Config("http://127.0.0.1:1"))
        loop = asyncio.get_running_loop()
        self.elector = LeaderElector(
            self.client,
            MemoryLock(store, self.network),
            identity=who,
            exit_on_overrun=False,
            on_overrun=self._overrun,
            **{"wall_clock": lambda: EPOCH + timedelta(seconds=loop.time()) + self.skew, **options},
        )

    def start(self) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self.elector.run(self.work))

    async def work(self, leadership: Leadership) -> None:
        """Works for ever; when it is cancelled, it needs `ending` seconds more, however often that is repeated."""
        loop = asyncio.get_running_loop()
        stint = Stint(self.who, leadership.fencing_token, loop.time())
        self._stints.append(stint)
        try:
            await asyncio.sleep(1e6)
        finally:
            over = loop.time() + self.ending
            while (left := over - loop.time()) > 0:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(left)
            stint.end = loop.time()

    def _overrun(self) -> None:
        self.overruns += 1


def overlaps(stints: Sequence[Stint]) -> list[tuple[Stint, Stint]]:
    """Pairs of work that ran at the same time."""
    ordered = sorted(stints, key=lambda stint: stint.begin)
    return [(one, other) for one, other in itertools.pairwise(ordered) if one.end is None or one.end > other.begin]


def uneven(seed: int, usual: float, rare: float) -> Callable[[], float]:
    """Delays that are short as a rule, and now and then long."""
    chance = random.Random(seed)
    return lambda: chance.uniform(0, rare) if chance.random() < 0.1 else chance.uniform(0, usual)
