"""A reader of protobuf's text format: what messages say, without a descriptor.

Source: the text format specification on protobuf.dev.
"""

from __future__ import annotations

import re
from typing import Any

_TOKEN = re.compile(
    r"(?:\s+|#[^\n]*)*(?:(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<word>[-+A-Za-z0-9_./]+)|(?P<mark>[{}\[\]<>:,;])|(?P<end>\Z))"
)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_SIMPLE = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}

Message = dict[str, list[Any]]
"""Fields by name, each with all its values: messages, bytes for quoted texts, str for numbers and names."""


def read(source: str) -> Message:
    """The message of a file."""
    return _Reader(source).message("")


class _Reader:
    def __init__(self, source: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        place = 0
        while not self.tokens or self.tokens[-1][0] != "end":
            found = _TOKEN.match(source, place)
            if found is None:
                raise ValueError(f"no token: {source[place : place + 40]!r}")
            place = found.end()
            self.tokens.append((found.lastgroup or "", found[found.lastgroup or 0]))

    def take(self, *marks: str) -> str:
        """The next token if it is one of these marks, else nothing."""
        kind, text = self.tokens[self.at]
        if kind != "mark" or text not in marks:
            return ""
        self.at += 1
        return text

    def message(self, closer: str) -> Message:
        out: Message = {}
        while self.tokens[self.at] != ("mark" if closer else "end", closer):
            values = out.setdefault(self.field_name(), [])
            self.take(":")
            if self.take("["):
                while not self.take("]"):
                    values.append(self.value())
                    self.take(",")
            else:
                values.append(self.value())
            self.take(",", ";")
        self.at += 1
        return out

    def field_name(self) -> str:
        """A field, or in brackets an extension or the type inside of an Any."""
        bracket = self.take("[")
        kind, name = self.tokens[self.at]
        if kind != "word":
            raise ValueError(f"a field was expected, not {name!r}")
        self.at += 1
        if bracket and not self.take("]"):
            raise ValueError(f"a bracket was expected after {name!r}")
        return name

    def value(self) -> Any:
        opener = self.take("{", "<")
        if opener:
            return self.message("}" if opener == "{" else ">")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind != "text":
            return text
        parts = [text]
        while self.tokens[self.at][0] == "text":
            parts.append(self.tokens[self.at][1])
            self.at += 1
        return b"".join(_ESCAPE.sub(_unescape, part[1:-1].encode()) for part in parts)


def _unescape(match: re.Match[bytes]) -> bytes:
    byte, short, long, octal, other = match.groups()
    if byte or octal:
        return bytes([int(byte, 16) if byte else int(octal, 8) & 255])
    if short or long:
        return chr(int(short or long, 16)).encode()
    return _SIMPLE.get(other, other)
