"""Open answers on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl

import pytest
import trustme

from steersman.net.http import Request, Response, Stream, StreamResponse, chunk
from steersman.net.tls import client_ssl_context, server_ssl_context

TEXT = (("Content-Type", "text/plain"),)
GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


def streaming(run):
    return lambda request: StreamResponse(200, run, TEXT)


def dechunk(data: bytes) -> bytes:
    """The body of one complete chunked answer."""
    parts, rest = [], data.partition(b"\r\n\r\n")[2]
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if not int(size, 16):
            assert rest == b"\r\n"
            return b"".join(parts)
        parts.append(rest[: int(size, 16)])
        assert rest[int(size, 16) :][:2] == b"\r\n"
        rest = rest[int(size, 16) + 2 :]


async def test_chunks_and_the_end(start, talk) -> None:
    async def run(stream: Stream) -> None:
        stream.write(b"one ")
        stream.write(b"")  # would end the answer
        stream.write_chunk(chunk(b"two ") + chunk(b"three "))
        await asyncio.sleep(0.01)
        stream.write(b"four")

    server = await start(streaming(run))
    answer = await talk(server, LAST)
    assert b"Transfer-Encoding: chunked\r\n" in answer and b"Content-Length" not in answer
    assert dechunk(answer) == b"one two three four"


async def test_an_http_1_0_client_gets_plain_bytes(start, talk) -> None:
    async def run(stream: Stream) -> None:
        stream.write(b"one ")
        stream.write_chunk(chunk(b"two ") + chunk(b"three"))

    answer = await talk(await start(streaming(run)), b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b"one two three"
    assert b"chunked" not in head and b"Connection: close" in head


async def test_the_head_does_not_wait_for_data_and_the_connection_goes_on(start) -> None:
    go_on = asyncio.Event()

    async def run(stream: Stream) -> None:
        await go_on.wait()
        stream.write(b"x")

    server = await start(streaming(run))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for _ in range(2):
        go_on.clear()
        writer.write(GET)
        await reader.readuntil(b"\r\n\r\n")
        go_on.set()
        await reader.readuntil(b"1\r\nx\r\n0\r\n\r\n")
    writer.transport.abort()


async def test_requests_behind_a_stream_wait(start, talk) -> None:
    async def run(stream: Stream) -> None:
        await asyncio.sleep(0.02)
        stream.write(b"streamed")

    async def handle(request: Request) -> Response | StreamResponse:
        return StreamResponse(200, run) if request.path == "/stream" else Response(200, (), b"after")

    answer = await talk(await start(handle), GET.replace(b"/ ", b"/stream "), LAST)
    assert answer.index(b"streamed") < answer.index(b"0\r\n\r\n") < answer.index(b"after")


async def test_closed_when_the_client_goes(start) -> None:
    closed = asyncio.Event()

    async def run(stream: Stream) -> None:
        await asyncio.gather(stream.closed(), stream.closed())
        stream.write(b"into the void")
        assert stream.buffered == 0
        await stream.closed()
        closed.set()

    server = await start(streaming(run))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET)
    await reader.readuntil(b"\r\n\r\n")
    writer.close()
    async with asyncio.timeout(5):
        await closed.wait()


async def test_a_failing_stream_is_cut_short(start, talk, caplog) -> None:
    async def run(stream: Stream) -> None:
        stream.write(b"x")
        await asyncio.sleep(0.01)
        raise ValueError("broken")

    with caplog.at_level(logging.ERROR, "steersman.net"):
        answer = await talk(await start(streaming(run)), LAST)
    assert not answer.endswith(b"0\r\n\r\n")
    assert "broken" in caplog.text


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(params=["plain", "tls"])
def secure(request, authority: trustme.CA) -> tuple[object, object]:
    """The server's and the client's TLS contexts, or none."""
    if request.param == "plain":
        return None, None
    leaf = authority.issue_cert("127.0.0.1")
    key, cert = leaf.private_key_pem.bytes(), b"".join(part.bytes() for part in leaf.cert_chain_pems)
    return server_ssl_context(cert, key), client_ssl_context(authority.cert_pem.bytes())


async def test_a_slow_reader_is_seen_and_dropped(start, secure) -> None:
    """`buffered` grows by what the client does not take; abort() forgets it and ends the connection."""
    data, seen, ended = chunk(b"x" * 10_000), [], asyncio.Event()

    async def run(stream: Stream) -> None:
        while stream.buffered < 3_000_000:
            for _ in range(20):
                stream.write_chunk(data)
            seen.append(stream.buffered)
            await asyncio.sleep(0)
        stream.abort()
        assert stream.buffered == 0
        await stream.closed()
        ended.set()

    server_tls, client_tls = secure
    server = await start(streaming(run), ssl=server_tls)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=client_tls, limit=1000)
    writer.write(GET)
    await reader.readuntil(b"\r\n\r\n")
    async with asyncio.timeout(20):
        await ended.wait()
    assert 3_000_000 <= seen[-1] < 3_500_000
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        while True:
            await reader.readexactly(1000)
    writer.transport.abort()


async def test_a_slow_reader_that_catches_up_gets_all(start, secure) -> None:
    async def run(stream: Stream) -> None:
        for number in range(3000):
            stream.write(b"%06d" % number + b"." * 2000)
        await asyncio.sleep(0)
        stream.write(b"y" * 2_000_000)

    server_tls, client_tls = secure
    server = await start(streaming(run), ssl=server_tls)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=client_tls, limit=1000)
    writer.write(LAST)
    await asyncio.sleep(0.05)
    body = dechunk(await reader.read())
    assert body == b"".join(b"%06d" % number + b"." * 2000 for number in range(3000)) + b"y" * 2_000_000
    writer.transport.abort()


async def test_one_write_for_many_chunks(start, authority: trustme.CA) -> None:
    """What is written in one turn of the loop shares TLS records."""
    sizes: list[int] = []

    async def run(stream: Stream) -> None:
        for _ in range(100):
            stream.write(b"x" * 50)

    leaf = authority.issue_cert("127.0.0.1")
    key, cert = leaf.private_key_pem.bytes(), b"".join(part.bytes() for part in leaf.cert_chain_pems)
    server = await start(streaming(run), ssl=server_ssl_context(cert, key))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_ssl_context(authority.cert_pem.bytes()).wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            writer.write(outgoing.read())
            incoming.write(await reader.read(65536))
    tls.write(LAST)
    writer.write(outgoing.read())
    records, plain = b"", b""
    while not plain.endswith(b"0\r\n\r\n"):
        received = await reader.read(65536)
        records += received
        incoming.write(received)
        with contextlib.suppress(ssl.SSLWantReadError):
            while record := tls.read(1 << 20):
                plain += record
    while records:
        sizes.append(int.from_bytes(records[3:5], "big"))
        records = records[5 + sizes[-1] :]
    writer.transport.abort()
    assert len([size for size in sizes if size > 40]) <= 6  # tickets, head and data, end: not a record per chunk
