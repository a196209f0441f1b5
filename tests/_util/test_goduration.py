"""Durations as Go writes and reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman._util.goduration import duration_error, format_nanoseconds, parse_nanoseconds

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5µs"),
        (-5_000_000, "-5ms"),
        (1_000_001, "1.000001ms"),
        (SECOND, "1s"),
        (90 * SECOND, "1m30s"),
        (5400 * SECOND, "1h30m0s"),
        (100 * 3600 * SECOND + 1, "100h0m0.000000001s"),
        (-90 * 60 * SECOND, "-1h30m0s"),
    ],
)
def test_how_durations_are_written(nanoseconds: int, text: str) -> None:
    assert format_nanoseconds(nanoseconds) == text


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_what_is_written_is_read_again(nanoseconds: int) -> None:
    assert parse_nanoseconds(format_nanoseconds(nanoseconds)) == nanoseconds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'invalid duration ""'),
        ("soon", 'invalid duration "soon"'),
        (".s", 'invalid duration ".s"'),
        ("5", 'missing unit in duration "5"'),
        ("1h5", 'missing unit in duration "1h5"'),
        ("1x", 'unknown unit "x" in duration "1x"'),
        ("-1 s", 'unknown unit " s" in duration "-1 s"'),
        ('1"é', 'unknown unit "\\"\\xc3\\xa9" in duration "1\\"\\xc3\\xa9"'),
        ("9223372036854775809x", 'invalid duration "9223372036854775809x"'),
        ("9" * 5000, f'invalid duration "{"9" * 5000}"'),
    ],
)
def test_what_is_said_of_other_texts(text: str, why: str) -> None:
    assert parse_nanoseconds(text) is None
    assert duration_error(text) == f"time: {why}"
