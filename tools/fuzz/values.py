"""JSON values, plain and strange, and texts of every format; all drawn from one `random.Random`."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from .formats import FORMATS

KEYS = ("a", "b", "c", "name", "key", "x-y", "a.b", "a/b", "$ref", "items", "type", "ünï", "0", "")
KEYS += ("kind", "apiVersion", "metadata", "spec", "true", "A", "long" * 20, "a b", "a[0]", "~0", "é", "é")
INTEGERS = (0, 1, -1, 2, 3, 5, 7, 10, 100, 255, 1000, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53, 2**53 + 1)
INTEGERS += (2**63 - 1, -(2**63), 1234567890123456789, 999999999999999999)
NUMBERS = ("-0", "0.0", "1.0", "2.50", "0.5", "-1.5", "1e2", "1E+2", "1e-7", "1e-6", "0.00001", "1e20", "1e21")
NUMBERS += ("123456789.123456789", "0.1", "0.30000000000000004", "5e-324", "1e308", "1.7976931348623157e308", "1e400")
NUMBERS += ("9223372036854775808", "-9223372036854775809", "18446744073709551616", "100000000000000000000000", "3e38")
NUMBERS += ("4e38", "1e-400", "9007199254740993.0", "2147483648.0", "9223372036854775807.0", "1.5e3", "3.0000000001")
NUMBERS += ("0.99999999999", "1e15", "123456789012345680", "12345678901234567890", "1e6", "1234567.0")
TEXTS = (
    "",
    "a",
    "b",
    "ab",
    "abc",
    "hello world",
    "ä",
    "日本語",
    "😀",
    "é",
    "a\nb",
    "\t",
    '"',
    "\\",
    "<&>",
    "\u2028",
    "\x7f",
)
TEXTS += (
    "0",
    "1",
    "-1",
    "1.5",
    "null",
    "true",
    "100m",
    "1Gi",
    "50%",
    "A",
    "Abc",
    "aaaaaaaaaa",
    "x" * 70,
    "%s",
    " ",
    "\x00",
)
TEXTS += ("a.b.c", "\u200b", "\u00ad", "\ufeff", "\U0010ffff", "a" * 300)
TEXT_LITERALS = (r'"\u0041"', r'"\ud83d\ude00"', r'"\ud800"', r'"\udc00x"', r'"\/"', r'"\u00e4"', r'"\u0000"')
PLAIN_YAML = (
    "yes",
    "on",
    "~",
    "0o17",
    "017",
    "0x1F",
    "1_000",
    ".inf",
    "-.inf",
    ".nan",
    "2001-01-01",
    "1:30",
    "+1",
    "!!str 1",
)
PLAIN_YAML += (
    "!!binary aGk=",
    "0b11",
    "1e3",
    "1.",
    ".5",
    "'it''s'",
    '"a\\x41"',
    "!!float 1",
    "!!int '3'",
    "08",
    "a b",
    "NULL",
)


class Raw(str):
    """A JSON (or YAML) value as it stands in the text."""

    __slots__ = ()


class Doubled(dict[str, Any]):
    """An object of which some fields are written twice; `first` are the values of those that come first."""

    def __init__(self, fields: dict[str, Any], first: dict[str, Any]) -> None:
        super().__init__(fields)
        self.first = first


def write(value: Any, *, ascii_only: bool = False) -> str:
    """The JSON text of a value that may contain Raw and Doubled."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        fields = [*value.first.items(), *value.items()] if isinstance(value, Doubled) else list(value.items())
        inner = (
            f"{json.dumps(key, ensure_ascii=ascii_only)}: {write(each, ascii_only=ascii_only)}" for key, each in fields
        )
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(write(each, ascii_only=ascii_only) for each in value) + "]"
    return json.dumps(value, ensure_ascii=ascii_only)


def number(rng: Random, *, whole: bool = False) -> Any:
    """An integer, or any number in any form."""
    draw = rng.random()
    if draw < 0.45:
        return rng.randint(-3, 12)
    if whole or draw < 0.6:
        return rng.choice(INTEGERS) + rng.choice((0, 0, 1, -1)) if draw > 0.7 else rng.choice(INTEGERS)
    if draw < 0.8:
        return Raw(rng.choice(NUMBERS))
    return Raw(_odd_number(rng))


def _odd_number(rng: Random) -> str:
    digits = "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 18))).lstrip("0") or "0"
    text = rng.choice(("", "", "-")) + digits.replace("0", "1", 1)  # -0.0 is stored as 0, by upstream as -0
    if rng.random() < 0.7:
        text += "." + "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 12)))
    return text + rng.choice(("", "", f"e{rng.randint(-30, 30)}"))


def text(rng: Random) -> Any:
    """A text."""
    draw = rng.random()
    if draw < 0.03:
        return Raw(rng.choice(TEXT_LITERALS))
    if draw < 0.8:
        return rng.choice(TEXTS)
    return "".join(rng.choice("abcXYZ0189-._/ äß日😀") for _ in range(rng.randint(0, 12)))


def near(rng: Random, word: str) -> str:
    """A text that differs a little."""
    draw, at = rng.randint(0, 7), rng.randint(0, len(word))
    if draw == 0:
        return word[:at] + rng.choice("0aZ:-./ @é٣\n%") + word[at:]
    if draw == 1:
        return word[:at] + word[at + 1 :]
    if draw == 2:
        return word[:at] + rng.choice("0159fgT:+-._[]") + word[at + 1 :]
    if draw == 3:
        return word.swapcase()
    return {4: f" {word}", 5: f"{word}\n", 6: word * 2}.get(draw, word[:at])


def of_format(rng: Random, name: str) -> str:
    """A text of a format, or nearly."""
    known = FORMATS.get(name) or FORMATS.get(name.replace("-", "")) or ("x",)
    word = rng.choice(known[:2]) if rng.random() < 0.5 else rng.choice(known)
    return near(rng, word) if rng.random() < 0.15 else word


def anything(rng: Random, depth: int = 2) -> Any:
    """Any JSON value."""
    draw = rng.random()
    if depth and draw < 0.2:
        return {rng.choice(KEYS): anything(rng, depth - 1) for _ in range(rng.randint(0, 3))}
    if depth and draw < 0.35:
        return [anything(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    if draw < 0.45:
        return None
    if draw < 0.55:
        return rng.random() < 0.5
    return number(rng) if draw < 0.75 else text(rng)


def nested(rng: Random) -> Any:
    """A value that is deep."""
    value: Any = anything(rng, 0)
    for _ in range(rng.choice((5, 20, 60))):
        value = [value] if rng.random() < 0.5 else {rng.choice(("a", "b")): value}
    return value
