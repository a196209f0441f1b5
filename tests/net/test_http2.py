"""The client's end of HTTP/2, to a scripted server made with another implementation."""

from __future__ import annotations

import asyncio
import time

import pytest
from h2.errors import ErrorCodes
from h2.events import PingReceived, StreamReset
from h2.settings import SettingCodes

from steersman.net.grpc import CallFailed, Channel, Code
from steersman.net.http2 import connection, frames

from .http2_peer import FOR_EVER, HEADERS, PATH, Server, begun, call, failure, framed, works

TRAILERS = (("grpc-status", "0"),)


# Turns.


async def test_calls_wait_for_their_turn(server: Server, channel: Channel) -> None:
    server.settings = {SettingCodes.MAX_CONCURRENT_STREAMS: 2}
    calls = [call(channel, b"%d" % place) for place in range(7)]
    peer = await server.peer()
    for place in range(7):
        number = await peer.asked()
        assert peer.body(number) == framed(b"%d" % place), "the one that waits longest is the next"
        peer.answer(number, b"")
    await asyncio.gather(*calls)


async def test_more_turns(server: Server, channel: Channel) -> None:
    """None at all at first."""
    server.settings = {SettingCodes.MAX_CONCURRENT_STREAMS: 0}
    calls = [call(channel) for _ in range(3)]
    peer = await server.peer()
    await peer.answers()
    peer.change(MAX_CONCURRENT_STREAMS=2)
    first, second = await peer.asked(), await peer.asked()
    await peer.answers()
    peer.change(MAX_CONCURRENT_STREAMS=100)
    for number in (first, second, await peer.asked()):
        peer.answer(number, b"")
    await asyncio.gather(*calls)


async def test_who_no_longer_waits_takes_no_turn(server: Server, channel: Channel) -> None:
    server.settings = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}
    first = call(channel)
    peer = await server.peer()
    number = await peer.asked()
    cancelled, late, last = call(channel), call(channel, timeout=0.05), call(channel, b"last")
    error = await failure(late)
    assert (error.code, error.untouched) == (Code.DEADLINE_EXCEEDED, True)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    peer.answer(number, b"")
    await first
    number = await peer.asked()
    assert peer.body(number) == framed(b"last")
    peer.answer(number, b"")
    await last


async def test_a_turn_that_comes_with_a_cancellation_is_passed_on(server: Server, channel: Channel) -> None:
    server.settings = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}
    stream = await channel.stream(PATH)
    peer = await server.peer()
    await peer.began()
    next_one, last = call(channel), call(channel, b"last")
    await asyncio.sleep(0)
    stream.cancel()
    next_one.cancel()
    await asyncio.wait([next_one])
    assert next_one.cancelled()
    given_back = await peer.began()
    assert await peer.was_reset(given_back) == ErrorCodes.CANCEL
    assert peer.body(given_back) == b""
    number = await peer.asked()
    assert peer.body(number) == framed(b"last")
    peer.answer(number, b"")
    await last


async def test_who_waits_when_the_connection_ends_has_called_nobody(server: Server, channel: Channel) -> None:
    server.settings = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}
    running, peer, number = await begun(channel, server)
    waiting = call(channel)
    await peer.answers()
    peer.leave(number)
    assert (await failure(waiting)).untouched is True
    peer.answer(number, b"")
    await running


async def test_numbers_are_used_up(server: Server, channel: Channel) -> None:
    await works(channel, server)
    [only] = channel._connections()
    only._next = frames.LAST_ID  # two thousand million calls later
    running, peer, number = await begun(channel, server)
    assert number == frames.LAST_ID
    asking = call(channel)
    second = await server.peer(1)
    second.answer(await second.asked(), b"")
    await asking
    peer.answer(number, b"last")
    assert await running == b"last"
    await peer.until_lost()


# GOAWAY.


async def test_a_server_that_leaves_in_peace(server: Server, channel: Channel) -> None:
    """As grpc-go does it: first without a last call, then, when its ping is answered, with one."""
    stream = await channel.stream(PATH)
    peer = await server.peer()
    number = await peer.began()
    asking = call(channel)
    await peer.asked()
    peer.leave(FOR_EVER)
    await peer.answers()
    await works(channel, server, place=1)
    peer.leave(number)
    error = await failure(asking)
    assert (error.code, error.untouched) == (Code.UNAVAILABLE, True)
    peer.begin(number)
    peer.say(number, b"still here")
    assert await stream.read() == b"still here"
    assert not peer.lost
    peer.end(number)
    assert await stream.read() is None
    await peer.until_lost()
    await works(channel, server, place=1)
    assert len(server.peers) == 2


