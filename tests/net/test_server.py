"""Starting, stopping, listening, threads."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.request

import pytest

from steersman.net.http import Request, Response, Stream, StreamResponse
from steersman.net.listen import ListenError, listen
from steersman.net.server import Server, serve_in_thread

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


async def hello(request: Request) -> Response:
    return Response(200, (), b"hello")


async def test_ports_and_urls(start) -> None:
    server = await start(hello)
    assert server.url == f"http://127.0.0.1:{server.port}"
    everywhere = await start(hello, host="0.0.0.0")
    assert everywhere.url == f"http://127.0.0.1:{everywhere.port}"
    named = await start(hello, host="localhost")
    assert named.url == f"http://localhost:{named.port}"
    assert await asyncio.to_thread(fetch, named.url) == b"hello"


@pytest.mark.parametrize(("host", "url_host"), [("::1", "[::1]"), ("::", "[::1]")])
async def test_ipv6(start, host: str, url_host: str) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        server = await start(hello, host=host)
    except ListenError as error:
        pytest.skip(str(error))
    assert server.url == f"http://{url_host}:{server.port}"
    assert await asyncio.to_thread(fetch, server.url) == b"hello"
    if host == "::":
        assert await asyncio.to_thread(fetch, f"http://127.0.0.1:{server.port}") == b"hello"


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read()


async def test_a_taken_port(start) -> None:
    server = await start(hello)
    with pytest.raises(ListenError, match=f"^cannot listen on 127.0.0.1:{server.port}: Address already in use$"):
        await start(hello, port=server.port)


@pytest.mark.parametrize(
    ("host", "port", "message"),
    [
        ("192.0.2.1", 0, r"cannot listen on 192\.0\.2\.1:0: Cannot assign requested address"),
        ("no such host", 1, r"cannot listen on no such host:1: .+"),
        ("127.0.0.1", 70000, r"cannot listen on 127\.0\.0\.1:70000: .+"),
    ],
)
async def test_impossible_addresses(host: str, port: int, message: str) -> None:
    with pytest.raises(ListenError, match=f"^{message}$"):
        await listen(host, port)


async def test_a_port_is_free_again_after_stop(start) -> None:
    server = await start(hello)
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    await server.stop()
    again = await start(hello, port=server.port)
    assert await asyncio.to_thread(fetch, again.url) == b"hello"
    writer.transport.abort()


async def test_stop_ends_idle_connections_and_takes_no_more(start) -> None:
    server: Server = await start(hello)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET)
    await reader.readuntil(b"hello")
    async with asyncio.timeout(5):
        await server.stop(grace=60)
        assert await reader.read() == b""
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", server.port)
    writer.transport.abort()


async def test_stop_waits_for_a_running_request_and_closes_after_it(start) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handle(request: Request) -> Response:
        begun.set()
        await go_on.wait()
        return Response(200, (), b"finished")

    server: Server = await start(handle)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET + GET)
    await begun.wait()
    stopping = asyncio.ensure_future(server.stop(grace=60))
    assert not (await asyncio.wait([stopping], timeout=0.02))[0]
    go_on.set()
    async with asyncio.timeout(5):
        answer = await reader.read()
        await stopping
    assert b"Connection: close\r\n" in answer and answer.endswith(b"finished")
    assert answer.count(b"HTTP/1.1") == 1
    writer.transport.abort()


async def test_stop_waits_for_a_body_that_is_on_its_way(start) -> None:
    async def handle(request: Request) -> Response:
        return Response(200, (), request.body)

    server: Server = await start(handle)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
    await reader.readuntil(b"100 Continue\r\n\r\n")
    stopping = asyncio.ensure_future(server.stop(grace=60))
    await asyncio.sleep(0)
    writer.write(b"late")
    async with asyncio.timeout(5):
        assert (await reader.read()).endswith(b"late")
        await stopping
    writer.transport.abort()


async def test_stop_ends_streams(start) -> None:
    async def run(stream: Stream) -> None:
        await stream.closed()
        stream.write(b"bye")

    server: Server = await start(lambda request: StreamResponse(200, run))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET)
    await reader.readuntil(b"\r\n\r\n")
    async with asyncio.timeout(5):
        await server.stop(grace=60)
        assert await reader.read() == b"3\r\nbye\r\n0\r\n\r\n"
    writer.transport.abort()


@pytest.mark.parametrize("kind", ["request", "stream"])
async def test_stop_cancels_what_takes_too_long(start, caplog, kind: str) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(stream: Stream | None = None) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def handle(request: Request) -> Response | StreamResponse:
        if kind == "stream":
            return StreamResponse(200, hang)
        await hang()
        return Response(200)

    server: Server = await start(handle)
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET)
    await begun.wait()
    async with asyncio.timeout(5):
        await asyncio.gather(server.stop(grace=0.05), server.stop(grace=0.05))
    assert cancelled.is_set()
    assert server.connections == 0
    writer.transport.abort()


async def test_the_server_as_a_context_manager() -> None:
    async with await Server.start(hello) as server:
        assert await asyncio.to_thread(fetch, server.url) == b"hello"
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", server.port)


def test_a_server_in_a_thread() -> None:
    threads = set()

    async def handle(request: Request) -> Response:
        threads.add(threading.current_thread().name)
        await asyncio.sleep(0)
        return Response(200, (), b"from a thread")

    with serve_in_thread(handle) as server:
        assert fetch(server.url) == b"from a thread"
        with pytest.raises(ListenError, match="in use"), serve_in_thread(handle, port=server.port):
            pass
    assert threads == {"steersman-http"}
    assert "steersman-http" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(OSError):
        fetch(server.url)


async def test_many_open_streams(start) -> None:
    """One write reaches them all; all are told when the server stops."""
    streams: set[Stream] = set()
    all_open = asyncio.Event()

    async def run(stream: Stream) -> None:
        streams.add(stream)
        if len(streams) == 300:
            all_open.set()
        await stream.closed()
        streams.discard(stream)

    server: Server = await start(lambda request: StreamResponse(200, run))

    async def watch() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(GET)
        await reader.readuntil(b"\r\n\r\n")
        body = await reader.read()
        writer.transport.abort()
        return body

    watchers = [asyncio.ensure_future(watch()) for _ in range(300)]
    async with asyncio.timeout(20):
        await all_open.wait()
        for stream in streams:
            stream.write(b"event")
        await server.stop(grace=60)
        assert set(await asyncio.gather(*watchers)) == {b"5\r\nevent\r\n0\r\n\r\n"}
    assert not streams
