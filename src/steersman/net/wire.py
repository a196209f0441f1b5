"""The bytes of an HTTP/1.1 answer: its head, its Date, and its body in blocks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from http import HTTPStatus

# How a connection goes on after a request, as flags.
CLOSE = 0
KEEP_ALIVE = 1
HTTP_10 = 2

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
BLOCK = 256 * 1024
CHUNKED = -1

_REASONS = {status.value: status.phrase for status in HTTPStatus}
_CONNECTION = {
    CLOSE: b"Connection: close\r\n",
    KEEP_ALIVE: b"",
    HTTP_10: b"Connection: close\r\n",
    HTTP_10 | KEEP_ALIVE: b"Connection: keep-alive\r\n",
}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MAX_RENDERED = 512
_rendered: dict[tuple[int, Sequence[tuple[str, str]]], bytes] = {}


def date_line() -> bytes:
    """The Date header of this second, with its line end."""
    return f"Date: {http_date(time.time())}\r\n".encode()


def http_date(seconds: float) -> str:
    """A time since the epoch as HTTP's headers have it (RFC 9110 section 5.6.7)."""
    year, month, day, hour, minute, second, weekday, *_ = time.gmtime(seconds)
    return f"{_DAYS[weekday]}, {day:02} {_MONTHS[month - 1]} {year:04} {hour:02}:{minute:02}:{second:02} GMT"


def has_body(status: int) -> bool:
    """Whether an answer with this status may have a body (RFC 9110 section 6.4.1)."""
    return status >= 200 and status not in (204, 304)


def encode_answer(
    status: int, headers: Sequence[tuple[str, str]], date: bytes, mode: int, length: int, body: bytes = b""
) -> bytes:
    """An answer's head, followed by `body`; `mode` says how the connection goes on.

    The head announces `length` bytes; with CHUNKED it announces chunks, and to an HTTP/1.0 client nothing: its answer
    ends with the connection. Statuses without a body get neither.
    """
    try:
        rendered = _rendered.get((status, headers)) or _render(status, headers)
    except TypeError:  # a list of headers has no hash
        rendered = _render_lines(status, headers)
    if not has_body(status):
        size = b""
    elif length >= 0:
        return b"%b%bContent-Length: %d\r\n%b\r\n%b" % (rendered, date, length, _CONNECTION[mode], body)
    else:
        size = b"" if mode & HTTP_10 else b"Transfer-Encoding: chunked\r\n"
    return b"%b%b%b%b\r\n" % (rendered, date, size, _CONNECTION[mode])


def _render(status: int, headers: Sequence[tuple[str, str]]) -> bytes:
    """Status line and headers, remembered: most answers of a server have one of few sets of headers."""
    if len(_rendered) >= _MAX_RENDERED:
        _rendered.clear()
    rendered = _rendered[status, headers] = _render_lines(status, headers)
    return rendered


def _render_lines(status: int, headers: Sequence[tuple[str, str]]) -> bytes:
    text = f"HTTP/1.1 {status} {_REASONS.get(status, '')}\r\n"
    for name, value in headers:
        text += f"{name}: {value}\r\n"
    if text.count("\n") != len(headers) + 1 or text.count("\r") != len(headers) + 1:
        return _render_lines(status, [(_one_line(name), _one_line(value)) for name, value in headers])
    return text.encode("utf-8", "replace")


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
