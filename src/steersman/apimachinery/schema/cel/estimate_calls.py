"""Estimated costs of calls, and the sizes of their results.

Source: cel-go `checker/cost.go` (functionCost), `ext/{lists,sets}.go`; apiserver `pkg/cel/library/cost.go`
(EstimateCallCost).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.ast import Expr, Literal
from steersman.apimachinery.schema.cel.ranges import MOST, ONE, UNKNOWN, ZERO, Range, fixed
from steersman.apimachinery.schema.cel.types import Type

_TRAVERSAL, _REGEX = 0.1, 0.25
_LONGEST_FORMAT_REGEX, _LONGEST_FORMAT = 128, 64


class CallEstimate(NamedTuple):
    """The cost of a call without its arguments, and the size of its result where it is known."""

    cost: Range
    size: Range | None = None


@dataclass(slots=True)
class Operand:
    """An argument or receiver; `path_size` gives the size of data at a path."""

    expr: Expr
    path: tuple[str, ...]
    computed: Range | None
    path_size: Callable[[tuple[str, ...]], Range | None]

    @property
    def size(self) -> Range:
        if self.computed is not None:
            return self.computed
        found = self.path_size(self.path)
        return UNKNOWN if found is None else found

    @property
    def size_in_expression(self) -> Range:
        return UNKNOWN if self.computed is None else self.computed

    def element(self) -> tuple[Type, Range] | None:
        """The type and size of a list's elements."""
        if not self.expr.type.params:
            return None
        found = self.path_size((*self.path, "@items")) if self.path else None
        return self.expr.type.params[0], UNKNOWN if found is None else found

    def literal(self, otherwise: int) -> int:
        """The value of an integer literal, 0 for a negative one."""
        if not isinstance(self.expr, Literal) or self.expr.value.__class__ is not int:
            return otherwise
        return max(self.expr.value, 0)


_Args = list[Operand]
_Estimate = Callable[[Operand | None, _Args], CallEstimate | None]


def estimate_call(function: str, overload: str, target: Operand | None, args: _Args) -> CallEstimate:
    """The estimate for one overload; calls that nothing is known about cost 1."""
    tables = (_EXTENSIONS, overload), (_LIBRARY_OVERLOADS, overload), (_LIBRARY, function), (_STANDARD, overload)
    for table, name in tables:
        estimate = table.get(name)
        if estimate is not None:
            found = estimate(target, args)
            if found is not None:
                return found
    return CallEstimate(ONE)


# -- cel-go's list and set libraries


def _allocating(factor: float, size: Range) -> CallEstimate:
    return CallEstimate(size.scaled(factor).plus(ONE).plus(fixed(10)), size)


def _wrapped(value: int) -> int:
    """Unsigned 64-bit subtraction may wrap."""
    return value % (MOST + 1)


def _slice(target: Operand | None, args: _Args) -> CallEstimate | None:
    if target is None:
        return None
    size = fixed(_wrapped(args[1].literal(target.size.high) - args[0].literal(0)))
    return _allocating(1, size)


def _range(target: Operand | None, args: _Args) -> CallEstimate | None:
    return _allocating(1, fixed(args[0].literal(MOST)))


def _reverse(target: Operand | None, args: _Args) -> CallEstimate | None:
    return _allocating(1, target.size) if target is not None else None


def _flatten(target: Operand | None, args: _Args) -> CallEstimate | None:
    if target is None:
        return None
    return _allocating(float(args[0].literal(MOST)) if args else 1.0, target.size)


def _self_compare(factor: float, size: Range) -> CallEstimate:
    return _allocating(factor, size.times(size))


def _distinct(target: Operand | None, args: _Args) -> CallEstimate | None:
    return _self_compare(2.0, target.size) if target is not None else None


def _sort(kind: str) -> _Estimate:
    factor = 2.0 + (_TRAVERSAL if kind in ("string", "bytes") else 0.0)

    def estimate(target: Operand | None, args: _Args) -> CallEstimate | None:
        sorted_by = args[0] if args else target
        return _self_compare(factor, sorted_by.size) if sorted_by is not None else None

    return estimate


def _sets(factor: float) -> _Estimate:
    return lambda target, args: CallEstimate(args[0].size.times(args[1].size).scaled(factor).plus(ONE))


