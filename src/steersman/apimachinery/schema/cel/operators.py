"""Equality, order and arithmetic on values whose kinds are known only at run time.

Source: cel-go `common/types/{compare,int,uint,double,list,map,null,util,overflow}.go`.
"""

from __future__ import annotations

from typing import Any

from steersman.apimachinery.schema.cel.costs import MAX_ITEMS
from steersman.apimachinery.schema.cel.errors import CelError, CostLimitExceeded, no_such_overload
from steersman.apimachinery.schema.cel.literals import INT_MAX, INT_MIN, UINT_MAX
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import (
    MISSING,
    Duration,
    ListLike,
    MapLike,
    Opaque,
    Optional,
    Timestamp,
    Uint,
    find,
    is_list,
    is_map,
    items_of,
    key_value,
)

COPIED = 1000
"""Lists up to this length are put together at once."""
_INTEGERS = frozenset({int, Uint})
_NUMBERS = _INTEGERS | {float}
_ORDERED = (str, bytes, bool, Duration, Timestamp)
ORDERED = frozenset({*_ORDERED, *_NUMBERS})
"""The kinds of values that have an order."""


class Concatenation(ListLike):
    """Long lists one after the other, put together when elements are asked for."""

    __slots__ = ("_items", "_parts", "_size")
    go_type = "*types.concatList"

    def __init__(self, left: Any, right: Any) -> None:
        self._parts: tuple[Any, ...] = (left, right)
        self._size = len(left) + len(right)
        self._items: list[Any] | None = None

    def __len__(self) -> int:
        return self._size

    def items(self) -> list[Any]:
        if self._items is None:
            if self._size > MAX_ITEMS:
                raise CostLimitExceeded
            out: list[Any] = []
            pending = [self]
            while pending:
                part: Any = pending.pop()
                if part.__class__ is Concatenation and part._items is None:
                    pending.extend(reversed(part._parts))
                else:
                    out += items_of(part)
            self._items, self._parts = out, ()
        return self._items

    def contains(self, value: Any) -> bool:
        return any(_equal_or_not(value, item) for item in self.items())

    def equals(self, other: Any) -> bool:
        return is_list(other) and len(other) == self._size and all(map(equal, self.items(), items_of(other)))

    def plus(self, other: Any) -> Any:
        return Concatenation(self, other)


def equal(left: Any, right: Any) -> bool:
    """`==`. Values of different kinds are unequal; some kinds have no such overload then."""
    a, b = left.__class__, right.__class__
    if left is None or right is None:
        return left is right
    if a in _NUMBERS:
        if b not in _NUMBERS:
            return False
        return bool(left == right) if (a is float) == (b is float) else float(left) == float(right)
    if isinstance(left, ListLike):
        return left.equals(right)
    if isinstance(left, MapLike):
        return left.equals(right)
    if isinstance(left, Opaque):
        return left.equals(right)
    if a is list:
        return is_list(right) and len(left) == len(right) and all(map(equal, left, items_of(right)))
    if a is dict:
        return is_map(right) and _same_map(left, right)
    if a is Type:
        return b is Type and left.name == right.name
    if a is Optional:
        return b is Optional and _same_optional(left, right)
    return a is b and bool(left == right)


def not_equal(left: Any, right: Any) -> bool:
    """`!=`: also true where the values cannot be compared."""
    try:
        return not equal(left, right)
    except CelError:
        return True


def _same_map(left: dict[Any, Any], right: Any) -> bool:
    if len(left) != len(right):
        return False
    for key, value in left.items():
        other = find(right, key_value(key))
        if other is MISSING or not equal(value, other):
            return False
    return True


def _same_optional(left: Optional, right: Optional) -> bool:
    if left.item is MISSING or right.item is MISSING:
        return left.item is right.item
    return equal(left.item, right.item)


def compare(left: Any, right: Any, function: str = "") -> int:
    """-1, 0 or 1. Raises CelError for values without order, `function` names the operator then."""
    a, b = left.__class__, right.__class__
    if a in _NUMBERS:
        if b not in _NUMBERS:
            raise no_such_overload()
        if left != left or right != right:
            raise CelError("NaN values cannot be ordered")
        if (a is float) != (b is float):
            left, right = float(left), float(right)
        return int(left > right) - int(left < right)
    if a not in _ORDERED:
        raise no_such_overload(function)
    if a is not b:
        raise no_such_overload()
    return int(right < left) - int(left < right)


