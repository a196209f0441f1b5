"""The faults, a context manager each: it strikes when it is entered, and makes good when it is left.

Each is told the cluster and a source of chance, which chooses whom it strikes and how hard. One that cannot strike
raises Skipped. `CATALOG` has them by name.
"""

from __future__ import annotations

import asyncio
import base64
import resource
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from random import Random

import aiohttp

from faults.cluster import CLIENTS, Cluster
from faults.processes import EtcdMember, Process

Injector = Callable[[Cluster, Random], AbstractAsyncContextManager[None]]
CATALOG: dict[str, Injector] = {}
_NO_ANSWER = (aiohttp.ClientError, TimeoutError, RuntimeError)


class Skipped(Exception):
    """The fault cannot strike here and now; the message says why."""


def _fault(function: Callable[[Cluster, Random], AsyncIterator[None]]) -> Injector:
    injector = asynccontextmanager(function)
    CATALOG[function.__name__.strip("_").replace("_", "-")] = injector
    return injector


@asynccontextmanager
async def _killed(process: Process) -> AsyncIterator[None]:
    await process.kill()
    try:
        yield
    finally:
        await process.revive()


@asynccontextmanager
async def _paused(process: Process) -> AsyncIterator[None]:
    if not process.running:
        raise Skipped(f"{process.name} does not run")
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)


@asynccontextmanager
async def _disturbed(cluster: Cluster, one: str, other: str, chance: Random) -> AsyncIterator[None]:
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


