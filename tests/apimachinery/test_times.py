from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery import times

SECONDS = '"2006-01-02T15:04:05Z07:00"'
MICROS = '"2006-01-02T15:04:05.000000Z07:00"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29T01:02:03Z", "2024-02-29T01:02:03Z"),
        ("2024-01-01T02:00:00.9+02:00", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00,123456789Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T5:00:00Z", "2024-01-01T05:00:00Z"),
    ],
)
def test_times_are_answered_in_whole_seconds_of_utc(text, expected):
    assert times.format_time(times.parse_time(text)) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("yesterday", f'"yesterday" as {SECONDS}: cannot parse "yesterday" as "2006"'),
        ("2024-01-01", f'"2024-01-01" as {SECONDS}: cannot parse "" as "T"'),
        ("2024-13-01T00:00:00Z", '"2024-13-01T00:00:00Z": month out of range'),
        ("2024-02-30T00:00:00Z", '"2024-02-30T00:00:00Z": day out of range'),
        ("2024-01-01T24:00:00Z", '"2024-01-01T24:00:00Z": hour out of range'),
        ("2024-01-01T00:60:00Z", '"2024-01-01T00:60:00Z": minute out of range'),
        ("2024-01-01T00:00:00", f'"2024-01-01T00:00:00" as {SECONDS}: cannot parse "" as "Z07:00"'),
        ("2024-01-01T00:00:00Zx", '"2024-01-01T00:00:00Zx": extra text: "x"'),
        ("é", f'"\\xc3\\xa9" as {SECONDS}: cannot parse "\\xc3\\xa9" as "2006"'),
        ("2024-01-01T00:00:00+25:00", '"2024-01-01T00:00:00+25:00": time zone offset hour out of range'),
    ],
)
def test_what_is_no_time_is_told_as_go_tells_it(text, why):
    with pytest.raises(times.TimeError) as caught:
        times.parse_time(text)
    assert str(caught.value) == f"parsing time {why}"


@pytest.mark.parametrize(
    ("text", "rest"),
    [("2024-01-01T00:00:00Z", "Z"), ("2024-01-01T00:00:00.123Z", ".123Z"), ("2024-01-01T00:00:00.5Z", ".5Z")],
)
def test_micro_times_need_six_decimals(text, rest):
    with pytest.raises(times.TimeError) as caught:
        times.parse_micro_time(text)
    assert str(caught.value) == f'parsing time "{text}" as {MICROS}: cannot parse "{rest}" as ".000000"'


MOMENTS = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC))


@given(MOMENTS)
def test_what_is_printed_parses_to_the_same(moment):
    assert times.parse_micro_time(times.format_micro_time(moment)) == moment
    assert times.parse_time(times.format_time(moment)) == moment.replace(microsecond=0)
