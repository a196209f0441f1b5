"""What a server says, cut anywhere, of many calls at once, broken off anywhere: no answer is mistaken for another."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded
from hyperframe.frame import GoAwayFrame
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.net.http2.call import ConnectionLost
from steersman.net.http2.connection import Connection
from steersman.net.http2.frames import encoded

from .http2_peer import HEADERS, framed

REQUEST = encoded(((":method", "POST"), (":scheme", "http"), (":path", "/a/B"), (":authority", "c")))
REFUSED = 7


@dataclass(frozen=True)
class Plan:
    """What becomes of a call: its messages, in frames of a size, and then trailers or a reset."""

    messages: tuple[bytes, ...]
    frame: int
    status: str = "0"
    reset: int | None = None
    refused: bool = False

    @property
    def steps(self) -> int:
        return 1 if self.refused else 2 + -(-len(framed(*self.messages)) // self.frame)

    def take(self, peer: H2Connection, number: int, step: int) -> None:
        if self.refused:
            peer.reset_stream(number, REFUSED)
        elif step == 0:
            peer.send_headers(number, HEADERS)
        elif step < self.steps - 1:
            peer.send_data(number, framed(*self.messages)[(step - 1) * self.frame : step * self.frame])
        elif self.reset is not None:
            peer.reset_stream(number, self.reset)
        else:
            peer.send_headers(number, [("grpc-status", self.status)], end_stream=True)


plans = st.builds(
    Plan,
    messages=st.lists(st.binary(max_size=40), max_size=4).map(tuple),
    frame=st.integers(1, 60),
    status=st.sampled_from(["0", "0", "5"]),
    reset=st.sampled_from([None, None, None, REFUSED, 8]),
    refused=st.sampled_from([False, False, False, True]),
)


class Wire(asyncio.Transport):
    """Bytes from the client, judged by h2; what h2 says is kept, to be cut."""

    def __init__(self) -> None:
        super().__init__()
        self.peer = H2Connection(H2Configuration(client_side=False))
        self.peer.initiate_connection()
        self.bodies: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.closed = False

    def write(self, data: bytes) -> None:
        for event in self.peer.receive_data(data):
            if isinstance(event, DataReceived):
                self.bodies[event.stream_id] = self.bodies.get(event.stream_id, b"") + event.data
            elif isinstance(event, StreamEnded):
                self.ended.add(event.stream_id)

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True


async def outcome(call: Any) -> tuple[list[bytes], Any]:
    """The messages that came, and the trailers or the failure."""
    found: list[bytes] = []
    try:
        while (message := await call.read()) is not None:
            found.append(message)
    except ConnectionLost as error:
        return found, error
    return found, call.headers


async def connected() -> tuple[Connection, Wire]:
    connection, wire = Connection(), Wire()
    connection.connection_made(wire)
    await asyncio.sleep(0)
    connection.data_received(wire.peer.data_to_send())
    await connection.ready
    return connection, wire


async def called(connection: Connection, plans: list[Plan]) -> list[asyncio.Task[tuple[list[bytes], Any]]]:
    tasks = []
    for place in range(len(plans)):
        call = await connection.open(REQUEST)
        call.write(b"%d" % place, last=True)
        tasks.append(asyncio.create_task(outcome(call)))
    await asyncio.sleep(0)
    return tasks


def as_planned(plan: Plan, found: list[bytes], end: Any) -> bool:
    if plan.refused:
        return found == [] and isinstance(end, ConnectionLost) and end.untouched
    if found != list(plan.messages):
        return False
    if plan.reset is not None:
        return isinstance(end, ConnectionLost) and not end.untouched
    return isinstance(end, dict) and end["grpc-status"] == plan.status


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """With a loop of its own, as the strategies' examples are no coroutines."""
    unseen: list[Any] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: unseen.append(context))
        await coroutine

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(watched())
    assert unseen == []