@_fault
async def kill_server(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with _killed(chance.choice(cluster.servers)):
        yield


@_fault
async def kill_all_servers(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for server in cluster.servers:
            await stack.enter_async_context(_killed(server))
        yield


@_fault
async def stop_server(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """As it is meant to be stopped."""
    server = chance.choice(cluster.servers)
    await server.terminate()
    try:
        yield
    finally:
        await server.revive()


@_fault
async def pause_server(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with _paused(chance.choice(cluster.servers)):
        yield


@_fault
async def disturb_clients(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with _disturbed(cluster, CLIENTS, chance.choice(cluster.servers).name, chance):
        yield


@_fault
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


@_fault
async def slow_fsync(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    server = chance.choice(cluster.servers)
    if server.knobs is None or cluster.members:
        raise Skipped("needs SQLite, Linux and a C compiler")
    server.knobs.turn(fsync=chance.uniform(0.05, 0.5))
    try:
        yield
    finally:
        server.knobs.turn()


@_fault
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


@_fault
async def pause_candidate(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with _paused(chance.choice(cluster.candidates)):
        yield


@_fault
async def kill_candidate(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with _killed(chance.choice(cluster.candidates)):
        yield


@_fault
async def kill_operator(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    assert cluster.operator is not None
    async with _killed(cluster.operator):
        yield


@_fault
async def kill_member(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with _killed(chance.choice(cluster.members)):
        yield


@_fault
async def kill_all_members(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for member in cluster.members:
            await stack.enter_async_context(_killed(member))
        yield


@_fault
async def pause_member(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with _paused(chance.choice(cluster.members)):
        yield


@_fault
async def stutter_member(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """It runs for a moment, and is stopped for a longer one: as with a disk that is slow to confirm."""
    member = chance.choice(cluster.members)

    async def stutter() -> None:
        try:
            while member.running:
                member.signal(signal.SIGSTOP)
                await asyncio.sleep(chance.uniform(0.02, 0.3))
                member.signal(signal.SIGCONT)
                await asyncio.sleep(chance.uniform(0.01, 0.05))
        finally:
            member.signal(signal.SIGCONT)

    task = asyncio.create_task(stutter())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@_fault
async def disturb_etcd(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """The way of a server to one member, or to all."""
    server = chance.choice(cluster.servers)
    members = cluster.members if chance.random() < 0.4 else [chance.choice(cluster.members)]
    async with AsyncExitStack() as stack:
        for member in members:
            await stack.enter_async_context(_disturbed(cluster, server.name, member.name, chance))
        yield


@_fault
async def isolate_member(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """From the other members; servers still reach it."""
    member = chance.choice(cluster.members)
    others = [other for other in cluster.members if other is not member]
    if not others:
        raise Skipped("there is but one member")
    cut = chance.random() < 0.5
    for other in others:
        if cut:
            cluster.network.cut(member.name, other.name)
        else:
            cluster.network.hold(member.name, other.name)
            cluster.network.hold(other.name, member.name)
    try:
        yield
    finally:
        for other in others:
            cluster.network.heal(member.name, other.name)


@_fault
async def disturb_members(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """The way between two members."""
    if len(cluster.members) < 2:
        raise Skipped("there is but one member")
    one, other = chance.sample(cluster.members, 2)
    async with _disturbed(cluster, one.name, other.name, chance):
        yield


@_fault
async def compact(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """All history but the present."""
    await _compact(cluster, chance)
    yield


@_fault
async def compact_behind(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """All history, while one server cannot see it happen."""
    server = chance.choice(cluster.servers)
    for member in cluster.members:
        cluster.network.cut(server.name, member.name)
    try:
        await asyncio.sleep(chance.uniform(0.5, 2))
        await _compact(cluster, chance)
        yield
    finally:
        for member in cluster.members:
            cluster.network.heal(server.name, member.name)


async def _compact(cluster: Cluster, chance: Random) -> None:
    member = chance.choice(cluster.members)
    try:
        answer = await member.ask("kv/range", {"key": base64.b64encode(b"\0").decode()})
        revision = int(answer["header"]["revision"])
        await member.ask("kv/compaction", {"revision": str(revision), "physical": chance.random() < 0.5})
    except _NO_ANSWER as error:
        raise Skipped(f"{member.name}: {error}") from None


@_fault
async def defragment(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    member = chance.choice(cluster.members)
    try:
        await member.ask("maintenance/defragment", {}, 30)
    except _NO_ANSWER as error:
        raise Skipped(f"{member.name}: {error}") from None
    yield


@_fault
async def move_leader(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """Etcd's."""
    try:
        status = await chance.choice(cluster.members).ask("maintenance/status", {})
        ids = {}
        for member in cluster.members:
            ids[(await member.ask("maintenance/status", {}))["header"]["member_id"]] = member
        leader = ids[status["leader"]]
        target = chance.choice([each for each, member in ids.items() if member is not leader])
        await leader.ask("maintenance/transfer-leadership", {"targetID": target})
    except (*_NO_ANSWER, KeyError, IndexError) as error:
        raise Skipped(f"the leader does not move: {error!r}") from None
    yield


@_fault
async def replace_member(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """One member is removed from the cluster, and comes back later as a new one, with nothing."""
    if len(cluster.members) < 3:
        raise Skipped("there are too few members")
    member = chance.choice(cluster.members)
    helper = next(other for other in cluster.members if other is not member)
    try:
        old = await _id_of(member, helper)
    except _NO_ANSWER as error:
        raise Skipped(f"{helper.name}: {error}") from None
    with suppress(*_NO_ANSWER):
        await helper.ask("cluster/member/remove", {"ID": old}, 10)
    await member.kill()
    try:
        yield
    finally:
        await _add_again(member, helper, old)


async def _id_of(member: EtcdMember, helper: EtcdMember) -> str | None:
    found = (await helper.ask("cluster/member/list", {}))["members"]
    return next((each["ID"] for each in found if member.address in each["peerURLs"]), None)


async def _add_again(member: EtcdMember, helper: EtcdMember, old: str | None) -> None:
    while True:
        with suppress(*_NO_ANSWER):
            now = await _id_of(member, helper)
            if now is None:
                await helper.ask("cluster/member/add", {"peerURLs": [member.address]}, 10)
            elif now == old:
                await helper.ask("cluster/member/remove", {"ID": old}, 10)
            else:
                break
        await helper.revive()
        await asyncio.sleep(0.2)
    shutil.rmtree(member.data, ignore_errors=True)
    member.argv = [*(each for each in member.argv if "cluster-state" not in each), "--initial-cluster-state=existing"]
    await member.start()


@_fault
async def full_disk_of_member(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """No file of the member grows any more; it may well end itself."""
    member = chance.choice(cluster.members)
    if not member.running:
        raise Skipped(f"{member.name} does not run")
    size = (member.data / "member" / "snap" / "db").stat().st_size
    limits = resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        if member.running:
            resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE, limits)
        await member.revive()


ON_SQLITE = {
    "kill-server": 6,
    "stop-server": 2,
    "pause-server": 2,
    "disturb-clients": 4,
    "full-disk": 3,
    "slow-fsync": 2,
    "clock-jump": 2,
    "pause-candidate": 1,
    "kill-candidate": 1,
    "kill-operator": 1,
}
ON_ETCD = {
    **{name: each for name, each in ON_SQLITE.items() if name not in ("full-disk", "slow-fsync")},
    "kill-all-servers": 1,
    "kill-member": 4,
    "kill-all-members": 1,
    "pause-member": 3,
    "stutter-member": 3,
    "disturb-etcd": 5,
    "isolate-member": 4,
    "disturb-members": 3,
    "compact": 3,
    "compact-behind": 3,
    "defragment": 2,
    "move-leader": 2,
    "replace-member": 2,
    "full-disk-of-member": 2,
}
"""How often a fault is chosen, in proportion."""