_KINDS = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]
_EXTENSIONS: dict[str, _Estimate] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
    **{f"list_{kind}_sort": _sort(kind) for kind in _KINDS},
    **{f"list_{kind}_sortByAssociatedKeys": _sort(kind) for kind in _KINDS},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}


# -- Kubernetes' libraries


def _each_element(target: Operand | None, args: _Args) -> CallEstimate | None:
    if target is None:
        return None
    element = target.element()
    if element is None:
        return CallEstimate(target.size.scaled(_TRAVERSAL))
    cost = ONE
    if element[0].kind in ("string", "bytes"):
        cost = cost.plus(element[1].scaled(_TRAVERSAL))
    return CallEstimate(target.size.times(cost))


def _scan_argument(factor: float, *, sized: bool = False) -> _Estimate:
    def estimate(target: Operand | None, args: _Args) -> CallEstimate | None:
        if not args:
            return None
        size = args[0].size
        return CallEstimate(size.scaled(factor), size if sized else None)

    return estimate


def _scan_target(target: Operand | None, args: _Args) -> CallEstimate | None:
    return CallEstimate(target.size.scaled(_TRAVERSAL), target.size) if target is not None else None


def _replace(target: Operand | None, args: _Args) -> CallEstimate | None:
    if target is None or len(args) < 2:
        return None
    size, old, new = target.size, args[0].size, args[1].size
    most, kept_most = _replacements(size.high, old.low, new.high <= old.low)
    least, kept_least = _replacements(size.low, old.high, old.high <= new.low)
    result = Range(least, most).times(new).plus(Range(kept_least, kept_most))
    return CallEstimate(size.scaled(2 * _TRAVERSAL), result)


def _replacements(size: int, old: int, keeps_size: bool) -> tuple[int, int]:
    """(how often something is replaced, how much of the text stays)."""
    if old == 0:
        return min(size + 1, MOST), size
    if keeps_size:
        return 0, size
    return min(math.ceil(float(size) / float(old)), MOST), 0


def _split(target: Operand | None, args: _Args) -> CallEstimate | None:
    if target is None:
        return None
    most = target.size.high
    if len(args) > 1:
        limit = args[1].expr
        if isinstance(limit, Literal) and limit.value.__class__ is int:
            most = _wrapped(limit.value)
    return CallEstimate(target.size.scaled(2 * _TRAVERSAL), Range(0, most))


def _join(target: Operand | None, args: _Args) -> CallEstimate | None:
    if target is None:
        return None
    count = target.size
    element = target.element()
    size = count.times(element[1]) if element is not None else ZERO
    if args:
        separators = Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.plus(args[0].size.times(separators))
    return CallEstimate(size.scaled(_TRAVERSAL), size)


def _find(target: Operand | None, args: _Args) -> CallEstimate | None:
    if target is None or not args:
        return None
    text = target.size.plus(ONE).scaled(_TRAVERSAL)
    return CallEstimate(text.times(args[0].size.scaled(_REGEX)), Range(0, target.size.high))


def _contains_ip(target: Operand | None, args: _Args) -> CallEstimate | None:
    return CallEstimate(Range(8, 32).scaled(_TRAVERSAL))


def _contains_cidr(target: Operand | None, args: _Args) -> CallEstimate | None:
    return CallEstimate(Range(8, 32).scaled(_TRAVERSAL).plus(Range(4, 16).scaled(_TRAVERSAL)).plus(ONE))


def _parsing(estimate: _Estimate) -> _Estimate:
    """The same for a string that has to be parsed before."""

    def parsed(target: Operand | None, args: _Args) -> CallEstimate | None:
        found = estimate(target, args)
        return found and CallEstimate(found.cost.plus(args[0].size.scaled(_TRAVERSAL)))

    return parsed


def _validate(target: Operand | None, args: _Args) -> CallEstimate | None:
    return CallEstimate(args[0].size.scaled(_TRAVERSAL).scaled(_LONGEST_FORMAT_REGEX * _REGEX))


def _equality(target: Operand | None, args: _Args) -> CallEstimate | None:
    kind = args[0].expr.type
    if kind != args[1].expr.type:
        return None
    if kind in (t.IP, t.CIDR, t.QUANTITY, t.SEMVER):
        return CallEstimate(ONE)
    if kind == t.NAMED_FORMAT:
        return CallEstimate(Range(1, _LONGEST_FORMAT).scaled(_TRAVERSAL))
    if kind == t.URL:
        size = args[1].computed or ONE
        return CallEstimate(Range(1, size.high).scaled(_TRAVERSAL))
    return None


