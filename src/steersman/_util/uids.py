"""Random UUIDs. The `uuid` module loads what finds out about the machine: more than there is to make one."""

from __future__ import annotations

import os


def new() -> str:
    """A random UUID (version 4, RFC 9562) as text."""
    number = bytearray(os.urandom(16))
    number[6] = number[6] & 0x0F | 0x40
    number[8] = number[8] & 0x3F | 0x80
    text = number.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
