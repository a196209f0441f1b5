"""Points in time on the wire: parsed and printed as Go's `time` package does for metav1.Time and metav1.MicroTime.

Source: apimachinery `pkg/apis/meta/v1/{time,micro_time}.go`; Go `src/time/format.go` (Parse and its errors).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

RFC3339 = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO = "2006-01-02T15:04:05.000000Z07:00"

_ESCAPED = {'"': '\\"', "\\": "\\\\"}


class TimeError(ValueError):
    """Text that is no time; the message is Go's."""


def parse_time(text: str) -> datetime:
    """RFC 3339 with any number of decimals, in UTC with microseconds."""
    return _Parser(text, RFC3339).parse()


def parse_micro_time(text: str) -> datetime:
    """RFC 3339 with exactly six decimals, in UTC."""
    return _Parser(text, RFC3339_MICRO).parse()


def format_time(moment: datetime) -> str:
    """Whole seconds in UTC, as metav1.Time is printed."""
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def format_micro_time(moment: datetime) -> str:
    """Microseconds in UTC, as metav1.MicroTime is printed."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


class _Parser:
    """One pass over the text, element by element of the layout; the first element that does not fit is named."""

    def __init__(self, text: str, layout: str) -> None:
        self.text = text
        self.rest = text
        self.layout = layout

    def parse(self) -> datetime:
        year = self._number("2006", 4)
        self._skip("-")
        month = self._number("01", 2, 1, 12, "month")
        self._skip("-")
        day = self._number("02", 2)
        self._skip("T")
        hour = self._hour()
        self._skip(":")
        minute = self._number("04", 2, 0, 59, "minute")
        self._skip(":")
        second = self._number("05", 2, 0, 59, "second")
        microsecond = self._fixed_fraction() if self.layout == RFC3339_MICRO else self._free_fraction()
        offset = self._zone()
        if self.rest:
            raise TimeError(f"parsing time {_quote(self.text)}: extra text: {_quote(self.rest)}")
        try:
            moment = datetime(year, month, day, hour, minute, second, microsecond, UTC)
        except ValueError:
            raise self._out_of_range("day") from None
        return moment - offset

    def _fail(self, element: str, at: str | None = None) -> TimeError:
        where = self.rest if at is None else at
        return TimeError(
            f"parsing time {_quote(self.text)} as {_quote(self.layout)}: cannot parse {_quote(where)} "
            f"as {_quote(element)}"
        )

    def _out_of_range(self, what: str) -> TimeError:
        return TimeError(f"parsing time {_quote(self.text)}: {what} out of range")

    def _skip(self, literal: str) -> None:
        if not self.rest.startswith(literal):
            raise self._fail(literal)
        self.rest = self.rest[len(literal) :]

    def _number(self, element: str, digits: int, low: int = 0, high: int = 9999, what: str = "") -> int:
        head = self.rest[:digits]
        if len(head) < digits or not (head.isascii() and head.isdigit()):
            raise self._fail(element)
        value = int(head)
        self.rest = self.rest[digits:]
        if not low <= value <= high:
            raise self._out_of_range(what)
        return value

    def _hour(self) -> int:
        head = self.rest[:2]
        if not (head.isascii() and head[:1].isdigit()):
            raise self._fail("15")
        digits = 2 if head.isdigit() and len(head) == 2 else 1
        return self._number("15", digits, 0, 23, "hour")

    def _fixed_fraction(self) -> int:
        head = self.rest[:7]
        if len(head) < 7 or head[0] not in ".," or not (head.isascii() and head[1:].isdigit()):
            raise self._fail(".000000")
        self.rest = self.rest[7:]
        return int(head[1:])

    def _free_fraction(self) -> int:
        if len(self.rest) < 2 or self.rest[0] not in ".," or not "0" <= self.rest[1] <= "9":
            return 0
        end = 1
        while end < len(self.rest) and "0" <= self.rest[end] <= "9":
            end += 1
        decimals = self.rest[1:end]
        self.rest = self.rest[end:]
        return int(decimals[:6].ljust(6, "0"))

    def _zone(self) -> timedelta:
        if self.rest.startswith("Z"):
            self.rest = self.rest[1:]
            return timedelta()
        zone = self.rest[:6]
        digits = zone[1:3] + zone[4:6]
        if len(zone) < 6 or zone[3] != ":" or zone[0] not in "+-" or not (digits.isascii() and digits.isdigit()):
            raise self._fail("Z07:00")
        hours, minutes = int(digits[:2]), int(digits[2:])
        if hours > 24:
            raise self._out_of_range("time zone offset hour")
        if minutes > 60:
            raise self._out_of_range("time zone offset minute")
        self.rest = self.rest[6:]
        offset = timedelta(hours=hours, minutes=minutes)
        return -offset if zone[0] == "-" else offset


def _quote(text: str) -> str:
    """As Go's time package quotes: bytes outside of printable ASCII as \\xNN."""
    out = []
    for ch in text:
        if ch in _ESCAPED:
            out.append(_ESCAPED[ch])
        elif " " <= ch <= "~":
            out.append(ch)
        else:
            out.extend(f"\\x{byte:02x}" for byte in ch.encode("utf-8", "surrogatepass"))
    return f'"{"".join(out)}"'
