"""Conversions, sizes, and the parts of times.

Source: cel-go `common/stdlib/standard.go`, `common/types` (ConvertToType).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from steersman._util.gotext import format_float
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.cel.literals import INT_MAX, INT_MIN, UINT_MAX
from steersman.apimachinery.schema.cel.operators import checked_uint
from steersman.apimachinery.schema.cel.operators import contains as in_container
from steersman.apimachinery.schema.cel.times import (
    format_duration,
    format_timestamp,
    in_zone,
    parse_duration,
    parse_timestamp,
)
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import SECOND, Duration, Timestamp, Uint, type_of

_MIN_SECONDS, _MAX_SECONDS = -62135596800, 253402300799
_DEC, _HEX = "[0-9](?:_?[0-9])*", "[0-9a-f](?:_?[0-9a-f])*"
_FLOAT = re.compile(
    rf"[+-]?(?:inf|infinity|nan|(?:{_DEC}\.?(?:{_DEC})?|\.{_DEC})(?:e[+-]?{_DEC})?)", re.IGNORECASE | re.ASCII
)
_HEX_FLOAT = re.compile(rf"[+-]?0x_?(?:{_HEX}\.?(?:{_HEX})?|\.{_HEX})p[+-]?{_DEC}", re.IGNORECASE | re.ASCII)
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def conversion_error(value: Any, wanted: Type) -> CelError:
    return CelError(f"type conversion error from '{type_of(value).name}' to '{wanted.name}'")


def _identity(value: Any) -> Any:
    return value


def _parse_integer(text: str, *, signed: bool) -> int | None:
    body = text[1:] if signed and text[:1] in ("+", "-") else text
    if not (body.isascii() and body.isdigit()) or len(body) > 400:
        return None
    return -int(body) if text[0] == "-" else int(body)


def string_to_int(text: str) -> int:
    value = _parse_integer(text, signed=True)
    if value is None or not INT_MIN <= value <= INT_MAX:
        raise conversion_error(text, t.INT)
    return value


def string_to_uint(text: str) -> Uint:
    value = _parse_integer(text, signed=False)
    if value is None or value > UINT_MAX:
        raise conversion_error(text, t.UINT)
    return Uint(value)


def string_to_double(text: str) -> float:
    if _HEX_FLOAT.fullmatch(text):
        value = _from_hex(text)
    elif _FLOAT.fullmatch(text):
        value = float(text)
    else:
        raise conversion_error(text, t.DOUBLE)
    if value in (float("inf"), float("-inf")) and "inf" not in text.lower():
        raise conversion_error(text, t.DOUBLE)
    return value


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text.replace("_", ""))
    except OverflowError:
        raise conversion_error(text, t.DOUBLE) from None


def string_to_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise conversion_error(text, t.BOOL)


def string_to_duration(text: str) -> Duration:
    value = parse_duration(text)
    if value is None:
        raise conversion_error(text, t.DURATION)
    return value


def string_to_timestamp(text: str) -> Timestamp:
    value = parse_timestamp(text)
    if value is None:
        raise conversion_error(text, t.TIMESTAMP)
    return value


def int_to_timestamp(seconds: int) -> Timestamp:
    if not _MIN_SECONDS <= seconds <= _MAX_SECONDS:
        raise CelError("timestamp overflow")
    return Timestamp(seconds * SECOND)


def double_to_int(value: float) -> int:
    if value != value or not -9223372036854775808.0 < value < 9223372036854775808.0:
        raise CelError("integer overflow")
    return int(value)


def double_to_uint(value: float) -> Uint:
    if value != value or not 0.0 <= value < 18446744073709551616.0:
        raise CelError("unsigned integer overflow")
    return Uint(int(value))


def uint_to_int(value: Uint) -> int:
    if value > INT_MAX:
        raise CelError("integer overflow")
    return int(value)


def bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def to_text(value: Any) -> str:
    """string(value)."""
    kind = value.__class__
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is float:
        return format_float(value)
    if kind is bytes:
        return bytes_to_string(value)
    if kind is Duration:
        return format_duration(value)
    if kind is Timestamp:
        return format_timestamp(value)
    if kind is Type:
        return str(value.name)
    raise conversion_error(value, t.STRING)


def _part(read: Callable[[datetime], int]) -> Function:
    def part(moment: Timestamp, zone: str = "UTC") -> int:
        return read(in_zone(moment, zone)[0])

    return part


def _year(moment: Timestamp, zone: str = "UTC") -> int:
    local, shift = in_zone(moment, zone)
    return local.year + shift


def _milliseconds(moment: Timestamp, zone: str = "UTC") -> int:
    in_zone(moment, zone)
    return moment.nanos % SECOND // 1_000_000


def _truncated(unit: int) -> Function:
    def part(value: Duration) -> int:
        whole, rest = divmod(abs(value.nanos), unit)
        # a float, as Go reckons it: what is hardly less than the next unit is taken for that
        whole = whole if unit < SECOND else int(float(whole) + float(rest) / unit)
        return whole if value.nanos >= 0 else -whole

    return part


_PARTS: dict[str, Function] = {
    "year": _year,
    "month": _part(lambda moment: moment.month - 1),
    "day_of_year": _part(lambda moment: moment.timetuple().tm_yday - 1),
    "day_of_month": _part(lambda moment: moment.day - 1),
    "day_of_month_1_based": _part(lambda moment: moment.day),
    "day_of_week": _part(lambda moment: moment.isoweekday() % 7),
    "hours": _part(lambda moment: moment.hour),
    "minutes": _part(lambda moment: moment.minute),
    "seconds": _part(lambda moment: moment.second),
    "milliseconds": _milliseconds,
}

OVERLOADS: dict[str, Function] = {
    **dict.fromkeys(("size_bytes", "bytes_size", "size_list", "list_size", "size_map", "map_size"), len),
    **dict.fromkeys(("size_string", "string_size"), len),
    "type": type_of,
    **dict.fromkeys(("bool_to_bool", "bytes_to_bytes", "double_to_double", "duration_to_duration"), _identity),
    **dict.fromkeys(("to_dyn", "int64_to_int64", "string_to_string", "uint64_to_uint64"), _identity),
    "timestamp_to_timestamp": _identity,
    "string_to_bool": string_to_bool,
    "string_to_bytes": lambda text: text.encode("utf-8", "surrogatepass"),
    "int64_to_double": float,
    "uint64_to_double": float,
    "string_to_double": string_to_double,
    "string_to_duration": string_to_duration,
    "double_to_int64": double_to_int,
    "duration_to_int64": lambda value: value.nanos,
    "string_to_int64": string_to_int,
    "timestamp_to_int64": lambda value: value.nanos // SECOND,
    "uint64_to_int64": uint_to_int,
    **dict.fromkeys(
        (f"{kind}_to_string" for kind in ("bool", "bytes", "double", "duration", "int64", "timestamp", "uint64")),
        to_text,
    ),
    "int64_to_timestamp": int_to_timestamp,
    "string_to_timestamp": string_to_timestamp,
    "double_to_uint64": double_to_uint,
    "int64_to_uint64": checked_uint,
    "string_to_uint64": string_to_uint,
    "in_list": in_container,
    "in_map": in_container,
    **{f"timestamp_to_{part}": function for part, function in _PARTS.items()},
    **{f"timestamp_to_{part}_with_tz": function for part, function in _PARTS.items()},
    "duration_to_hours": _truncated(3600 * SECOND),
    "duration_to_minutes": _truncated(60 * SECOND),
    "duration_to_seconds": _truncated(SECOND),
    "duration_to_milliseconds": _truncated(1_000_000),
}
