"""Requests as bytes on the wire, and what comes back."""

from __future__ import annotations

import asyncio
import http.client
import logging
import re
import socket
import struct
from collections.abc import Callable

import pytest

from steersman.net.http import Request, Response, Stream, StreamResponse
from steersman.net.server import Limits, Server

END = b"Host: h\r\nConnection: close\r\n\r\n"
TEXT = (("Content-Type", "text/plain"),)


async def until(condition: Callable[[], bool]) -> None:
    """Waits for the server to notice: nothing tells a test when it has."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def split(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and the rest of the first answer."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(status.split(" ")[1]), headers, rest


def statuses(answers: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d+)", answers)]


@pytest.mark.parametrize(
    ("request_bytes", "body"),
    [
        (b"GET /a/b?c=d&e HTTP/1.1\r\n" + END, b"GET /a/b ?c=d&e 0:"),
        (b"GET / HTTP/1.1\r\nX-One: a\r\nx-one:  b \r\n" + END, b"GET / ? 0:x-one=a, b;"),
        (b"GET / HTTP/1.1\r\nX-One: \xc3\xa9\r\n" + END, "GET / ? 0:x-one=é;".encode()),
        (b"GET / HTTP/1.1\r\nX-One: \xff\r\n" + END, "GET / ? 0:x-one=\ufffd;".encode()),
        (b"GET http://other:1/x?y HTTP/1.1\r\n" + END, b"GET /x ?y 0:"),
        (b"GET http://other HTTP/1.1\r\n" + END, b"GET  ? 0:"),
        (b"OPTIONS * HTTP/1.1\r\n" + END, b"OPTIONS * ? 0:"),
        (b"\r\n\r\nGET /late HTTP/1.1\r\n" + END, b"GET /late ? 0:"),
        (b"GET /%2Fa%c3%a9 HTTP/1.1\r\n" + END, b"GET /%2Fa%c3%a9 ? 0:"),
        (b"PUT / HTTP/1.1\r\nContent-Length: 3\r\n" + END + b"abc", b"PUT / ? 3:abc"),
        (b"GET / HTTP/1.1\r\nContent-Length: 2\r\n" + END + b"hi", b"GET / ? 2:hi"),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n" + END + b"2;a=b\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
            b"POST / ? 3:abc",
        ),
        # Trailers do not become headers.
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + END + b"1\r\na\r\n0\r\nX-T: 1\r\n\r\n",
            b"POST / ? 1:a",
        ),
        # An upgrade that nobody offers is ignored.
        (b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: Upgrade, close\r\n\r\n", b"GET / ? 0:"),
        (b"GET /old HTTP/1.0\r\n\r\n", b"GET /old ? 0:"),
    ],
)
async def test_served(start, talk, echo, request_bytes: bytes, body: bytes) -> None:
    server = await start(echo)
    status, headers, answer = split(await talk(server, request_bytes))
    assert (status, answer) == (200, body)
    assert headers["content-length"] == str(len(body))
    assert headers["connection"] == "close"
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d gmt", headers["date"])


CHUNKED = b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 505),
        (b"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"GET /a% HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"GET http://[::1 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 405),
        # What could smuggle a second request past a proxy.
        (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 3\r\n\r\nabc", 400),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc", 400),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x3\r\n\r\nabc", 400),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\nabc", 400),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length : 3\r\n\r\nabc", 400),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\nabc", 400),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\nabc", 501),
        (
            b"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
            400,
        ),
        (b"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
        (CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n", 400),
        (CHUNKED + b"-3\r\nabc\r\n0\r\n\r\n", 400),
        (CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n", 400),
        (CHUNKED + b"fffffffffffffffff\r\nabc\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: h\n\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX y: a\r\n\r\n", 400),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nExpect: magic\r\nContent-Length: 1\r\n\r\n", 417),
    ],
)
async def test_refused(start, talk, echo, request_bytes: bytes, status: int) -> None:
    """One answer, then the connection ends, and nothing that follows is taken for a request."""
    server = await start(echo)
    answer = await talk(server, request_bytes, b"GET /smuggled HTTP/1.1\r\n" + END, eof=True)
    assert statuses(answer) == [status]
    assert split(answer)[1]["connection"] == "close"
    assert b"smuggled" not in answer


async def test_pipelined_requests_are_answered_in_order(start, talk) -> None:
    """Also when the first ones take longer, and one is refused at the end."""
    released = asyncio.Event()

    async def handle(request: Request) -> Response:
        if request.path == "/slow":
            await released.wait()
        if request.path == "/9":
            released.set()
        return Response(200, TEXT, request.path.encode())

    server = await start(handle)
    others = asyncio.ensure_future(talk(server, b"GET /9 HTTP/1.1\r\n" + END))
    paths = ["/1", "/slow", "/2", "/slow", "/3"]
    pipeline = b"".join(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode() for path in paths)
    answer = await talk(server, pipeline + b"garbage\r\n\r\n")
    await others
    assert statuses(answer) == [200] * 5 + [400]
    assert re.findall(rb"\r\n\r\n(/(?:slow|\d))", answer) == [path.encode() for path in paths]


async def test_a_long_pipeline_is_read_only_as_fast_as_it_is_answered(start, talk) -> None:
    async def handle(request: Request) -> Response:
        await asyncio.sleep(0)
        return Response(200, TEXT, b"%d" % len(request.body))

    server = await start(handle)
    one = b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000
    answer = await talk(server, one * 1000, b"GET / HTTP/1.1\r\n" + END)
    assert statuses(answer) == [200] * 1001


@pytest.mark.parametrize(
    ("framing", "body"),
    [(b"", b""), (b"Content-Length: 1\r\n", b"x"), (b"Transfer-Encoding: chunked\r\n", b"1\r\nx\r\n0\r\n\r\n")],
)
async def test_an_ignored_upgrade_keeps_the_connection(start, talk, echo, framing: bytes, body: bytes) -> None:
    """Its body belongs to it: it is no request of its own."""
    server = await start(echo)
    asked = b"Host: h\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nX-A: b\r\n" + framing + b"\r\n" + body
    pipeline = b"PUT /1?q HTTP/1.1\r\n" + asked + b"PUT /2 HTTP/1.1\r\n" + asked + b"GET /3 HTTP/1.1\r\n" + END
    for pieces in ([pipeline], [pipeline[i : i + 1] for i in range(len(pipeline))]):
        answer = await talk(server, *pieces)
        assert statuses(answer) == [200] * 3
        size = b"%d:%b" % (1 if body else 0, b"x" if body else b"")
        assert re.findall(rb"(?:PUT|GET) .*;?", answer.replace(b"HTTP/1.1", b"\n")) == [
            b"PUT /1 ?q " + size + b"x-a=b;",
            b"PUT /2 ? " + size + b"x-a=b;",
            b"GET /3 ? 0:",
        ]


@pytest.mark.parametrize(
    "first", [b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n", b"GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"]
)
async def test_kept_alive(start, talk, echo, first: bytes) -> None:
    server = await start(echo)
    answer = await talk(server, first, b"GET /2 HTTP/1.1\r\n" + END)
    assert statuses(answer) == [200, 200]
    assert split(answer)[1].get("connection") == (None if b"1.1" in first else "keep-alive")


async def test_repeated_headers_are_still_checked(start, talk, echo) -> None:
    """The same headers, but of HTTP/1.0, close; and no headers at all lack a host even as the second request."""
    server = await start(echo)
    assert statuses(await talk(server, b"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.0\r\nHost: h\r\n\r\n")) == [
        200,
        200,
    ]
    assert statuses(await talk(server, b"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\n\r\n")) == [200, 400]


async def test_head_counts_the_body_and_leaves_it_out(start, talk, echo) -> None:
    async def handle(request: Request) -> Response | StreamResponse:
        if request.path == "/stream":
            return StreamResponse(200, never, TEXT)
        return Response(200, TEXT, [b"x" * 1000] * 1000 if request.path == "/big" else b"12345")

    async def never(stream: Stream) -> None:
        raise AssertionError("a HEAD request opens no stream")

    server = await start(handle)
    for path, length in ((b"/", "5"), (b"/big", "1000000")):
        _, headers, body = split(await talk(server, b"HEAD " + path + b" HTTP/1.1\r\n" + END))
        assert (headers["content-length"], body) == (length, b"")
    _, headers, body = split(await talk(server, b"HEAD /stream HTTP/1.1\r\n" + END))
    assert (headers["transfer-encoding"], body) == ("chunked", b"")


@pytest.mark.parametrize("status", [204, 304])
async def test_statuses_without_a_body(start, talk, status: int) -> None:
    server = await start(lambda request: Response(status, (), b"ignored"))
    answer = await talk(server, b"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\n" + END)
    assert statuses(answer) == [status, status]
    assert b"ignored" not in answer and b"Content-Length" not in answer


async def test_a_withheld_body_is_asked_for_in_its_turn(start) -> None:
    async def handle(request: Request) -> Response:
        await asyncio.sleep(0)
        return Response(200, TEXT, request.path.encode() + request.body)

    server = await start(handle)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /first HTTP/1.1\r\nHost: h\r\n\r\n")
    writer.write(b"PUT /second HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    seen = await reader.readuntil(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert seen.index(b"/first") < seen.index(b"100 Continue")
    writer.write(b"hi")
    assert statuses(await reader.readuntil(b"/secondhi")) == [200]
    writer.transport.abort()


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 5000001\r\n",
        b"Content-Length: 5000001\r\nExpect: 100-continue\r\n",
        b"Transfer-Encoding: chunked\r\n",
    ],
)
async def test_a_body_over_the_limit(start, talk, echo, headers: bytes) -> None:
    """The client sends all of it before it reads, and still gets the answer."""
    server = await start(echo, limits=Limits(max_body=1000))
    body = b"x" * 5000001 if b"Length" in headers else b"4c4b41\r\n" + b"x" * 5000001 + b"\r\n0\r\n\r\n"
    answer = await talk(server, b"PUT / HTTP/1.1\r\nHost: h\r\n" + headers + b"\r\n", body, eof=True)
    assert statuses(answer) == [413]
    assert answer.endswith(b"too large")


async def test_a_body_at_the_limit(start, talk, echo) -> None:
    server = await start(echo, limits=Limits(max_body=1000))
    answer = await talk(server, b"PUT / HTTP/1.1\r\nContent-Length: 1000\r\n" + END + b"x" * 1000)
    assert statuses(answer) == [200]


async def test_heads_over_the_limit(start, talk, echo) -> None:
    server = await start(echo)
    answer = await talk(server, b"GET / HTTP/1.1\r\nX-Long: ", b"x" * (2 << 20), b"\r\n" + END, eof=True)
    assert statuses(answer) == [431]
    long = b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 500_000 + b"\r\n" + END
    assert statuses(await talk(server, long)) == [200]


async def test_chunks_that_are_mostly_framing(start, talk, echo) -> None:
    server = await start(echo)
    extensions = b"1;" + b"e" * 2000 + b"\r\nx\r\n"
    answer = await talk(server, CHUNKED, extensions * 2000, b"0\r\n\r\n", eof=True)
    assert statuses(answer) == [400]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", []),
        (b"GET / HT", [408]),
        (b"GET / HTTP/1.1\r\nHost: h\r\nX: ", [408]),
        (b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc", [408]),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", [200]),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HT", [200, 408]),
    ],
)
async def test_slow_clients_are_cut_off(start, talk, echo, sent: bytes, expected: list[int]) -> None:
    limits = Limits(head_timeout=0.1, body_timeout=0.1, idle_timeout=0.1, linger_timeout=0.1)
    server = await start(echo, limits=limits)
    assert statuses(await talk(server, sent)) == expected


async def test_a_client_that_drips_is_cut_off(start, echo) -> None:
    """Bytes do not prolong the time for a head."""
    server = await start(echo, limits=Limits(head_timeout=0.2, linger_timeout=0.1))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET / HTTP/1.1\r\nX: ")
    answer = asyncio.ensure_future(reader.read())
    async with asyncio.timeout(10):
        while not answer.done():
            writer.write(b"x")
            await asyncio.wait([answer], timeout=0.02)
    writer.transport.abort()
    assert answer.exception() is not None or statuses(answer.result()) == [408]


async def test_a_running_request_has_no_time_limit_here(start, talk) -> None:
    async def handle(request: Request) -> Response:
        await asyncio.sleep(0.5)
        return Response(200, TEXT, b"done")

    server = await start(handle, limits=Limits(head_timeout=0.05, body_timeout=0.05, idle_timeout=0.05))
    assert statuses(await talk(server, b"GET / HTTP/1.1\r\n" + END)) == [200]


async def test_a_client_that_does_not_read_is_cut_off(start) -> None:
    server: Server = await start(
        lambda request: Response(200, TEXT, [b"x" * 65536] * 1000), limits=Limits(write_timeout=0.2)
    )
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await until(lambda: server.connections == 1)
    await until(lambda: server.connections == 0)
    writer.transport.abort()


@pytest.mark.parametrize(
    "body", [b"\1" * 20_000_000, [b"\1" * 1000] * 20_000, [b"\1" * 10_000_000, b"", b"\1" * 10_000_000]]
)
async def test_large_answers(start, talk, body: bytes | list[bytes]) -> None:
    server = await start(lambda request: Response(200, TEXT, body))
    answer = await talk(server, b"GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\n" + END)
    assert statuses(answer) == [200, 200]
    assert answer.count(b"\1") == 40_000_000


@pytest.mark.parametrize("waits", [False, True])
async def test_a_failing_handler(start, talk, caplog, waits: bool) -> None:
    async def handle(request: Request) -> Response:
        if waits:
            await asyncio.sleep(0)
        if request.path == "/fail":
            raise ValueError("a secret")
        return Response(200, TEXT, b"fine")

    server = await start(handle)
    with caplog.at_level(logging.ERROR, "steersman.net"):
        answer = await talk(server, b"GET /fail HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\n" + END)
    assert statuses(answer) == [500, 200]
    assert b"secret" not in answer
    assert "GET /fail" in caplog.text and "a secret" in caplog.text


@pytest.mark.parametrize("waits", [False, True])
async def test_a_handler_that_returns_nonsense(start, talk, caplog, waits: bool) -> None:
    async def later(request: Request) -> None:
        await asyncio.sleep(0)

    server = await start(later if waits else lambda request: None)
    assert statuses(await talk(server, b"GET / HTTP/1.1\r\n" + END)) == [500]
    assert "a handler returned None" in caplog.text


async def test_other_awaitables(start, talk) -> None:
    def handle(request: Request) -> asyncio.Future[Response]:
        future = asyncio.get_running_loop().create_future()
        future.set_result(Response(200, TEXT, b"later"))
        return future

    server = await start(handle)
    assert (await talk(server, b"GET / HTTP/1.1\r\n" + END)).endswith(b"later")


async def test_a_handler_finishes_though_its_client_has_gone(start) -> None:
    begun, go_on, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handle(request: Request) -> Response:
        begun.set()
        await go_on.wait()
        finished.set()
        return Response(200)

    server: Server = await start(handle)
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
    await begun.wait()
    # A reset, not a half-closed connection: that one still wants its answer.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    await until(lambda: not server.connections)
    go_on.set()
    async with asyncio.timeout(5):
        await finished.wait()


async def test_half_closed_clients_are_answered(start, talk) -> None:
    async def handle(request: Request) -> Response:
        await asyncio.sleep(0.05)
        return Response(200, TEXT, b"answer")

    server = await start(handle)
    pipeline = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n" * 2
    assert statuses(await talk(server, pipeline, eof=True)) == [200, 200]


async def test_header_values_stay_on_their_line(start, talk) -> None:
    server = await start(lambda request: Response(200, [("X-A", "b\r\nSet-Cookie: c"), ("X-U", "é")]))
    _, headers, _ = split(await talk(server, b"GET / HTTP/1.1\r\n" + END))
    assert headers["x-a"] == "b  set-cookie: c"
    assert "set-cookie" not in headers
    assert headers["x-u"] == "é"


async def test_too_many_connections(start, talk, echo) -> None:
    server = await start(echo, limits=Limits(max_connections=1))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    answer = await talk(server, b"GET / HTTP/1.1\r\n" + END)
    assert statuses(answer) == [503]
    writer.transport.abort()


async def test_what_a_request_knows(start, talk) -> None:
    seen: list[Request] = []

    async def handle(request: Request) -> Response:
        seen.append(request)
        return Response(200)

    server = await start(handle)
    before = asyncio.get_running_loop().time()
    await talk(server, b"GET / HTTP/1.1\r\nX-Group: a,b\r\nX-group: c\r\n" + END)
    (request,) = seen
    assert before <= request.accepted_at <= asyncio.get_running_loop().time()
    assert re.fullmatch(r"127\.0\.0\.1:\d+", request.peer)
    assert request.header_values("x-group") == ["a,b", "c"]
    assert request.header_values("x-none") == []
    assert Request("GET", "/", "", {"x-a": "b, c"}).header_values("x-a") == ["b, c"]
    assert request.peer_certificate is None


async def test_the_standard_library_as_client(start, echo) -> None:
    server = await start(echo)

    def client() -> list[bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        answers = []
        for method, body in (("GET", None), ("PUT", b"abc"), ("POST", iter([b"de", b"f"])), ("HEAD", None)):
            connection.request(method, "/x", body=body, encode_chunked=True)
            answers.append(connection.getresponse().read())
        connection.close()
        return answers

    assert await asyncio.to_thread(client) == [b"GET /x ? 0:", b"PUT /x ? 3:abc", b"POST /x ? 3:def", b""]
