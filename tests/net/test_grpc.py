"""gRPC calls, to a scripted server made with another implementation of HTTP/2."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
import trustme
from h2.errors import ErrorCodes
from h2.events import StreamEnded, StreamReset

from steersman.net.grpc import Channel, Code
from steersman.net.tls import client_ssl_context, server_ssl_context

from .http2_peer import HEADERS, PATH, PATIENCE, Server, call, failure, framed, served, works


async def test_a_call_as_the_server_sees_it(server: Server, channel: Channel) -> None:
    metadata = (("token", "x" * 200), ("hasleader", "true"))
    asking = asyncio.create_task(channel.unary(PATH, b"what?", timeout=PATIENCE, metadata=metadata))
    peer = await server.peer()
    number = await peer.asked()
    assert peer.headers(number) == [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", PATH),
        (":authority", f"127.0.0.1:{server.port}"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", "steersman"),
        *metadata,
    ]
    assert peer.body(number) == framed(b"what?")
    peer.answer(number, b"that")
    assert await asking == b"that"
    await works(channel, server)
    assert [each for each in peer.events if isinstance(each, StreamReset)] == []


async def test_a_message_may_be_empty(server: Server, channel: Channel) -> None:
    asking = call(channel, b"")
    peer = await server.peer()
    number = await peer.asked()
    assert peer.body(number) == framed(b"")
    peer.answer(number, b"")
    assert await asking == b""


async def test_messages_in_both_directions(server: Server, channel: Channel) -> None:
    stream = await channel.stream(PATH)
    peer = await server.peer()
    number = await peer.began()
    stream.write(b"1")
    peer.begin(number)
    peer.say(number, b"one", b"", b"eins")
    assert [await stream.read() for _ in range(3)] == [b"one", b"", b"eins"]
    reading = asyncio.create_task(stream.read())
    stream.write(b"2", last=True)
    await peer.event(StreamEnded, number)
    assert peer.body(number) == framed(b"1", b"2")
    peer.say(number, b"two")
    assert await reading == b"two"
    peer.end(number)
    assert [await stream.read(), await stream.read()] == [None, None]


@pytest.mark.parametrize(
    ("said", "code", "details"),
    [
        ({"grpc-status": "5", "grpc-message": "no such"}, Code.NOT_FOUND, "no such"),
        ({"grpc-status": "14"}, Code.UNAVAILABLE, "unavailable"),
        ({"grpc-status": "3", "grpc-message": "caf%C3%A9 100%25 %zz%"}, Code.INVALID_ARGUMENT, "café 100% %zz%"),
        ({"grpc-status": "99", "grpc-message": "new"}, Code.UNKNOWN, "new"),
        ({"grpc-status": "+0"}, Code.UNKNOWN, "unknown"),
        ({}, Code.UNKNOWN, "it answers as a web server does (HTTP 200)"),
        ({":status": "503", "server": "proxy"}, Code.UNKNOWN, "it answers as a web server does (HTTP 503)"),
        ({":status": "503", "grpc-status": "7"}, Code.PERMISSION_DENIED, "permission_denied"),
    ],
)
async def test_answers_that_are_failures(
    said: dict[str, str], code: Code, details: str, server: Server, channel: Channel
) -> None:
    """In the only headers, and in trailers."""
    asking = call(channel)
    peer = await server.peer()
    peer.h2.send_headers(await peer.asked(), [*{":status": "200", **said}.items()], end_stream=True)
    peer.flush()
    error = await failure(asking)
    assert (error.code, error.details, error.untouched) == (code, details, False)

    stream = await channel.stream(PATH)
    number = await peer.began()
    peer.h2.send_headers(number, [(":status", said.get(":status", "200"))])
    peer.say(number, b"first")
    trailers = [(name, value) for name, value in said.items() if name != ":status"]
    peer.h2.send_headers(number, trailers or [("x", "y")], end_stream=True)
    peer.flush()
    assert await stream.read() == b"first"
    error = await failure(stream.read())
    assert (error.code, error.details) == (code, details)


@pytest.mark.parametrize("messages", [(), (b"a", b"b")])
async def test_a_call_has_one_answer(messages: tuple[bytes, ...], server: Server, channel: Channel) -> None:
    asking = call(channel)
    peer = await server.peer()
    number = await peer.asked()
    peer.begin(number)
    peer.h2.send_data(number, framed(*messages))
    peer.end(number)
    error = await failure(asking)
    assert (error.code, error.untouched) == (Code.INTERNAL, False)


async def test_no_trailers(server: Server, channel: Channel) -> None:
    """The end of the data, with data and without, is an end of the call, but no status."""
    for last in (framed(b"all"), b""):
        asking = call(channel)
        peer = await server.peer()
        number = await peer.asked()
        peer.begin(number)
        peer.h2.send_data(number, last, end_stream=True)
        peer.flush()
        assert (await failure(asking)).code is Code.UNKNOWN


async def test_what_breaks_a_message_fails_its_call_alone(server: Server, channel: Channel) -> None:
    calls = [call(channel) for _ in range(4)]
    peer = await server.peer()
    cut, packed, both, good = [await peer.asked() for _ in calls]
    for number in (cut, packed, both, good):
        peer.begin(number)
    peer.h2.send_data(cut, framed(b"whole")[:-1])
    peer.end(cut)
    peer.h2.send_data(packed, b"\1\0\0\0\4gzip")
    peer.h2.send_data(both, b"\1\0\0\0\4gzip", end_stream=True)
    peer.flush()
    for asking, details in zip(calls[:3], ("cut off", "compresses", "compresses"), strict=True):
        error = await failure(asking)
        assert (error.code, error.untouched) == (Code.UNAVAILABLE, False) and details in error.details
    assert await peer.was_reset(packed) == ErrorCodes.CANCEL
    peer.say(good, b"good")
    peer.end(good)
    assert await calls[3] == b"good"


async def test_large_messages(server: Server, channel: Channel) -> None:
    """Far more than all windows, both ways; other calls pass."""
    large = b"0123456789abcdef" * (1 << 20)
    asking = call(channel, large)
    peer = await server.peer()
    number = await peer.asked()
    assert peer.body(number) == framed(large)
    peer.begin(number)
    pouring = asyncio.create_task(peer.pour(number, framed(large)))
    await works(channel, server)
    await pouring
    peer.end(number)
    assert await asking == large


async def test_who_does_not_read_is_not_sent_more(server: Server, channel: Channel) -> None:
    stream = await channel.stream(PATH)
    peer = await server.peer()
    number = await peer.began()
    message = bytes(60_000)
    peer.begin(number)
    pouring = asyncio.create_task(peer.pour(number, framed(message) * 150))
    await peer.until(lambda: peer.h2.local_flow_control_window(number) == 0)
    await works(channel, server)
    assert not pouring.done()
    for _ in range(150):
        assert await stream.read() == message
    await pouring
    peer.end(number)
    assert await stream.read() is None


async def test_a_reader_that_is_cancelled_takes_nothing_along(server: Server, channel: Channel) -> None:
    stream = await channel.stream(PATH)
    peer = await server.peer()
    number = await peer.began()
    peer.begin(number)
    reading = asyncio.create_task(stream.read())
    await asyncio.sleep(0)
    reading.cancel()
    peer.say(number, b"1", b"2")
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert [await stream.read(), await stream.read()] == [b"1", b"2"]


async def test_a_stream_that_is_cancelled(server: Server, channel: Channel) -> None:
    stream = await channel.stream(PATH)
    peer = await server.peer()
    number = await peer.began()
    reading = asyncio.create_task(stream.read())
    await asyncio.sleep(0)
    stream.cancel()
    assert (await failure(reading)).details == "the call was cancelled"
    assert await peer.was_reset(number) == ErrorCodes.CANCEL
    stream.cancel()
    stream.write(b"said to nobody")
    await works(channel, server)


async def test_no_answer_in_time(server: Server, channel: Channel) -> None:
    await works(channel, server)
    error = await failure(call(channel, timeout=0.05))
    assert (error.code, error.untouched) == (Code.DEADLINE_EXCEEDED, False)
    peer = await server.peer()
    assert await peer.was_reset(await peer.began()) == ErrorCodes.CANCEL
    await works(channel, server)


async def test_a_call_that_is_cancelled(server: Server, channel: Channel) -> None:
    asking = call(channel)
    peer = await server.peer()
    number = await peer.asked()
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    assert await peer.was_reset(number) == ErrorCodes.CANCEL


async def test_a_server_that_does_not_greet(server: Server, channel: Channel) -> None:
    """Who gives up has called nobody; the connection is still made for others."""
    server.greets = False
    soon, cancelled, late = call(channel, timeout=0.05), call(channel), call(channel)
    error = await failure(soon)
    assert (error.code, error.untouched) == (Code.DEADLINE_EXCEEDED, True)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    peer = await server.peer()
    peer.greet()
    number = await peer.asked()
    peer.answer(number, b"late")
    assert await late == b"late"
    assert len(server.peers) == 1 and number == 1


async def test_a_connection_that_takes_too_long(server: Server) -> None:
    server.greets = False
    channel = Channel("127.0.0.1", server.port, None, connect_within=0.05)
    errors = await asyncio.gather(*(failure(call(channel)) for _ in range(3)))
    assert {(each.code, each.untouched) for each in errors} == {(Code.UNAVAILABLE, True)}
    for peer in server.peers:
        await peer.until_lost()
    await channel.close()


@pytest.mark.parametrize("greets", [True, False])
async def test_a_connection_that_is_lost(greets: bool, server: Server, channel: Channel) -> None:
    server.greets = greets
    calls = [call(channel), call(channel)]
    peer = await server.peer()
    if greets:
        [await peer.asked() for _ in calls]
    peer.transport.abort()
    for asking in calls:
        error = await failure(asking)
        assert (error.code, error.untouched) == (Code.UNAVAILABLE, not greets)
    server.greets = True
    await works(channel, server, place=1)


async def test_nobody_listens() -> None:
    async with served() as server:
        port = server.port
    channel = Channel("127.0.0.1", port, None, connect_within=PATIENCE)
    error = await failure(call(channel))
    assert (error.code, error.details, error.untouched) == (Code.UNAVAILABLE, "connection refused", True)
    await channel.close()


async def test_no_such_host() -> None:
    for host in ("no-such-host.invalid", "a..b"):
        channel = Channel(host, 1, None, connect_within=PATIENCE)
        error = await failure(call(channel))
        assert (error.code, error.untouched) == (Code.UNAVAILABLE, True)
        await channel.close()


async def test_close_ends_all(server: Server) -> None:
    """Those that run, those that wait for a connection, and those that come too late."""
    channel = Channel("127.0.0.1", server.port, None, connect_within=PATIENCE)
    running = call(channel)
    peer = await server.peer()
    await peer.asked()
    peer.leave(1)
    await peer.answers()
    server.greets = False
    waiting = call(channel)
    await server.peer(1)
    before = asyncio.all_tasks()
    await channel.close()
    assert (await failure(running)).untouched is False
    assert (await failure(waiting)).untouched is True
    assert (await failure(call(channel))).details == "the connection was closed"
    assert not asyncio.all_tasks() - before
    for each in server.peers:
        await each.until_lost()
    await channel.close()


async def test_nothing_is_left(server: Server) -> None:
    channel = Channel("127.0.0.1", server.port, None, connect_within=PATIENCE)
    await works(channel, server)
    [connection] = [weakref.ref(each) for each in channel._connections()]
    await channel.close()
    await (await server.peer()).until_lost()
    del channel
    gc.collect()
    assert connection() is None, "a timer, or a task, knows it still"


async def test_tls() -> None:
    ca = trustme.CA()
    leaf = ca.issue_cert("127.0.0.1")
    accepted = server_ssl_context(leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes())
    accepted.set_alpn_protocols(["http/1.1", "h2"])
    trusting = client_ssl_context(ca.cert_pem.bytes(), protocol="h2")
    async with served(accepted) as server:
        channel = Channel("127.0.0.1", server.port, trusting, connect_within=PATIENCE)
        large = bytes(1 << 20)
        asking = call(channel, large)
        peer = await server.peer()
        number = await peer.asked()
        assert peer.body(number) == framed(large)
        assert (":scheme", "https") in peer.headers(number)
        assert peer.transport.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        peer.begin(number)
        await peer.pour(number, framed(large))
        peer.end(number)
        assert await asking == large
        await works(channel, server)
        await channel.close()
        await peer.until_lost()

        for context, words in (
            (client_ssl_context(trustme.CA().cert_pem.bytes(), protocol="h2"), "CERTIFICATE_VERIFY_FAILED"),
            (None, ""),
        ):
            channel = Channel("127.0.0.1", server.port, context, connect_within=PATIENCE)
            error = await failure(call(channel))
            assert (error.code, error.untouched) == (Code.UNAVAILABLE, True) and words in error.details
            await channel.close()


async def test_a_server_without_tls(server: Server) -> None:
    channel = Channel("127.0.0.1", server.port, client_ssl_context(protocol="h2"), connect_within=PATIENCE)
    error = await failure(call(channel))
    assert (error.code, error.untouched) == (Code.UNAVAILABLE, True)
    await channel.close()
    server.faults.clear()  # h2 saw a handshake


async def test_closed_while_it_shakes_hands() -> None:
    async with served() as server:
        server.greets = False
        channel = Channel("127.0.0.1", server.port, client_ssl_context(protocol="h2"), connect_within=PATIENCE)
        asking = call(channel)
        await server.peer()
        await channel.close()
        assert (await failure(asking)).untouched is True
        server.faults.clear()


async def test_a_call_that_is_reset(server: Server, channel: Channel) -> None:
    """REFUSED_STREAM says that nothing was done, unless something has been said already."""
    for code, said, untouched in (
        (ErrorCodes.REFUSED_STREAM, False, True),
        (ErrorCodes.REFUSED_STREAM, True, False),
        (ErrorCodes.CANCEL, False, False),
        (ErrorCodes.NO_ERROR, True, False),
        (ErrorCodes.ENHANCE_YOUR_CALM, False, False),
    ):
        asking = call(channel)
        peer = await server.peer()
        number = await peer.asked()
        if said:
            peer.h2.send_headers(number, HEADERS)
        peer.reset(number, code)
        error = await failure(asking)
        assert (error.code, error.untouched) == (Code.UNAVAILABLE, untouched)
    await works(channel, server)
