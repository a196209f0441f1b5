"""Schedules of CronJobs: five fields, `@daily` and the like, `@every DURATION`.

Source: github.com/robfig/cron/v3 `parser.go`; kubernetes `pkg/apis/batch/validation/validation.go`.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from functools import cache

from steersman._util.goduration import duration_error
from steersman._util.gotext import quote
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

_FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES: tuple[Mapping[str, int], ...] = (
    {},
    {},
    {},
    {name: index for index, name in enumerate(_MONTHS, 1)},
    {name: index for index, name in enumerate(_DAYS)},
)
_DESCRIPTORS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_UNITS = ("ns", "us", "µs", "μs", "ms", "h", "m", "s")


class ScheduleError(ValueError):
    """A schedule that cannot be parsed; the message is upstream's."""


def schedule_errors(schedule: str, zone: str | None, field: str, *, zones_allowed: bool) -> list[FieldError]:
    """What is wrong with a schedule; a zone inside it is only kept where it was before."""
    errors = []
    try:
        check(schedule)
    except ScheduleError as error:
        errors.append(fe.invalid(field, schedule, str(error)))
    if "TZ" in schedule:
        if not zones_allowed:
            text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(fe.invalid(field, schedule, text))
        elif zone is not None:
            errors.append(fe.invalid(field, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))
    return errors


def time_zone_errors(zone: str | None, field: str) -> list[FieldError]:
    if zone is None:
        return []
    if not zone:
        return [fe.invalid(field, zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        return [
            fe.invalid(
                field, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
            )
        ]
    return [] if zone in _zones() else [fe.invalid(field, zone, f"unknown time zone {zone}")]


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def check(schedule: str) -> None:
    """Parse a schedule; ScheduleError says what is wrong with it."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        schedule = schedule.partition(" ")[2].strip()
    if schedule.startswith("@"):
        _descriptor(schedule)
        return
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    for index, part in enumerate(parts):
        for item in filter(None, part.split(",")):  # upstream drops what is empty between commas
            _range(item, index)


def _descriptor(schedule: str) -> None:
    if schedule in _DESCRIPTORS:
        return
    if not schedule.startswith("@every "):
        raise ScheduleError(f"unrecognized descriptor: {schedule}")
    text = schedule[len("@every ") :]
    if not _is_duration(text):
        raise ScheduleError(f"failed to parse duration {schedule}: {duration_error(text)}")


def _is_duration(text: str) -> bool:
    """Whether Go's time.ParseDuration takes the text."""
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return True
    if not rest:
        return False
    while rest:
        digits = rest.lstrip("0123456789.")
        number, rest = rest[: len(rest) - len(digits)], digits
        unit = next((unit for unit in _UNITS if rest.startswith(unit)), None)
        if not number.strip(".") or number.count(".") > 1 or unit is None:
            return False
        rest = rest[len(unit) :]
    return True


def _range(text: str, field: int) -> None:
    """One item of a field: `*`, `5`, `1-5`, each with an optional `/step`."""
    low, high = _FIELDS[field]
    span, *steps = text.split("/")
    bounds = span.split("-")
    first, last = low, high
    if bounds[0] not in ("*", "?"):
        first = last = _number(bounds[0], field)
        if len(bounds) > 2:
            raise ScheduleError(f"too many hyphens: {text}")
        if len(bounds) == 2:
            last = _number(bounds[1], field)
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = _integer(steps[0]) if steps else 1
    if steps and len(bounds) == 1:
        last = high
    if first < low:
        raise ScheduleError(f"beginning of range ({first}) below minimum ({low}): {text}")
    if last > high:
        raise ScheduleError(f"end of range ({last}) above maximum ({high}): {text}")
    if first > last:
        raise ScheduleError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")


def _number(text: str, field: int) -> int:
    named = _NAMES[field].get(text.lower())
    return _integer(text) if named is None else named


def _integer(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isascii() or not digits.isdigit():
        raise ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: invalid syntax")
    number = int(text)
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
