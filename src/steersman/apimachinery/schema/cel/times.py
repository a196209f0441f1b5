"""Durations and points in time: read and written as Go does, to the nanosecond; time zones.

Source: Go `time` (ParseDuration, Parse, Format); kube-openapi `pkg/validation/strfmt/{duration,time}.go`; cel-go
`common/types/{duration,timestamp}.go`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from steersman._util.gotext import quote
from steersman.apimachinery.schema.cel.errors import CelError
from steersman.apimachinery.schema.cel.literals import INT_MAX, INT_MIN
from steersman.apimachinery.schema.cel.values import MAX_TIME, MIN_TIME, SECOND, Duration, Timestamp

_UNITS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART = re.compile(r"([0-9]*)(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h)")
_WORDS = {
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1),
    **dict.fromkeys(("us", "µs", "micro", "micros", "microsecond", "microseconds"), 1000),
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1000000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * SECOND),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600 * SECOND),
    **dict.fromkeys(("d", "day", "days"), 86400 * SECOND),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks"), 604800 * SECOND),
}
_WORD_PART = re.compile(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)")
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})([.,][0-9]+)?(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))"
)
_SCHEMA_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})([.,][0-9]+)?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))?"
)
_LOCAL_TIME = re.compile(r"[0-9-]{10}T[0-9:]{8}(?:[.,][0-9]+)?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_EPOCH = datetime(1970, 1, 1)
_CYCLE = 146097 * 86400
"""Seconds of 400 years."""
_FIRST, _LAST = -62135596800, 253402300799
"""What `datetime` holds: the years 1 to 9999."""
_EARLIEST, _LATEST = _FIRST + 172800, _LAST - 172800


def parse_duration(text: str) -> Duration | None:
    """A Go duration (`1h30m`, `-1.5s`); None when it is none or does not fit 64 bits."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(body):
        part = _PART.match(body, at)
        if part is None or not (part[1] or len(part[2] or "") > 1):
            return None
        unit = _UNITS[part[3]]
        digits = (part[2] or ".")[1:][:30]
        total += int(part[1][:30] or "0") * unit + (int(digits) * unit // 10 ** len(digits) if digits else 0)
        if len(part[1]) > 30 or total > INT_MAX + 1:
            return None
        at = part.end()
    if not body:
        return None
    total = -total if text[0] == "-" else total
    return Duration(total) if INT_MIN <= total <= INT_MAX else None


def parse_schema_duration(text: str) -> Duration | None:
    """A duration as the schema's format reads it: Go's, or `3 days 2 hours`."""
    parsed = parse_duration(text)
    if parsed is not None:
        return parsed
    total, found = 0, False
    for match in _WORD_PART.finditer(text):
        unit = _WORDS.get(match[2])
        if unit is not None:
            total += int(match[1][:30]) * unit
            found = True
    return Duration(total) if found and total <= INT_MAX else None


def format_duration(value: Duration) -> str:
    """The duration in seconds, as CEL prints it: `5400s`."""
    seconds = value.nanos / SECOND if abs(value.nanos) < 2**53 else _seconds(value.nanos)
    text = f"{seconds!r}"
    if "e" in text:
        text = f"{seconds:.9f}".rstrip("0").rstrip(".")
    return text.removesuffix(".0") + "s"


def _seconds(nanos: int) -> float:
    """As Go's Duration.Seconds: whole seconds and the rest, added as floats."""
    whole, rest = divmod(abs(nanos), SECOND)
    seconds = float(whole) + float(rest) / 1e9
    return -seconds if nanos < 0 else seconds


def _moment(match: re.Match[str]) -> Timestamp | None:
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    days = _days(year, month, day)
    if days is None:
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    offset = 0
    if match[9]:
        hours, minutes = int(match[10]), int(match[11])
        if hours > 24 or minutes > 60:
            return None
        offset = (hours * 3600 + minutes * 60) * (-1 if match[9] == "-" else 1)
    nanos = (days * 86400 + hour * 3600 + minute * 60 + second - offset) * SECOND
    fraction = (match[7] or ".")[1:10]
    return Timestamp(nanos + int(fraction.ljust(9, "0")), offset)


def _days(year: int, month: int, day: int) -> int | None:
    """The days since 1970 of a date from the year 0 on; None where the calendar has none."""
    if not 1 <= month <= 12 or not 1 <= day <= monthrange(year + 400, month)[1]:
        return None
    # as the calendar repeats, the year 0 is like 400
    return (datetime(year or 400, month, day) - _EPOCH).days - (0 if year else _CYCLE // 86400)


def parse_timestamp(text: str) -> Timestamp | None:
    """A point in time in RFC 3339; None when it is none. Raises CelError outside of the years 1 to 9999."""
    match = _RFC3339.fullmatch(text)
    value = _moment(match) if match else None
    if value is not None and not MIN_TIME <= value.nanos <= MAX_TIME:
        raise CelError("timestamp overflow")
    return value


def parse_schema_timestamp(text: str) -> Timestamp | None:
    """A point in time as the schema's date-time format reads it, without a zone in UTC."""
    match = _SCHEMA_TIME.fullmatch(text)
    return _moment(match) if match else None


def schema_timestamp_problem(text: str) -> str:
    """Why a text that has the schema's date-time format is no point in time all the same, in Go's words."""
    if text[10:11] == "t":
        return f'parsing time {quote(text)} as "2006-01-02T15:04:05": cannot parse {quote(text[10:])} as "T"'
    match = _LOCAL_TIME.match(text)
    return f"parsing time {quote(text)}: extra text: {quote(text[match.end() :])}" if match else ""


def parse_date(text: str) -> Timestamp | None:
    """A day, as the beginning of it in UTC."""
    match = _DATE.fullmatch(text)
    if not match:
        return None
    days = _days(*map(int, match.groups()))
    return None if days is None else Timestamp(days * 86400 * SECOND)


def format_timestamp(value: Timestamp) -> str:
    """RFC 3339 with the offset that the time was written with, and as many decimals as it has."""
    seconds, nanos = divmod(value.nanos, SECOND)
    seconds += value.offset
    shift = (seconds < _FIRST) - (seconds > _LAST)
    local = _EPOCH + timedelta(seconds=seconds + shift * _CYCLE)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    zone = "Z"
    if value.offset:
        hours, minutes = divmod(abs(value.offset) // 60, 60)
        zone = f"{'-' if value.offset < 0 else '+'}{hours:02d}:{minutes:02d}"
    return f"{local.year - 400 * shift:04d}{local.isoformat(timespec='seconds')[4:]}{fraction}{zone}"


def in_zone(value: Timestamp, zone: str = "UTC") -> tuple[datetime, int]:
    """The time in a zone (an IANA name, or an offset such as `-08:00`), and what to add to its year.

    The calendar repeats after 400 years: so it is the same where the year in that zone is 0 or 10000. Raises CelError
    for an unknown zone.
    """
    where = _zone(zone)
    seconds = value.nanos // SECOND
    if isinstance(where, int):
        seconds += 60 * where
        where = UTC
    shift = 0
    if seconds < _EARLIEST:
        offset = where.utcoffset(datetime(1, 1, 3))
        seconds += int(offset.total_seconds()) if offset is not None else 0
        where = UTC
    if not _EARLIEST <= seconds <= _LATEST:
        shift = (seconds - _LATEST) // _CYCLE + 1
        seconds -= shift * _CYCLE
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return moment.astimezone(where), 400 * shift


def _zone(name: str) -> tzinfo | int:
    """A zone, or an offset in minutes; any is allowed."""
    if name in ("", "UTC", "Local"):
        return UTC
    hours, colon, minutes = name.partition(":")
    if not colon:
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise CelError(f"unknown time zone {name}") from None
    return _integer(hours) * 60 + (-_integer(minutes) if name[0] == "-" else _integer(minutes))


def _integer(text: str) -> int:
    body = text[1:] if text[:1] in ("+", "-") else text
    if not (body.isascii() and body.isdigit()) or len(body) > 18:
        raise CelError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)
