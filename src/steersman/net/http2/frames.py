"""HTTP/2 as bytes: kinds of frames, their flags, settings, and blocks of headers.

Source: RFC 9113 (HTTP/2), RFC 7541 (HPACK).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CALLS, INITIAL_WINDOW, MAX_FRAME = 1, 2, 3, 4, 5
NO_ERROR, REFUSED, CANCEL = 0x0, 0x7, 0x8
DEFAULT_WINDOW, DEFAULT_FRAME = 65_535, 16_384
MOST_WINDOW, MOST_FRAME = (1 << 31) - 1, (1 << 24) - 1
LAST_ID = (1 << 31) - 3
HEAD = 9
"""Bytes before a frame's payload."""
NO_TABLE = b"\x20"
"""What a block begins with that gives up the table of headers (RFC 7541, 6.3)."""


def head(kind: int, flags: int, number: int, length: int) -> bytes:
    """What comes before a payload."""
    return struct.pack(">BHBBI", length >> 16, length & 0xFFFF, kind, flags, number)


def unpadded(flags: int, payload: bytes) -> bytes:
    """The payload of DATA or HEADERS without its padding, and without a priority, which says nothing any more.

    Raises ValueError, IndexError.
    """
    if not flags & (PADDED | PRIORITY):
        return payload
    start = (1 if flags & PADDED else 0) + (5 if flags & PRIORITY else 0)
    end = len(payload) - (payload[0] if flags & PADDED else 0)
    if end < start:
        raise ValueError("more padding than there is room for")
    return payload[start:end]


def number(payload: bytes) -> int:
    """One of 31 bits. Raises struct.error."""
    [found] = struct.unpack(">I", payload)
    return int(found) & 0x7FFFFFFF


def allowed(window: int) -> int:
    """The window, if there may be such a one. Raises ValueError."""
    if window > MOST_WINDOW:
        raise ValueError("no such window")
    return window


def encoded(headers: Iterable[tuple[str, str]]) -> bytes:
    """A block of headers, each spelled out and to be remembered by nobody (RFC 7541, 6.2.2)."""
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in headers)


def _text(text: str) -> bytes:
    raw = text.encode()
    return _length(len(raw)) + raw


def _length(value: int) -> bytes:
    """An integer with a prefix of 7 bits (RFC 7541, 5.1)."""
    if value < 127:
        return bytes((value,))
    found, value = bytearray((127,)), value - 127
    while value >= 128:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
