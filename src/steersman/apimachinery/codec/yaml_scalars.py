"""Plain scalars of YAML as go-yaml v2 resolves them: YAML 1.1 words for booleans, no base-60 numbers, no timestamps.

Source: go.yaml.in/yaml/v2 `resolve.go`.
"""

from __future__ import annotations

import re
import struct
from typing import Any

from steersman._util.gotext import format_float
from steersman._util.lazily import lazily

STR, BOOL, INT, FLOAT, NULL = "!!str", "!!bool", "!!int", "!!float", "!!null"
_RESOLVABLE = frozenset({"", STR, BOOL, INT, FLOAT, NULL, "!!timestamp"})
_INFINITE = float("inf")


def _forms(*words: str) -> list[str]:
    return [form for word in words for form in dict.fromkeys((word, word.capitalize(), word.upper()))]


_WORDS: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(_forms("y", "yes", "true", "on"), (BOOL, True)),
    **dict.fromkeys(_forms("n", "no", "false", "off"), (BOOL, False)),
    **dict.fromkeys(["", "~", *_forms("null")], (NULL, None)),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], (FLOAT, float("nan"))),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], (FLOAT, _INFINITE)),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], (FLOAT, -_INFINITE)),
}
_FLOAT = lazily(re.compile, r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES = (
    (2, lazily(re.compile, r"0[bB]([01]+)")),
    (16, lazily(re.compile, r"0[xX]([0-9a-fA-F]+)")),
    (8, lazily(re.compile, r"0[oO]?([0-7]+)")),
    (10, lazily(re.compile, r"(0|[1-9][0-9]*)")),
)
_MOST_DIGITS = 64  # of an integer that fits 64 bits, in base 2 (and any number of zeros before them)


class ScalarError(ValueError):
    """A scalar is not of the type that its tag claims; worded as by go-yaml."""


def resolve(tag: str, text: str) -> Any:
    """The value of a scalar that is plain ("" tag) or has a tag such as `!!int`. Raises ScalarError."""
    if tag not in _RESOLVABLE or tag == STR:
        return text
    found, value = _guess(text)
    if tag in ("", found):
        return value
    if tag == FLOAT and found == INT and value < 2**63:
        return float(value)
    if tag == "!!timestamp" and found == STR:
        return text
    raise ScalarError(f"cannot decode {found} `{text}` as a {tag}")


def _guess(text: str) -> tuple[str, Any]:
    word = _WORDS.get(text)
    if word is not None:
        return word
    first = text[0]
    plain = text.replace("_", "")
    if first in "+-0123456789":
        number = _integer(plain)
        if number is not None:
            return INT, number
    elif first == ".":
        plain = text
    else:
        return STR, text
    if _FLOAT.fullmatch(plain) and abs(value := float(plain)) != _INFINITE:
        return FLOAT, value
    return STR, text


def _integer(text: str) -> int | None:
    signed = text[:1] in "+-"
    for base, pattern in _BASES:
        match = pattern.fullmatch(text, 1 if signed else 0)
        if match is None:
            continue
        digits = match[1].lstrip("0") or "0"
        if len(digits) > _MOST_DIGITS:
            return None
        number = int(digits, base) * (-1 if text[0] == "-" else 1)
        return number if -(2**63) <= number < (2**63 if signed else 2**64) else None
    return None


def key_text(key: Any) -> str | None:
    """A key of a map as JSON has it; None for what cannot be one. Floats lose all that 32 bits cannot hold."""
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str):
        return key
    if isinstance(key, int):
        return str(key)
    if not isinstance(key, float):
        return None
    if key - key != 0:
        return {_INFINITE: ".inf", -_INFINITE: "-.inf"}.get(key, ".nan")
    return format_single(key)


def format_single(value: float) -> str:
    """A float as Go's FormatFloat('g', -1, 32) prints it."""
    try:
        single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return "+Inf" if value > 0 else "-Inf"
    for digits in range(1, 10):
        short = float(f"{single:.{digits}g}")
        if struct.pack("<f", short) == struct.pack("<f", single):
            return format_float(short)
    return format_float(single)
