"""What is told of a write, when members of etcd fail in all ways: to a scripted member."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from h2.errors import ErrorCodes

from steersman.store.conformance import fails
from steersman.store.etcd import messages as pb
from steersman.store.etcd.client import RANGE, TXN, EtcdClient
from steersman.store.etcd.settings import EtcdSettings
from steersman.store.interface import StoreError, StoreFull, StoreUnavailable, UnknownOutcome

from ..net.http2_peer import HEADERS, Peer, Server, framed, served

Step = Callable[[Peer, int], None]


def says(status: int, message: str) -> Step:
    """An answer that is a status alone."""

    def take(peer: Peer, number: int) -> None:
        trailers = [*HEADERS, ("grpc-status", str(status)), ("grpc-message", message)]
        peer.h2.send_headers(number, trailers, end_stream=True)
        peer.flush()

    return take


def lost(peer: Peer, number: int) -> None:
    peer.transport.abort()


def refused(peer: Peer, number: int) -> None:
    peer.reset(number, ErrorCodes.REFUSED_STREAM)


def left(peer: Peer, number: int) -> None:
    peer.leave(max(number - 2, 0))


def answers(*, succeeded: bool) -> Step:
    def take(peer: Peer, number: int) -> None:
        peer.begin(number)
        peer.say(number, pb.TxnResponse(succeeded=succeeded).SerializeToString())
        peer.end(number)

    return take


def cut_off(peer: Peer, number: int) -> None:
    peer.begin(number)
    peer.h2.send_data(number, framed(b"\0" * 9)[:-1])
    peer.end(number)


done = answers(succeeded=True)
as_before, changed = answers(succeeded=True), answers(succeeded=False)
WRITE = pb.TxnRequest(
    compare=[pb.Compare(target=pb.MOD, key=b"k", mod_revision=3)],
    success=[pb.RequestOp(request_put=pb.PutRequest(key=b"k", value=b"v"))],
)
FULL = says(8, "etcdserver: mvcc: database space exceeded")
DENIED = says(7, "etcdserver: permission denied")
NO_LEADER = says(14, "etcdserver: no leader")
CHANGED = says(14, "etcdserver: leader changed")


@pytest.fixture
async def member() -> AsyncIterator[Server]:
    async with served() as server:
        yield server


async def told(member: Server, *steps: Step, method=TXN, timeout: float = 60.0) -> object:
    """How a call ends whose attempts go so: a Reply, or a StoreError."""
    client = EtcdClient(EtcdSettings((f"127.0.0.1:{member.port}",), timeout=timeout))

    async def play() -> None:
        place = 0
        for step in steps:
            peer = await member.peer(place)
            step(peer, await peer.asked())
            place += step in (lost, left)

    playing = asyncio.create_task(play())
    try:
        return await client.call(method, WRITE if method is TXN else pb.RangeRequest(key=b"k"))
    except StoreError as error:
        return error
    finally:
        await playing
        await client.close()


@pytest.mark.parametrize(
    ("steps", "doubtful"),
    [
        ((done,), False),
        ((refused, done), False),
        ((left, done), False),
        ((NO_LEADER, refused, left, done), False),
        ((lost, done), True),
        ((CHANGED, done), True),
        ((cut_off, done), True),
        ((lost, refused, done), True),
    ],
)
async def test_a_reply_says_whether_an_attempt_is_in_doubt(
    member: Server, steps: tuple[Step, ...], doubtful: bool
) -> None:
    reply = await told(member, *steps)
    assert reply.message.succeeded and reply.doubtful is doubtful


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ((DENIED,), StoreUnavailable),
        ((refused, left, DENIED), StoreUnavailable),
        ((lost, DENIED), UnknownOutcome),
        ((CHANGED, refused, DENIED), UnknownOutcome),
        ((FULL, as_before), StoreFull),
        ((NO_LEADER, FULL, lost, as_before), StoreFull),
        ((FULL, changed), UnknownOutcome),
        ((FULL, DENIED), UnknownOutcome),
        ((FULL, FULL), UnknownOutcome),
        ((lost, FULL), UnknownOutcome),
        ((says(13, "grpc: error while marshaling"),), UnknownOutcome),
        ((says(15, "etcdserver: corrupt cluster"),), UnknownOutcome),
    ],
)
async def test_a_write_that_may_have_been_carried_out_is_not_told_as_refused(
    member: Server, steps: tuple[Step, ...], kind: type[StoreError]
) -> None:
    assert type(await told(member, *steps)) is kind


async def test_nothing_is_in_doubt_of_what_writes_nothing(member: Server) -> None:
    assert type(await told(member, lost, CHANGED, DENIED, method=RANGE)) is StoreUnavailable


async def test_nobody_was_asked() -> None:
    async with served() as server:
        port = server.port
    client = EtcdClient(EtcdSettings((f"127.0.0.1:{port}",), timeout=0.2))
    error = await fails(client.call(TXN, pb.TxnRequest()), StoreUnavailable)
    assert not isinstance(error, UnknownOutcome) and "connection refused" in str(error)
    await client.close()