def _authorization(target: Operand | None, args: _Args) -> CallEstimate | None:
    return CallEstimate(fixed(350_000))


def _selector(target: Operand | None, args: _Args) -> CallEstimate | None:
    size = args[0].size
    return CallEstimate(fixed(10).plus(size.scaled(_TRAVERSAL)).plus(size.scaled(0.5).scaled(50)))


def _one(target: Operand | None, args: _Args) -> CallEstimate | None:
    return CallEstimate(ONE)


_LIBRARY: dict[str, _Estimate] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _each_element),
    "url": _scan_argument(_TRAVERSAL, sized=True),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _scan_target),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _scan_argument(_TRAVERSAL)
    ),
    "ip.isCanonical": _scan_argument(2 * _TRAVERSAL),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "format.named": _one,
    "check": _authorization,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    "_==_": _equality,
}


_LIBRARY_OVERLOADS: dict[str, _Estimate] = {
    "cidr_ip": _one,
    "cidr_contains_ip_string": _parsing(_contains_ip),
    "cidr_contains_cidr_string": _parsing(_contains_cidr),
}


# -- cel-go's standard functions


def _format(target: Operand | None, args: _Args) -> CallEstimate | None:
    return CallEstimate(target.size_in_expression.scaled(_TRAVERSAL)) if target is not None else None


def _to_bytes(target: Operand | None, args: _Args) -> CallEstimate | None:
    size = args[0].size_in_expression
    return CallEstimate(size.scaled(_TRAVERSAL), Range(size.low, _wrapped(size.high * 4)))


def _to_string(target: Operand | None, args: _Args) -> CallEstimate | None:
    size = args[0].size_in_expression
    return CallEstimate(size.scaled(_TRAVERSAL), Range(size.low // 4, size.high))


def _quote(target: Operand | None, args: _Args) -> CallEstimate | None:
    size = args[0].size_in_expression
    return CallEstimate(size.scaled(_TRAVERSAL), Range(_wrapped(size.low + 2), _wrapped(size.high * 2 + 2)))


def _affix(target: Operand | None, args: _Args) -> CallEstimate | None:
    return CallEstimate(args[0].size_in_expression.scaled(_TRAVERSAL))


def _in_list(target: Operand | None, args: _Args) -> CallEstimate | None:
    return CallEstimate(args[1].size_in_expression.scaled(1))


def _matches(target: Operand | None, args: _Args) -> CallEstimate | None:
    subject, pattern = (target, args[0]) if target is not None else (args[0], args[1])
    text = subject.size_in_expression.plus(ONE).scaled(_TRAVERSAL)
    return CallEstimate(text.times(pattern.size_in_expression.scaled(_REGEX)))


def _contains(target: Operand | None, args: _Args) -> CallEstimate | None:
    if target is None:
        return None
    text = target.size_in_expression.scaled(_TRAVERSAL)
    return CallEstimate(text.times(args[0].size_in_expression.scaled(_TRAVERSAL)))


def _concatenation(target: Operand | None, args: _Args) -> CallEstimate | None:
    size = args[0].size_in_expression.plus(args[1].size_in_expression)
    return CallEstimate(size.scaled(_TRAVERSAL), size)


def _list_concatenation(target: Operand | None, args: _Args) -> CallEstimate | None:
    return CallEstimate(ONE, args[0].size_in_expression.plus(args[1].size_in_expression))


def _comparison(target: Operand | None, args: _Args) -> CallEstimate | None:
    most = min(args[0].size_in_expression.high, args[1].size_in_expression.high)
    return CallEstimate(Range(1 if most else 0, most).scaled(_TRAVERSAL))


_ORDERS = ("less", "less_equals", "greater", "greater_equals")
_STANDARD: dict[str, _Estimate] = {
    "string_format": _format,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_string,
    "strings_quote": _quote,
    "starts_with_string": _affix,
    "ends_with_string": _affix,
    "in_list": _in_list,
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_string": _concatenation,
    "add_bytes": _concatenation,
    "add_list": _list_concatenation,
    **{f"{order}_{kind}": _comparison for order in _ORDERS for kind in ("string", "bytes")},
    "equals": _comparison,
    "not_equals": _comparison,
}