async def test_a_server_that_leaves_when_nothing_runs(server: Server, channel: Channel) -> None:
    await works(channel, server)
    peer = await server.peer()
    peer.leave(FOR_EVER)
    await peer.until_lost()
    await works(channel, server, place=1)


async def test_a_server_that_leaves_and_goes(server: Server, channel: Channel) -> None:
    """What it has looked at may have been carried out; the rest has not, unless it has been answered in part."""
    calls = [call(channel) for _ in range(3)]
    peer = await server.peer()
    looked_at, _, answered = [await peer.asked() for _ in calls]
    peer.begin(answered)
    peer.leave(looked_at, ErrorCodes.ENHANCE_YOUR_CALM)
    assert [(await failure(asking)).untouched for asking in calls[1:]] == [True, False]
    peer.transport.abort()
    assert (await failure(calls[0])).untouched is False


# Whether the other end is there.


async def test_pings_are_answered(server: Server, channel: Channel) -> None:
    await works(channel, server)
    await (await server.peer()).answers()


async def test_who_is_silent_is_asked(server: Server, channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not more often than agreed on, and not while nothing is called."""
    monkeypatch.setattr(connection, "_KEEPALIVE", 0.05)
    monkeypatch.setattr(connection, "_ACK_WITHIN", 2.0)
    await works(channel, server)
    peer = await server.peer()
    await asyncio.sleep(0.2)
    assert [each for each in peer.events if isinstance(each, PingReceived)] == []
    started = time.monotonic()
    asking, peer, number = await begun(channel, server)
    await peer.until(lambda: len([each for each in peer.events if isinstance(each, PingReceived)]) == 2)
    assert time.monotonic() - started > 2
    peer.answer(number, b"at last")
    assert await asking == b"at last"


async def test_who_does_not_answer_is_gone(server: Server, channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_KEEPALIVE", 0.05)
    asking, peer, _ = await begun(channel, server)
    peer.transport.pause_reading()
    monkeypatch.setattr(connection, "_ACK_WITHIN", 0.05)
    error = await failure(asking)
    assert (error.code, error.details, error.untouched) == (Code.UNAVAILABLE, "it does not answer", False)


async def test_silence_since_a_call_began(server: Server, channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call without an answer has the connection given up, if nothing else came either."""
    monkeypatch.setattr(connection, "_DOUBTFUL", 0.02)
    await works(channel, server)
    peer = await server.peer()
    peer.transport.pause_reading()
    others = call(channel)
    assert (await failure(call(channel, timeout=0.1))).code is Code.DEADLINE_EXCEEDED
    assert (await failure(others)).details == "it does not answer"
    await works(channel, server, place=1)


async def test_an_answer_to_another_call_is_a_sign_of_life(
    server: Server, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_DOUBTFUL", 0.02)
    await works(channel, server)
    slow = call(channel, timeout=0.3)
    peer = await server.peer()
    await peer.asked()
    await works(channel, server)
    assert (await failure(slow)).code is Code.DEADLINE_EXCEEDED
    await works(channel, server)
    assert len(server.peers) == 1


async def test_a_stream_that_its_server_ends_counts_no_more(server: Server, channel: Channel) -> None:
    server.settings = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}
    stream = await channel.stream(PATH)
    peer = await server.peer()
    number = await peer.began()
    peer.h2.send_headers(number, [*HEADERS, *TRAILERS], end_stream=True)
    peer.flush()
    assert await stream.read() is None
    assert (await peer.event(StreamReset, number)).error_code == ErrorCodes.NO_ERROR
    stream.write(b"too late", last=True)
    stream.cancel()
    await works(channel, server)


async def test_errors_are_raised_anew(server: Server, channel: Channel) -> None:
    stream = await channel.stream(PATH)
    (await server.peer()).transport.abort()
    for _ in range(2):
        with pytest.raises(CallFailed):
            await stream.read()
