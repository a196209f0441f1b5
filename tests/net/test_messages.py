"""Streams over WebSockets: the handshake, a message for each event, pings, goodbyes, and what breaks the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from steersman.net.http import AnyHandler, Messages, Request, Response, Stream, StreamResponse
from steersman.net.messages import are_wanted, refusal

from .conftest import Start, Talk

HANDSHAKE = (
    b"GET /watch HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nOrigin: http://x\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
# The key and its answer are those of RFC 6455, section 1.3.
HEAD = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)
GOODBYE = b"\x88\x02\x03\xe8"
LINES = Messages(lambda data: data.splitlines(keepends=True), text=True)
WHOLE = Messages(lambda data: (data,), text=False)


def masked(kind: int, payload: bytes = b"", *, last: bool = True) -> bytes:
    """A client's frame."""
    mask = b"\x01\x02\x03\x04"
    size = len(payload)
    if size < 126:
        sizes = bytes([0x80 | size])
    elif size < 1 << 16:
        sizes = b"\xfe" + size.to_bytes(2, "big")
    else:
        sizes = b"\xff" + size.to_bytes(8, "big")
    body = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    return bytes([(0x80 if last else 0) | kind]) + sizes + mask + body


def serving(writes: Iterable[bytes], messages: Messages = LINES, *, stays: bool = False) -> AnyHandler:
    async def run(stream: Stream) -> None:
        for data in writes:
            stream.write(data)
        if stays:
            await stream.closed()

    async def handle(request: Request) -> Response | StreamResponse:
        if not are_wanted(request.headers):
            return Response(200, (), b"plain")
        return refusal(request.headers) or StreamResponse(101, run, messages=messages)

    return handle


async def conversation(start: Start, handler: AnyHandler, sent: list[bytes], until: bytes) -> bytes:
    """What a client reads that sends each piece by itself once the server has accepted it."""
    server = await start(handler)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        async with asyncio.timeout(60):
            writer.write(HANDSHAKE)
            assert await reader.readexactly(len(HEAD)) == HEAD
            for piece in sent:
                writer.write(piece)
                await writer.drain()
            return await reader.readuntil(until) if until else await reader.read()
    finally:
        writer.transport.abort()


async def test_each_line_is_a_message(start: Start, talk: Talk) -> None:
    server = await start(serving([b"one\ntwo\n", b"three\n"]))
    frames = b"\x81\x04one\n\x81\x04two\n\x81\x06three\n"
    assert await talk(server, HANDSHAKE) == HEAD + frames + GOODBYE


async def test_a_protocol_that_is_asked_for_is_agreed_to(start: Start, talk: Talk) -> None:
    server = await start(serving([]))
    asked = HANDSHAKE.replace(b"Origin:", b"Sec-WebSocket-Protocol: base64.binary.k8s.io\r\nOrigin:")
    agreed = HEAD.replace(b"\r\n\r\n", b"\r\nSec-WebSocket-Protocol: base64.binary.k8s.io\r\n\r\n")
    assert await talk(server, asked) == agreed + GOODBYE


@pytest.mark.parametrize(
    ("size", "head"),
    [
        (125, b"\x82\x7d"),
        (126, b"\x82\x7e\x00\x7e"),
        (65535, b"\x82\x7e\xff\xff"),
        (65536, b"\x82\x7f" + b"\x00" * 5 + b"\x01\x00\x00"),
    ],
)
async def test_sizes_of_messages(start: Start, talk: Talk, size: int, head: bytes) -> None:
    server = await start(serving([b"x" * size], WHOLE))
    assert await talk(server, HANDSHAKE) == HEAD + head + b"x" * size + GOODBYE


async def test_a_ping_is_answered(start: Start) -> None:
    assert await conversation(start, serving([], stays=True), [masked(9, b"hi")], b"hi") == b"\x8a\x02hi"


async def test_what_a_client_says_is_passed_over(start: Start) -> None:
    said = masked(1, b"text") + masked(2, b"b" * 70000) + masked(1, b"a" * 200, last=False) + masked(0, b"c")
    pieces = [said[at : at + 1000] for at in range(0, len(said), 1000)]
    ping = masked(9, b"p" * 100)
    pieces += [ping[at : at + 1] for at in range(len(ping))]
    assert await conversation(start, serving([], stays=True), pieces, b"p" * 100) == b"\x8a\x64" + b"p" * 100


async def test_a_clients_goodbye_ends_the_stream(start: Start) -> None:
    assert await conversation(start, serving([], stays=True), [masked(8, b"\x03\xe8")], b"") == GOODBYE


@pytest.mark.parametrize("frame", [b"\x81\x02hi", masked(9, b"x" * 126)], ids=["not masked", "a long ping"])
async def test_a_broken_protocol_ends_the_stream(start: Start, frame: bytes) -> None:
    assert await conversation(start, serving([], stays=True), [frame], b"") == b"\x88\x02\x03\xea" + GOODBYE


@pytest.mark.parametrize(
    ("without", "answer"),
    [
        (b"Origin: http://x\r\n", b"HTTP/1.1 403 "),
        (b"Sec-WebSocket-Version: 13\r\n", b"HTTP/1.1 400 "),
        (b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", b"HTTP/1.1 400 "),
        (b"Upgrade: websocket\r\n", b"HTTP/1.1 200 "),
    ],
)
async def test_handshakes_that_fail(start: Start, talk: Talk, without: bytes, answer: bytes) -> None:
    server = await start(serving([]))
    assert (await talk(server, HANDSHAKE.replace(without, b""), eof=True)).startswith(answer)


async def test_requests_after_one_that_is_not_upgraded(start: Start, talk: Talk) -> None:
    server = await start(serving([]))
    other = HANDSHAKE.replace(b"websocket", b"h2c")
    plain = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    assert (await talk(server, other + plain, eof=True)).count(b"\r\n\r\nplain") == 2
