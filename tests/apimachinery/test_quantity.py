import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery import quantity

FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "1"),
        ("0", "0"),
        ("0.0", "0"),
        ("-0", "0"),
        ("01", "01"),
        ("+1", "+1"),
        ("1.", "1."),
        ("0.1", "100m"),
        (".5", "500m"),
        ("-.5m", "-500u"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.50", "1500m"),
        ("1000", "1k"),
        ("5000", "5k"),
        ("1000000", "1M"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("1.234567891234", "1234567892n"),
        ("1E", "1E"),
        ("1000E", "1"),
        ("9999999999999999999", "9999999999999999999"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("1000Gi", "1000Gi"),
        ("1.1Mi", "1153433600m"),
        ("0.001Ki", "1024m"),
        ("16Ei", "9223372036854775807"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1e-12", "1e-9"),
        ("1e19", "10e18"),
        ("1e30", "1e30"),
    ],
)
def test_canonical_form(text, expected):
    assert quantity.canonical(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", FORMAT),
        ("abc", FORMAT),
        (" 1", FORMAT),
        ("1.2.3", FORMAT),
        ("1kk", "unable to parse quantity's suffix"),
        ("1e", "unable to parse quantity's suffix"),
        ("1i", "unable to parse quantity's suffix"),
        ("1" * 1025, "unable to parse numeric part of quantity"),
    ],
)
def test_refused(text, message):
    with pytest.raises(quantity.QuantityError) as caught:
        quantity.parse(text)
    assert str(caught.value) == message


QUANTITIES = st.builds(
    lambda sign, number, suffix: f"{sign}{number}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.from_regex(r"[0-9]{1,15}(\.[0-9]{1,9})?", fullmatch=True),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "e3", "e-3", "E6"]),
)


@given(QUANTITIES)
def test_the_canonical_form_is_stable_and_means_the_same(text):
    once = quantity.canonical(text)
    assert quantity.canonical(once) == once
    assert quantity.parse(once) == quantity.parse(text)


@given(QUANTITIES, QUANTITIES)
def test_order_is_total(first, second):
    one, other = quantity.parse(first), quantity.parse(second)
    assert (one < other) + (one == other) + (one > other) == 1
    if one == other:
        assert hash(one) == hash(other)


def _quantities():
    digits = st.integers(min_value=-(10**9), max_value=10**9)
    return st.builds(lambda number, suffix: quantity.parse(f"{number}{suffix}"), digits, st.sampled_from(SUFFIXES))


SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "Ki", "Mi", "Gi", "e3"]


def _value(amount):
    return Fraction(amount.unscaled) * Fraction(10) ** amount.scale


@given(_quantities(), _quantities(), st.sampled_from([0, -3]))
def test_sums_differences_and_rounding_are_exact(left, right, scale):
    assert _value(left + right) == _value(left) + _value(right)
    assert _value(left - right) == _value(left) - _value(right)
    assert left.rounded_up(scale) == math.ceil(_value(left) / Fraction(10) ** scale)


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [
        ("1Gi", "1Gi", "2Gi"),
        ("512Mi", "1G", "1536870912"),
        ("1G", "512Mi", "1536870912"),
        ("0", "1Gi", "1Gi"),
        ("1500m", "500m", "2"),
        ("1", "1e3", "1001"),
    ],
)
def test_a_sum_has_the_format_of_its_first_part(left, right, total):
    assert str(quantity.parse(left) + quantity.parse(right)) == total
