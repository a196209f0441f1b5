"""HTTP/2 by its frames: flow control, headers, and what may not come."""

from __future__ import annotations

import asyncio

import hpack
import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from steersman.net.grpc import Channel, Code
from steersman.net.http2 import frames

from .http2_peer import FOR_EVER, HEADERS, PATH, PATIENCE, Server, begun, call, failure, framed, works

TRAILERS = (("grpc-status", "0"),)


def block(*headers: tuple[str, str]) -> bytes:
    return hpack.Encoder().encode(headers)


# Flow control.


async def test_windows_that_shrink(server: Server, channel: Channel) -> None:
    """A window below nothing is filled up first; h2 fails what is more than it allowed."""
    server.pays = False
    large = bytes(range(256)) * 1024
    stream = await channel.stream(PATH)
    peer = await server.peer()
    number = await peer.began()
    stream.write(large, last=True)
    await peer.until(lambda: len(peer.body(number)) == frames.DEFAULT_WINDOW)
    peer.change(INITIAL_WINDOW_SIZE=1_000)
    await peer.answers()
    for more in (frames.DEFAULT_WINDOW, 1):
        peer.h2.increment_flow_control_window(more)
        peer.h2.increment_flow_control_window(more, number)
        peer.flush()
    await peer.until(lambda: len(peer.body(number)) == frames.DEFAULT_WINDOW + 1_001)
    peer.change(INITIAL_WINDOW_SIZE=1 << 20)
    await peer.answers()
    assert len(peer.body(number)) == 2 * frames.DEFAULT_WINDOW + 1
    peer.h2.increment_flow_control_window(1 << 20)
    peer.flush()
    await peer.until(lambda: len(peer.body(number)) == len(large) + 5)
    assert peer.body(number) == framed(large)
    peer.begin(number)
    peer.end(number)
    assert await stream.read() is None


async def test_small_calls_pass_one_that_waits_for_its_window(server: Server, channel: Channel) -> None:
    server.pays = False
    asking = call(channel, bytes(100_000))
    peer = await server.peer()
    number = await peer.began()
    await peer.until(lambda: len(peer.body(number)) == frames.DEFAULT_WINDOW)
    peer.h2.increment_flow_control_window(100)
    peer.h2.increment_flow_control_window(100, number)
    peer.flush()
    await peer.until(lambda: len(peer.body(number)) == frames.DEFAULT_WINDOW + 100)
    small = call(channel, b"small")
    second = await peer.began()
    await peer.answers()
    assert peer.body(second) == b""
    peer.h2.increment_flow_control_window(1 << 20)
    peer.flush()
    await peer.until(lambda: peer.body(second) == framed(b"small"))
    peer.answer(second, b"")
    await small
    peer.begin(number)
    peer.say(number, b"I have seen enough")
    peer.end(number)
    assert await asking == b"I have seen enough"
    assert await peer.was_reset(number) == ErrorCodes.NO_ERROR, "or the server would wait for the rest"
    await works(channel, server)


async def test_larger_frames(server: Server, channel: Channel) -> None:
    server.settings = {SettingCodes.MAX_FRAME_SIZE: 1 << 20, SettingCodes.INITIAL_WINDOW_SIZE: 1 << 20}
    await works(channel, server)
    peer = await server.peer()
    peer.h2.increment_flow_control_window(1 << 20)
    peer.flush()
    await peer.answers()
    asking = call(channel, bytes(500_000))
    number = await peer.asked()
    sizes = [
        len(each.data) for each in peer.events if getattr(each, "stream_id", 0) == number and hasattr(each, "data")
    ]
    assert sizes == [500_005]
    peer.answer(number, b"")
    await asking


async def test_data_with_padding_counts_as_a_whole(server: Server, channel: Channel) -> None:
    """h2 fails an update that is not for what it sent; far more than one window comes."""
    stream = await channel.stream(PATH)
    peer = await server.peer()
    number = await peer.began()
    peer.begin(number)
    message = bytes(16_000)
    data = framed(message)
    reading = asyncio.create_task(read_all(stream))
    for _ in range(600):
        await peer.until(lambda: peer.h2.local_flow_control_window(number) >= len(data) + 256)
        peer.h2.send_data(number, data, pad_length=255)
        peer.flush()
    peer.end(number)
    assert await reading == [message] * 600


async def read_all(stream) -> list[bytes]:
    found = []
    while (message := await stream.read()) is not None:
        found.append(message)
    return found


# Frames of all kinds.


async def test_what_may_come_and_says_nothing(server: Server, channel: Channel) -> None:
    asking, peer, number = await begun(channel, server)
    answer = framed(b"good")
    peer.raw(
        b"\0\0\7\x0b\xff\0\0\0\1unknown",
        PriorityFrame(number, depends_on=0, stream_weight=1),
        SettingsFrame(0, settings={0xF00: 7}),
        SettingsFrame(0, flags=["ACK"]),
        PingFrame(0, opaque_data=b"nobody's", flags=["ACK"]),
        RstStreamFrame(99, error_code=8),
        WindowUpdateFrame(99, window_increment=1),
        DataFrame(99, data=b"for nobody"),
        HeadersFrame(99, data=block(*HEADERS), flags=["END_HEADERS"]),
        HeadersFrame(
            *(number, block(*HEADERS)), flags=["END_HEADERS", "PADDED", "PRIORITY"], pad_length=9, stream_weight=3
        ),
        DataFrame(number, data=b""),
        DataFrame(number, data=b"", flags=["PADDED"], pad_length=7),
        *(DataFrame(number, data=answer[place : place + 1]) for place in range(len(answer))),
        HeadersFrame(number, data=block(*TRAILERS), flags=["END_HEADERS", "END_STREAM"]),
        RstStreamFrame(number, error_code=0),
    )
    assert await asking == b"good"


