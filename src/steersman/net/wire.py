"""The bytes of an HTTP/1.1 answer: its head, its Date, and its body in blocks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from email.utils import formatdate
from http import HTTPStatus

# How a connection goes on after a request, as flags.
CLOSE = 0
KEEP_ALIVE = 1
HTTP_10 = 2

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
BLOCK = 256 * 1024
_CHUNKED = -1

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_CONNECTION = {
    CLOSE: "Connection: close\r\n",
    KEEP_ALIVE: "",
    HTTP_10: "Connection: close\r\n",
    HTTP_10 | KEEP_ALIVE: "Connection: keep-alive\r\n",
}


class _Date:
    """The Date header, made once per second."""

    second = -1
    line = ""


def _date() -> str:
    now = int(time.time())
    if now != _Date.second:
        _Date.line = f"Date: {formatdate(now, usegmt=True)}\r\n"
        _Date.second = now
    return _Date.line


def has_body(status: int) -> bool:
    """Whether an answer with this status may have a body (RFC 9110 section 6.4.1)."""
    return status >= 200 and status not in (204, 304)


def encode_head(status: int, headers: Sequence[tuple[str, str]], length: int, mode: int) -> bytes:
    """The head of an answer with a body of `length` bytes; `mode` says how the connection goes on."""
    text = _STATUS_LINES.get(status) or f"HTTP/1.1 {status} status code {status}\r\n"
    for name, value in headers:
        text += f"{name}: {value}\r\n"
    if text.count("\n") != len(headers) + 1 or text.count("\r") != len(headers) + 1:
        return encode_head(status, [(_one_line(name), _one_line(value)) for name, value in headers], length, mode)
    if not has_body(status):
        size = ""
    elif length == _CHUNKED:
        size = "" if mode & HTTP_10 else "Transfer-Encoding: chunked\r\n"
    else:
        size = f"Content-Length: {length}\r\n"
    return f"{text}{_date()}{size}{_CONNECTION[mode]}\r\n".encode("utf-8", "replace")


def encode_chunked_head(status: int, headers: Sequence[tuple[str, str]], mode: int) -> bytes:
    """The head of an answer that is sent in chunks; to an HTTP/1.0 client, of one that ends with the connection."""
    return encode_head(status, headers, _CHUNKED, mode)


def _one_line(text: str) -> str:
    # A header's value must not begin another header: line ends become spaces, as in Go's net/http.
    return text.replace("\r", " ").replace("\n", " ")


def blocks(parts: Sequence[bytes]) -> Iterator[bytes | memoryview]:
    """The parts as writes of about BLOCK bytes: small parts are joined, large ones cut without a copy."""
    gathered: list[bytes] = []
    size = 0
    for part in parts:
        if size + len(part) > BLOCK and gathered:
            yield b"".join(gathered)
            gathered.clear()
            size = 0
        if len(part) > BLOCK:
            view = memoryview(part)
            for start in range(0, len(part), BLOCK):
                yield view[start : start + BLOCK]
        else:
            gathered.append(part)
            size += len(part)
    if gathered:
        yield b"".join(gathered)


def unframe(chunks: bytes) -> bytes:
    """The data of bytes that `http.chunk()` framed."""
    parts = []
    at = 0
    while at < len(chunks):
        line_end = chunks.index(b"\r\n", at)
        start = line_end + 2
        end = start + int(chunks[at:line_end], 16)
        parts.append(chunks[start:end])
        at = end + 2
    return b"".join(parts)