def less(left: Any, right: Any) -> bool:
    return compare(left, right, "_<_") < 0


def less_equal(left: Any, right: Any) -> bool:
    return compare(left, right, "_<=_") <= 0


def greater(left: Any, right: Any) -> bool:
    return compare(left, right, "_>_") > 0


def greater_equal(left: Any, right: Any) -> bool:
    return compare(left, right, "_>=_") >= 0


def contains(value: Any, container: Any) -> bool:
    """`value in container`."""
    if container.__class__ is list:
        return any(_equal_or_not(value, item) for item in container)
    if isinstance(container, ListLike):
        return container.contains(value)
    if is_map(container):
        return find(container, value) is not MISSING
    raise no_such_overload()


def _equal_or_not(left: Any, right: Any) -> bool:
    try:
        return equal(left, right)
    except CelError:
        return False


def checked_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def checked_uint(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise CelError("unsigned integer overflow")


def _same_number(left: Any, right: Any, function: str, kinds: frozenset[type[Any]] = _NUMBERS) -> type[Any]:
    if left.__class__ not in kinds:
        raise no_such_overload("" if left.__class__ in (str, Duration, Timestamp) else function)
    if right.__class__ is not left.__class__:
        raise no_such_overload()
    return type(left)


def add(left: Any, right: Any) -> Any:
    kind = left.__class__
    if kind is list or isinstance(left, ListLike):
        if not is_list(right):
            raise no_such_overload()
        if kind is list:
            return left + items_of(right) if len(left) + len(right) <= COPIED else Concatenation(left, right)
        return left.plus(right)
    if kind is Timestamp and right.__class__ is Duration:
        return Timestamp.checked(left.nanos + right.nanos, left.offset)
    if kind is Duration and right.__class__ is Timestamp:
        return Timestamp.checked(left.nanos + right.nanos, right.offset)
    if kind is not right.__class__:
        raise no_such_overload("" if kind in _ADDABLE else "_+_")
    if kind is int:
        return checked_int(left + right)
    if kind is Uint:
        return checked_uint(int(left) + int(right))
    if kind is Duration:
        return Duration.checked(left.nanos + right.nanos)
    if kind is str or kind is bytes or kind is float:
        return left + right
    raise no_such_overload("" if kind is Timestamp else "_+_")


_ADDABLE = frozenset({int, Uint, float, str, bytes, Duration, Timestamp})


def subtract(left: Any, right: Any) -> Any:
    kind, other = left.__class__, right.__class__
    if kind is Timestamp:
        if other is Timestamp:
            return Duration(checked_int(left.nanos - right.nanos))
        if other is Duration:
            return Timestamp.checked(left.nanos - right.nanos, left.offset)
        raise no_such_overload()
    if kind is Duration and other is Duration:
        return Duration.checked(left.nanos - right.nanos)
    kind = _same_number(left, right, "_-_")
    if kind is int:
        return checked_int(left - right)
    return checked_uint(int(left) - int(right)) if kind is Uint else left - right


def multiply(left: Any, right: Any) -> Any:
    kind = _same_number(left, right, "_*_")
    if kind is int:
        return checked_int(left * right)
    return checked_uint(int(left) * int(right)) if kind is Uint else left * right


def divide(left: Any, right: Any) -> Any:
    kind = _same_number(left, right, "_/_")
    if kind is float:
        return _divide_doubles(left, right)
    if right == 0:
        raise CelError("division by zero")
    if kind is Uint:
        return Uint(int(left) // int(right))
    quotient = abs(left) // abs(right)
    return checked_int(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or left != left:
        return float("nan")
    negative = (left < 0) != (str(right)[0] == "-")
    return float("-inf") if negative else float("inf")


def modulo(left: Any, right: Any) -> Any:
    kind = _same_number(left, right, "_%_", _INTEGERS)
    if right == 0:
        raise CelError("modulus by zero")
    if kind is Uint:
        return Uint(int(left) % int(right))
    if left == INT_MIN and right == -1:
        raise CelError("integer overflow")
    remainder = abs(left) % abs(right)
    return remainder if left >= 0 else -remainder


def negate(value: Any) -> Any:
    kind = value.__class__
    if kind is int:
        return checked_int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return Duration.checked(-value.nanos)
    raise no_such_overload("" if kind in (bool, str, Timestamp) else "-_")


def logical_not(value: Any) -> bool:
    if value.__class__ is not bool:
        raise no_such_overload()
    return not value