async def test_headers_in_many_frames(server: Server, channel: Channel) -> None:
    """Every byte in a frame of its own; END_STREAM is a flag of the first."""
    asking, peer, number = await begun(channel, server)
    headers, trailers = block(*HEADERS, ("x", "y" * 300)), block(*TRAILERS)
    peer.raw(HeadersFrame(number, data=b""))
    peer.raw(*(ContinuationFrame(number, data=headers[place : place + 1]) for place in range(len(headers))))
    peer.raw(ContinuationFrame(number, data=b"", flags=["END_HEADERS"]), DataFrame(number, data=framed(b"good")))
    peer.raw(HeadersFrame(number, data=trailers[:1], flags=["END_STREAM"]))
    peer.raw(ContinuationFrame(number, data=trailers[1:], flags=["END_HEADERS"]))
    assert await asking == b"good"


async def test_headers_that_need_many_frames(server: Server, channel: Channel) -> None:
    metadata = (("token", "x" * 40_000),)
    asking = asyncio.create_task(channel.unary(PATH, b"?", timeout=PATIENCE, metadata=metadata))
    peer = await server.peer()
    number = await peer.asked()
    assert metadata[0] in peer.headers(number)
    peer.answer(number, b"")
    await asking


async def test_headers_mean_what_they_mean_to_their_sender(server: Server, channel: Channel) -> None:
    """With a table of headers, though none is allowed, without, and with one again: never what was remembered."""
    encoder = hpack.Encoder()
    for place, size in enumerate((4096, 0, 0, 4096, 4096, 0, 4096)):
        encoder.header_table_size = size
        for status in ("5", "7", "5"):
            asking, peer, number = await begun(channel, server)
            said = [*HEADERS, ("grpc-status", status), ("grpc-message", f"in {place % 2}")]
            data = encoder.encode(said)
            peer.raw(HeadersFrame(number, data=data, flags=["END_HEADERS", "END_STREAM"]))
            error = await failure(asking)
            assert (error.code, error.details) == (Code(int(status)), f"in {place % 2}")
    assert len(server.peers) == 1


GARBAGE: dict[str, bytes | Frame] = {
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "an alert of TLS": b"\x15\x03\x01\x00\x02\x02\x0a" + bytes(9),
    "a frame that is too large": b"\x00\x40\x01\x00\x00\x00\x00\x00\x01",
    "settings of 7 bytes": b"\0\0\7\4\0\0\0\0\0" + bytes(7),
    "a ping of 7 bytes": b"\0\0\7\6\0\0\0\0\0" + bytes(7),
    "a reset of 3 bytes": b"\0\0\3\3\0\0\0\0\1" + bytes(3),
    "an update of 5 bytes": b"\0\0\5\x08\0\0\0\0\0" + bytes(5),
    "a farewell of 2 bytes": b"\0\0\2\7\0\0\0\0\0" + bytes(2),
    "a window that is too large": WindowUpdateFrame(0, window_increment=FOR_EVER),
    "a window of a call that is too large": WindowUpdateFrame(1, window_increment=FOR_EVER),
    "an initial window that is too large": SettingsFrame(0, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 1 << 31}),
    "frames that are too small": SettingsFrame(0, settings={SettingsFrame.MAX_FRAME_SIZE: 1}),
    "a push": PushPromiseFrame(1, promised_stream_id=2, data=block(*HEADERS), flags=["END_HEADERS"]),
    "nothing that goes on": ContinuationFrame(1, data=block(*HEADERS), flags=["END_HEADERS"]),
    "headers that are none": HeadersFrame(1, data=b"\xff\xff\xff\xff", flags=["END_HEADERS"]),
    "headers with a table that is too large": HeadersFrame(1, data=b"\x3f\xe1\xff\x03", flags=["END_HEADERS"]),
    "headers that are not text": HeadersFrame(1, data=b"\0\1x\1\xff", flags=["END_HEADERS"]),
    "headers that are interrupted": HeadersFrame(1, data=block(*HEADERS)).serialize() + DataFrame(1).serialize(),
    "headers without end": HeadersFrame(1).serialize() + ContinuationFrame(1, data=bytes(16_000)).serialize() * 6,
    "padding of nothing": b"\0\0\0\0\x08\0\0\0\1",
    "more padding than there is": b"\0\0\3\0\x08\0\0\0\1\3ab",
    "a priority that is cut off": b"\0\0\3\1\x24\0\0\0\1abc",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
async def test_what_breaks_the_protocol(garbage: bytes | Frame, server: Server, channel: Channel) -> None:
    """All that runs fails, and may have been carried out; the next call has a new connection."""
    asking, peer, _ = await begun(channel, server)
    second = call(channel)
    await peer.asked()
    peer.raw(garbage)
    for each in (asking, second):
        error = await failure(each)
        assert (error.code, error.untouched) == (Code.UNAVAILABLE, False)
        assert "it broke the protocol" in error.details
    await peer.until_lost()
    await works(channel, server, place=1)


@pytest.mark.parametrize(
    "greeting",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", SettingsFrame(0, flags=["ACK"]), PingFrame(0), GoAwayFrame(0), b"no", b""],
    ids=["http1", "ack", "ping", "goaway", "short", "nothing"],
)
async def test_what_is_no_greeting(greeting: bytes | Frame, server: Server, channel: Channel) -> None:
    server.greets = False
    asking = call(channel)
    peer = await server.peer()
    peer.raw(greeting)
    peer.transport.close()
    error = await failure(asking)
    assert (error.code, error.untouched) == (Code.UNAVAILABLE, True)