def said(wire: Wire, plans: list[Plan], order: list[int]) -> list[bytes]:
    """The frames of all answers, mixed in an order, and what h2 has to say besides; one element for each step."""
    left = dict.fromkeys(range(len(plans)), 0)
    found = [wire.peer.data_to_send()]
    while left:
        turn = order.pop() if order else 0
        place = sorted(left)[turn % len(left)]
        plans[place].take(wire.peer, 2 * place + 1, left[place])
        left[place] += 1
        if left[place] == plans[place].steps:
            del left[place]
        found.append(wire.peer.data_to_send())
    return found


numbers = st.lists(st.integers(0, 1 << 16), max_size=60)


@settings(max_examples=150)
@given(st.lists(plans, min_size=1, max_size=6), numbers, numbers)
def test_answers_that_come_in_any_pieces(plans: list[Plan], order: list[int], cuts: list[int]) -> None:
    async def play() -> None:
        connection, wire = await connected()
        tasks = await called(connection, plans)
        assert wire.bodies == {2 * place + 1: framed(b"%d" % place) for place in range(len(plans))}
        assert wire.ended == set(wire.bodies)
        for piece in pieces(b"".join(said(wire, plans, order)), cuts):
            connection.data_received(piece)
            await asyncio.sleep(0)
        for plan, task in zip(plans, tasks, strict=True):
            assert as_planned(plan, *await task)
        assert connection.usable and not connection.calls and not wire.closed
        connection.lose("the test is over")

    run(play())


@settings(max_examples=150)
@given(st.lists(plans, min_size=1, max_size=6), numbers, numbers, st.integers(0, 1 << 16), st.integers(-1, 6))
def test_answers_that_are_broken_off(plans: list[Plan], order: list[int], cuts: list[int], end: int, last: int) -> None:
    """A call whose answer has come in full has it, every other fails; untouched are those that were refused only, and
    those after the last one that the server says it has looked at, unless they have been answered in part."""

    async def play() -> None:
        connection, wire = await connected()
        tasks = await called(connection, plans)
        steps = said(wire, plans, order)
        data = b"".join(steps)
        heard = data[: end % (len(data) + 1)] if last < 0 else b"".join(steps[: end % (len(steps) + 1)])
        for piece in pieces(heard, cuts):
            connection.data_received(piece)
            await asyncio.sleep(0)
        began = {number for number, call in connection.calls.items() if call.headers}
        running = set(connection.calls)
        if last >= 0:
            connection.data_received(GoAwayFrame(0, last_stream_id=last).serialize())
        connection.connection_lost(ConnectionResetError(104, "reset"))
        assert wire.closed and not connection.usable
        for place, (plan, task) in enumerate(zip(plans, tasks, strict=True)):
            found, why = await task
            number = 2 * place + 1
            if number not in running:
                assert as_planned(plan, found, why)
                continue
            assert isinstance(why, ConnectionLost)
            assert found == list(plan.messages[: len(found)])
            assert not why.untouched or (last >= 0 and number > last and number not in began)

    run(play())


frames = st.builds(
    lambda kind, flags, number, payload: struct.pack(">BHBBI", 0, len(payload), kind, flags, number) + payload,
    *(st.integers(0, 11), st.integers(0, 255), st.sampled_from([0, 1, 3, 5, 2, 99]), st.binary(max_size=30)),
)


@settings(max_examples=200)
@given(st.lists(frames | st.binary(max_size=40), max_size=20), numbers)
def test_nonsense_ends_in_failures(nonsense: list[bytes], cuts: list[int]) -> None:
    """Whatever comes: no other exception, no call that hangs, and no answer that nobody gave."""

    async def play() -> None:
        connection, _ = await connected()
        tasks = await called(connection, [Plan((), 1)] * 3)
        for piece in pieces(b"".join(nonsense), cuts):
            connection.data_received(piece)
            await asyncio.sleep(0)
        connection.connection_lost(None)
        for task in tasks:
            async with asyncio.timeout(30):
                _, end = await task
            assert isinstance(end, ConnectionLost) or "grpc-status" not in end
        assert not connection.calls

    run(play())
