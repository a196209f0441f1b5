"""Resource quantities.

Source: apiserver `pkg/cel/library/quantity.go`; apimachinery `pkg/api/resource/quantity.go`.
"""

from __future__ import annotations

from dataclasses import dataclass

from steersman.apimachinery import quantity
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.cel.literals import INT_MAX, INT_MIN
from steersman.apimachinery.schema.cel.values import Opaque


@dataclass(frozen=True, slots=True)
class QuantityValue(Opaque):
    """A resource quantity."""

    amount: quantity.Quantity
    cel_type = t.QUANTITY


def _parse(text: str) -> QuantityValue:
    try:
        return QuantityValue(quantity.parse(text))
    except quantity.QuantityError as error:
        raise CelError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


def _compare(left: QuantityValue, right: QuantityValue) -> int:
    return (left.amount > right.amount) - (left.amount < right.amount)


def _plus(left: QuantityValue, unscaled: int, scale: int) -> QuantityValue:
    low = min(left.amount.scale, scale)
    total = left.amount.unscaled * 10 ** (left.amount.scale - low) + unscaled * 10 ** (scale - low)
    return QuantityValue(quantity.Quantity(total, low, left.amount.format))


def _add(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    return _plus(left, right.amount.unscaled, right.amount.scale)


def _sub(left: QuantityValue, right: QuantityValue) -> QuantityValue:
    return _plus(left, -right.amount.unscaled, right.amount.scale)


def _whole(value: QuantityValue) -> int | None:
    """The amount as an integer, if it is one that fits 64 bits."""
    unscaled, scale = value.amount.unscaled, value.amount.scale
    if scale < 0:
        unscaled, rest = divmod(unscaled, 10**-scale)
        if rest:
            return None
    else:
        unscaled *= 10**scale
    return unscaled if INT_MIN <= unscaled <= INT_MAX else None


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
    "quantity_add_int": lambda left, right: _plus(left, right, 0),
    "quantity_sub": _sub,
    "quantity_sub_int": lambda left, right: _plus(left, -right, 0),
}
