"""Faults of servers, and of those who use them: a context manager each, which strikes when it is entered, and makes
good when it is left.

Each is told the cluster and a source of chance, which chooses whom it strikes and how hard. One that cannot strike
raises Skipped. `CATALOG` has those that are loaded by name; `catalog` loads all.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from random import Random

from faults.cluster import CLIENTS, Cluster
from faults.processes import Process

Injector = Callable[[Cluster, Random], AbstractAsyncContextManager[None]]
CATALOG: dict[str, Injector] = {}


class Skipped(Exception):
    """The fault cannot strike here and now; the message says why."""


def fault(function: Callable[[Cluster, Random], AsyncIterator[None]]) -> Injector:
    """A generator with one yield becomes a fault of its name."""
    injector = asynccontextmanager(function)
    CATALOG[function.__name__.replace("_", "-")] = injector
    return injector


@asynccontextmanager
async def killed(process: Process) -> AsyncIterator[None]:
    await process.kill()
    try:
        yield
    finally:
        await process.revive()


@asynccontextmanager
async def paused(process: Process) -> AsyncIterator[None]:
    if not process.running:
        raise Skipped(f"{process.name} does not run")
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)


@asynccontextmanager
async def disturbed(cluster: Cluster, one: str, other: str, chance: Random) -> AsyncIterator[None]:
    """Cut off, silent in both directions or in one, or slow."""
    network = cluster.network
    how = chance.choice(("cut", "hold", "hold there", "hold back", *(("delay",) if network.delays else ())))
    if how == "cut":
        network.cut(one, other)
    elif how == "delay":
        network.delay(one, other, chance.uniform(0.01, 0.4))
    if how in ("hold", "hold there"):
        network.hold(one, other)
    if how in ("hold", "hold back"):
        network.hold(other, one)
    try:
        yield
    finally:
        network.heal(one, other)


@fault
async def kill_server(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with killed(chance.choice(cluster.servers)):
        yield


@fault
async def kill_all_servers(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for server in cluster.servers:
            await stack.enter_async_context(killed(server))
        yield


@fault
async def stop_server(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """As it is meant to be stopped."""
    server = chance.choice(cluster.servers)
    await server.terminate()
    try:
        yield
    finally:
        await server.revive()


@fault
async def pause_server(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with paused(chance.choice(cluster.servers)):
        yield


@fault
async def disturb_clients(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with disturbed(cluster, CLIENTS, chance.choice(cluster.servers).name, chance):
        yield


@fault
async def full_disk(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """Of a server on SQLite: no file grows beyond the size that the largest has."""
    if cluster.members:
        raise Skipped("a server on etcd has no disk")
    [server] = cluster.servers
    if not server.running:
        raise Skipped("the server does not run")
    sizes = [path.stat().st_size for path in cluster.directory.glob("store.db*")]
    server.limit_files(chance.choice((min(sizes), max(sizes))))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            server.limit_files(None)


@fault
async def slow_fsync(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    server = chance.choice(cluster.servers)
    if server.knobs is None or cluster.members:
        raise Skipped("needs SQLite, Linux and a C compiler")
    server.knobs.turn(fsync=chance.uniform(0.05, 0.5))
    try:
        yield
    finally:
        server.knobs.turn()


@fault
async def clock_jump(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """Of a server's wall clock, to and fro."""
    server = chance.choice(cluster.servers)
    if server.knobs is None:
        raise Skipped("needs Linux and a C compiler")
    server.knobs.turn(clock=chance.choice((-1, 1)) * chance.choice((1.5, 60.0, 3600.0, 86400.0)))
    try:
        yield
    finally:
        server.knobs.turn()


@fault
async def pause_candidate(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with paused(chance.choice(cluster.candidates)):
        yield


@fault
async def kill_candidate(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with killed(chance.choice(cluster.candidates)):
        yield


@fault
async def kill_operator(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    assert cluster.operator is not None
    async with killed(cluster.operator):
        yield
