"""Number keywords: ranges of formats, bounds, multiples.

Integers are compared as integers, with bounds cut to integers, as upstream does.

Source: kube-openapi `pkg/validation/validate/{validator,values}.go`; go-openapi swag `conv/convert.go`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from steersman._util.gotext import format_float
from steersman.apimachinery.schema.structural import INT64_MAX, INT64_MIN, Node

NO_VALUE = object()
Number = int | float
_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}
_MAX_JSON_INTEGER = 2**53 - 1


class Problem(NamedTuple):
    """A text, and the value that its cause quotes; NO_VALUE for errors that name no field."""

    text: str
    value: Any


def is_json_integer(value: float) -> bool:
    """Whether a float counts as an integer: within 2^53 and off by less than a billionth."""
    if not -_MAX_JSON_INTEGER <= value <= _MAX_JSON_INTEGER:
        return False
    nearest = math.floor(abs(value) + 0.5)
    if abs(value) == nearest:
        return True
    return nearest != 0 and abs(abs(value) - nearest) < 1e-9 * nearest


def problems(node: Node, value: Number, path: str) -> Iterator[Problem]:
    """What is wrong with a number, in upstream's order: its range, multipleOf, minimum, maximum."""
    only = node.types[0] if len(node.types) == 1 else ""
    name = only if only in _FORMATS else ""
    format_name = node.format if node.format in _FORMATS.get(name, ()) else ""
    yield from _range_problem(value, name, format_name, "Checked", path)
    if node.multiple_of is not None:
        out_of_range = list(_range_problem(node.multiple_of, name, format_name, "MultipleOf", path))
        yield from out_of_range
        yield from _multiple_problem(float(value) if out_of_range else value, node.multiple_of, path)
    if node.minimum is not None:
        out_of_range = list(_range_problem(node.minimum, name, format_name, "Minimum boundary", path))
        yield from out_of_range
        number, bound = _comparable(value, node.minimum, as_float=bool(out_of_range))
        if number < bound or (node.exclusive_minimum and number == bound):
            words = "greater than" if node.exclusive_minimum else "greater than or equal to"
            yield Problem(f"{path} in body should be {words} {_shown(bound)}", number)
    if node.maximum is not None:
        out_of_range = list(_range_problem(node.maximum, name, format_name, "Maximum boundary", path))
        yield from out_of_range
        number, bound = _comparable(value, node.maximum, as_float=bool(out_of_range))
        if number > bound or (node.exclusive_maximum and number == bound):
            words = "less than" if node.exclusive_maximum else "less than or equal to"
            yield Problem(f"{path} in body should be {words} {_shown(bound)}", number)


def _comparable(value: Number, bound: float, *, as_float: bool) -> tuple[Number, Number]:
    if isinstance(value, float) or as_float:
        return float(value), bound
    return value, to_int64(bound)


def to_int64(value: float) -> int:
    """A float cut to int64 as Go converts it on amd64: what does not fit becomes the smallest integer."""
    if value != value or not INT64_MIN <= value < 2**63:
        return INT64_MIN
    return int(value)


def _shown(value: Number) -> str:
    return format_float(value) if isinstance(value, float) else str(value)


def _multiple_problem(value: Number, factor: float, path: str) -> Iterator[Problem]:
    whole: Number = factor
    if isinstance(value, int):
        whole = to_int64(factor)
    if whole <= 0:
        yield Problem(f"factor MultipleOf declared for {path} must be positive: {_shown(whole)}", whole)
    elif not is_multiple(value, factor):
        yield Problem(f"{path} in body should be a multiple of {_shown(whole)}", value)


def is_multiple(value: Number, factor: float) -> bool:
    """Whether `value` is a multiple of a positive factor, of its whole part for integers."""
    if isinstance(value, int):
        return value % to_int64(factor) == 0
    return is_json_integer(1 / factor * value if factor < 1 else value / factor)


def fits_format(value: Number, name: str, format_name: str) -> bool:
    """Whether a number is in the range of its schema's type and format."""
    if name == "integer":
        if isinstance(value, float):
            if not value.is_integer():
                return False
            value = int(Decimal(repr(value)))  # upstream goes by the shortest text of the number
        low, high = (-(2**31), 2**31 - 1) if format_name == "int32" else (INT64_MIN, INT64_MAX)
        return low <= value <= high
    if format_name == "float":
        try:
            struct.pack("<f", value)
        except (OverflowError, struct.error):
            return False
    return True


def _range_problem(value: Number, name: str, format_name: str, what: str, path: str) -> Iterator[Problem]:
    if not fits_format(value, name, format_name):
        kind = f"with format {format_name}" if format_name else "(default format)"
        yield Problem(f"{what} value must be of type {name} {kind} in {path}", NO_VALUE)
