"""Durations as Go writes them: `1h30m`, `-1.5s`, `250ms`."""

from __future__ import annotations

import re

from steersman._util.lazily import lazily

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5
    "μs": 1_000,  # U+03BC
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = lazily(re.compile, r"([0-9]{0,30})(?:\.([0-9]{0,30}))?(ns|us|µs|μs|ms|s|m|h)")
_NUMBER = lazily(re.compile, r"[0-9]+(?:\.[0-9]*)?|\.[0-9]*")
_UNIT = lazily(re.compile, r"[^0-9.]+")


def parse_nanoseconds(text: str) -> int | None:
    """The nanoseconds of a duration; None when it is none, or does not fit 64 bits."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    total, at = 0, 0
    while at < len(body):
        part = _PART.match(body, at)
        if part is None or not (part[1] or part[2]):
            return None
        unit, fraction = _UNITS[part[3]], part[2] or ""
        total += int(part[1] or "0") * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        at = part.end()
    if not body or total >= 2**63:
        return None
    return -total if text[0] == "-" else total


def duration_error(text: str) -> str:
    """What Go says of a text that is no duration (time.ParseDuration)."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    while match := _NUMBER.match(rest):
        whole = match[0].partition(".")[0].lstrip("0")
        if match[0] == "." or len(whole) > 19 or int(whole or "0") > 1 << 63:
            break
        rest = rest[match.end() :]
        unit = _UNIT.match(rest)
        if unit is None:
            return f"time: missing unit in duration {_quoted(text)}"
        if unit[0] not in _UNITS:
            return f"time: unknown unit {_quoted(unit[0])} in duration {_quoted(text)}"
        rest = rest[unit.end() :]
    return f"time: invalid duration {_quoted(text)}"


def _quoted(text: str) -> str:
    """In double quotes, with escapes of all bytes but printable ASCII."""
    data = text.replace("\\", "\\\\").replace('"', '\\"').encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}" for byte in data) + '"'


def format_nanoseconds(nanoseconds: int) -> str:
    """A duration as Go prints it: `1m30s`, `1.5ms`, `0s`. Source: Go's time.Duration.String."""
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest < 1_000_000_000:
        unit = next((name for name in ("ms", "µs", "ns") if rest >= _UNITS[name]), "")
        return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}" if unit else "0s"
    minutes, seconds = divmod(rest, _UNITS["m"])
    text = f"{_decimal(seconds, _UNITS['s'])}s"
    if minutes:
        text = f"{minutes % 60}m{text}"
    return f"{sign}{minutes // 60}h{text}" if minutes >= 60 else f"{sign}{text}"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    fraction = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)
