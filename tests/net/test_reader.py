"""The reader without sockets: how the bytes are cut makes no difference."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.net.context import Limits, ServerContext
from steersman.net.eager import EagerRunner
from steersman.net.http import Request
from steersman.net.reader import RequestReader

TOKEN = st.text("abcXYZ09-_", min_size=1, max_size=8)
VALUE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)
BODY = st.binary(max_size=40)


@st.composite
def request_bytes(draw: st.DrawFn) -> bytes:
    """A valid request: any framing, perhaps with an upgrade."""
    path = "/" + draw(st.text("abc/%20?=&", max_size=12)).replace("%", "%25")
    lines = [f"{draw(st.sampled_from(['GET', 'PUT', 'PATCH', 'DELETE']))} {path} HTTP/1.1", "Host: h"]
    lines += [f"X-{draw(TOKEN)}: {draw(VALUE)}" for _ in range(draw(st.integers(0, 3)))]
    if draw(st.integers(0, 4)) == 0:
        lines += ["Connection: Upgrade", "Upgrade: h2c"]
    body = draw(BODY)
    if draw(st.booleans()):
        lines.append("Transfer-Encoding: chunked")
        cut = draw(st.integers(0, len(body)))
        body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:cut], body[cut:]) if part) + b"0\r\n\r\n"
    elif body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def read(pieces: list[bytes]) -> list[object]:
    """What a reader makes of the pieces."""
    loop = asyncio.new_event_loop()
    try:
        context = ServerContext(loop, lambda request: None, Limits(), EagerRunner(loop), tick=0.0)
        reader = RequestReader(context)
        for piece in pieces:
            reader.feed(piece)
    finally:
        loop.close()
    return [
        (item.method, item.path, item.query, dict(item.headers), item.body, item.raw_headers, mode)
        if isinstance(item, Request)
        else (item.status, item.body)
        for item, mode in reader.queue
    ]


@settings(deadline=None, max_examples=150)
@given(st.lists(request_bytes(), min_size=1, max_size=4), st.data())
def test_any_cut_reads_the_same(requests: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(requests)
    expected = read([whole])
    assert len(expected) == len(requests)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=12)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert read(pieces) == expected
    assert read([bytes([byte]) for byte in whole]) == expected


@settings(deadline=None, max_examples=150)
@given(request_bytes(), st.data())
def test_damaged_requests_never_break_the_reader(request: bytes, data: st.DataObject) -> None:
    """They are read, refused or waited for; after a refusal nothing is read."""
    at = data.draw(st.integers(0, len(request) - 1))
    damaged = request[:at] + data.draw(st.binary(max_size=3)) + request[at + data.draw(st.integers(0, 3)) :]
    results = read([damaged, b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n"])
    refusals = [isinstance(result[0], int) for result in results]
    assert True not in refusals[:-1]
