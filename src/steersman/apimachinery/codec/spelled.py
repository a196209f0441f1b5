"""JSON whose texts and numbers remember how they were written, for what upstream compares or quotes as bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

import orjson

from steersman._util.gotext import format_json_float
from steersman.apimachinery.codec.json import JsonError, json_number


class Text(str):
    """A text, and the literal that stood for it."""

    literal: str


class Number(float):
    """A number that shows as it was written."""

    literal: str

    def __new__(cls, literal: str) -> Number:
        number = super().__new__(cls, literal)
        number.literal = literal
        return number

    def __repr__(self) -> str:
        return self.literal


def _integer(literal: str) -> int | Number:
    number = json_number(literal)
    return Number(literal) if literal == "-0" or isinstance(number, float) else number


def _parse_string(text: str, begin: int, strict: bool = True) -> tuple[str, int]:
    content, end = scanstring(text, begin, strict)
    found = Text(content)
    found.literal = text[begin - 1 : end]
    return found, end


def decode(raw: bytes) -> Any:
    """The value of a JSON text that is known to be one. Raises JsonError for one that is too deep."""
    decoder: Any = json.JSONDecoder(parse_float=Number, parse_int=_integer)
    decoder.parse_string = _parse_string
    scan: Callable[..., Any] = py_make_scanner(decoder)
    decoder.scan_once = scan
    try:
        return decoder.decode(raw.decode("utf-8", "replace"))
    except RecursionError:
        raise JsonError("exceeded max depth") from None


def encode(value: Any) -> bytes:
    """JSON with sorted keys, and numbers as they were written."""
    return orjson.dumps(
        value, option=orjson.OPT_SORT_KEYS, default=lambda number: orjson.Fragment(literal(number).encode())
    )


def plain(value: Any) -> Any:
    """A copy without memory."""
    if isinstance(value, Text):
        return str.__str__(value)
    if isinstance(value, Number):
        return 0 if value.literal == "-0" else float(value)
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def literal(value: str | float) -> str:
    """How a scalar was written, or how Go's encoding/json writes it."""
    if isinstance(value, Text | Number):
        return value.literal
    if isinstance(value, str):
        return _go_text(value)
    return format_json_float(value) if isinstance(value, float) else str(value)


def _go_text(value: str) -> str:
    text = json.dumps(value, ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text
