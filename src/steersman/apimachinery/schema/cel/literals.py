"""Literals: numbers and quoted strings.

Source: cel-go `parser/unescape.go`.
"""

from __future__ import annotations

import re

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1

_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)


class LiteralError(ValueError):
    """The literal stands for no value; the message is upstream's."""


def parse_int(text: str) -> int:
    value = _integer(text)
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def parse_uint(text: str) -> int:
    value = _integer(text[:-1])
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return value


def parse_double(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return value


def _integer(text: str) -> int:
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    if digits.startswith("0x"):
        return sign * int(digits[2:], 16)
    # int() refuses very long digits, which are out of range anyway
    return sign * (int(digits) if len(digits) < 1000 else UINT_MAX + 1)


def parse_string(text: str) -> str:
    """The value of a string token."""
    body, raw = _strip(text)
    if raw or "\\" not in body:
        return body
    return _ESCAPE.sub(_character, body)


def parse_bytes(text: str) -> bytes:
    """The value of a bytes token, `b` and all; octal and hex escapes are bytes, other characters UTF-8."""
    body, raw = _strip(text[1:])
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass")
    out = bytearray()
    at = 0
    for match in _ESCAPE.finditer(body):
        out += body[at : match.start()].encode("utf-8", "surrogatepass")
        code = match[1]
        if code[0] in "xX":
            out.append(int(code[1:], 16))
        elif code[0] in "01234567":
            out.append(int(code, 8))
        elif code[0] in "uU":
            raise LiteralError("unable to unescape string")
        else:
            out += _SIMPLE.get(code, code).encode()
        at = match.end()
    return bytes(out + body[at:].encode("utf-8", "surrogatepass"))


def _strip(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[width:-width], raw


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xXuU":
        value = int(code[1:], 16)
    elif code[0] in "01234567":
        value = int(code, 8)
    else:
        return _SIMPLE.get(code, code)
    if value > 0x10FFFF or 0xD800 <= value < 0xE000:
        raise LiteralError("invalid unicode code point")
    return chr(value)
