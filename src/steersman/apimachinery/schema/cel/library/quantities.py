"""Resource quantities.

Upstream keeps an amount as an integer and a power of ten while it can, and as a decimal of any size otherwise; which of
the two it is decides whether an amount counts as an integer.

Source: apiserver `pkg/cel/library/quantity.go`; apimachinery `pkg/api/resource/{quantity,amount}.go`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from steersman.apimachinery import quantity
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.cel.literals import INT_MAX, INT_MIN
from steersman.apimachinery.schema.cel.values import Opaque

_PARTS = re.compile(r"([+-]?)0*([0-9]*)\.?([0-9]*)(.*)", re.DOTALL)
_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DIGITS = 18
_MAX_SHIFT = 10_000
"""Most powers of ten between quantities that are added: each is a digit of the sum."""


class _Small(NamedTuple):
    """An amount that upstream keeps in 64 bits: `value * 10**scale`."""

    value: int
    scale: int

    def plus(self, other: _Small) -> _Small | None:
        if not other.value:
            return self
        if not self.value:
            return other
        scale = min(self.scale, other.scale)
        if max(self.scale, other.scale) - scale > _DIGITS:
            return None
        mine, theirs = self.value * 10 ** (self.scale - scale), other.value * 10 ** (other.scale - scale)
        fits = all(INT_MIN <= each <= INT_MAX for each in (mine, theirs, mine + theirs))
        return _Small(mine + theirs, scale) if fits else None

    def whole(self) -> int | None:
        """The amount as an integer, if it has no fraction by its scale and fits 64 bits."""
        if self.scale < 0 or (self.value and self.scale > _DIGITS):
            return None
        total = self.value and self.value * 10**self.scale
        return total if INT_MIN <= total <= INT_MAX else None


@dataclass(frozen=True, slots=True)
class QuantityValue(Opaque):
    """A resource quantity; `small` is None for an amount that upstream keeps as a decimal."""

    amount: quantity.Quantity
    small: _Small | None
    cel_type = t.QUANTITY
    go_type = "cel.Quantity"

    def equals(self, other: object) -> bool:
        if not isinstance(other, QuantityValue):
            return Opaque.equals(self, other)
        return self.amount == other.amount


def _parse(text: str) -> QuantityValue:
    try:
        amount = quantity.parse(text)
    except quantity.QuantityError as error:
        raise CelError(str(error)) from None
    return QuantityValue(amount, _small(text))


def _small(text: str) -> _Small | None:
    """What upstream keeps of a valid quantity's text in 64 bits."""
    match = _PARTS.fullmatch(text)
    assert match is not None
    whole, fraction, suffix = match[2] or "0", match[3], match[4]
    value = int(match[2] + fraction or "0")
    sign = -1 if match[1] == "-" else 1
    if suffix in _BINARY:
        bits = _BINARY[suffix]
        if fraction or 15 - len(whole) - bits * 3 // 10 - 1 < 0:
            return None
        return _Small(sign * value << bits, 0)
    exponent = _EXPONENTS[suffix] if suffix in _EXPONENTS else int(suffix[1:])
    if len(whole) + len(fraction) > _DIGITS or exponent - len(fraction) < -9:
        return None
    return _Small(sign * value, exponent - len(fraction))


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


def _compare(left: QuantityValue, right: QuantityValue) -> int:
    return (left.amount > right.amount) - (left.amount < right.amount)


def _add(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    a, b = left.amount, right.amount
    low = min(a.scale, b.scale)
    if max(a.scale, b.scale) - low > _MAX_SHIFT:
        raise CelError("quantities are too far apart to be added")
    total = a.unscaled * 10 ** (a.scale - low) + b.unscaled * 10 ** (b.scale - low)
    small = left.small.plus(right.small) if left.small is not None and right.small is not None else None
    return QuantityValue(quantity.Quantity(total, low, a.format if a.unscaled else b.format), small)


def _negative(value: QuantityValue) -> QuantityValue:
    amount = quantity.Quantity(-value.amount.unscaled, value.amount.scale, value.amount.format)
    small = value.small
    return QuantityValue(amount, small and _Small(-small.value, small.scale))


def _of_int(value: int) -> QuantityValue:
    return QuantityValue(quantity.Quantity(value, 0, quantity.DECIMAL_EXPONENT), _Small(value, 0))


def _whole(value: QuantityValue) -> int | None:
    return value.small.whole() if value.small is not None else None


def _as_integer(value: QuantityValue) -> int:
    whole = _whole(value)
    if whole is None:
        raise CelError("cannot convert value to integer")
    return whole


def _as_float(value: QuantityValue) -> float:
    unscaled, scale = value.amount.unscaled, value.amount.scale
    try:
        return float(unscaled) * 10.0**scale if scale >= 0 else float(unscaled) / 10.0**-scale
    except OverflowError:
        return float("inf") if unscaled > 0 else float("-inf")


def _sign(value: QuantityValue) -> int:
    amount = value.amount.unscaled
    return (amount > 0) - (amount < 0)


OVERLOADS: dict[str, Function] = {
    "string_to_quantity": _parse,
    "is_quantity_string": _is_quantity,
    "quantity_sign": _sign,
    "quantity_is_greater_than": lambda left, right: _compare(left, right) == 1,
    "quantity_is_less_than": lambda left, right: _compare(left, right) == -1,
    "quantity_compare_to": _compare,
    "quantity_get_float": _as_float,
    "quantity_get_int": _as_integer,
    "quantity_is_integer": lambda value: _whole(value) is not None,
    "quantity_add": _add,
    "quantity_add_int": lambda left, right: _add(left, _of_int(right)),
    "quantity_sub": lambda left, right: _add(left, _negative(right)),
    "quantity_sub_int": lambda left, right: _add(left, _of_int(-right)),
}
