"""Faults of etcd, as those of servers in `inject`."""

from __future__ import annotations

import asyncio
import base64
import resource
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from random import Random

import aiohttp

from faults.cluster import Cluster
from faults.inject import Skipped, disturbed, fault, killed, paused
from faults.processes import EtcdMember

_NO_ANSWER = (aiohttp.ClientError, TimeoutError, RuntimeError)


@fault
async def kill_member(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with killed(chance.choice(cluster.members)):
        yield


@fault
async def kill_all_members(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for member in cluster.members:
            await stack.enter_async_context(killed(member))
        yield


@fault
async def pause_member(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    async with paused(chance.choice(cluster.members)):
        yield


@fault
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


@fault
async def disturb_etcd(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """The way of a server to one member, or to all."""
    server = chance.choice(cluster.servers)
    members = cluster.members if chance.random() < 0.4 else [chance.choice(cluster.members)]
    async with AsyncExitStack() as stack:
        for member in members:
            await stack.enter_async_context(disturbed(cluster, server.name, member.name, chance))
        yield


@fault
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


@fault
async def disturb_members(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """The way between two members."""
    if len(cluster.members) < 2:
        raise Skipped("there is but one member")
    one, other = chance.sample(cluster.members, 2)
    async with disturbed(cluster, one.name, other.name, chance):
        yield


@fault
async def compact(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    """All history but the present."""
    await _compact(cluster, chance)
    yield


@fault
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


@fault
async def defragment(cluster: Cluster, chance: Random) -> AsyncIterator[None]:
    member = chance.choice(cluster.members)
    try:
        await member.ask("maintenance/defragment", {}, 30)
    except _NO_ANSWER as error:
        raise Skipped(f"{member.name}: {error}") from None
    yield


@fault
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


@fault
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


@fault
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
