"""Lists, sets of values, and the maps that macros build.

Source: cel-go `ext/{lists,sets,comprehensions}.go`; apiserver `pkg/cel/library/lists.go`.
"""

from __future__ import annotations

from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from steersman.apimachinery.schema.cel.costs import CALL_LIMIT, MAX_ITEMS
from steersman.apimachinery.schema.cel.errors import CelError, CostLimitExceeded, no_such_overload
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.cel.operators import ORDERED, add, compare, contains, equal
from steersman.apimachinery.schema.cel.values import (
    MAP_TYPE,
    OPTIONAL_TYPE,
    Duration,
    Uint,
    is_list,
    items_of,
    type_of,
)

_MAX_RANGE = 10_000_000
_HASHED = frozenset({int, Uint, str, bytes, bool})
_INSERTION_SORT = 12
"""Up to this size Go sorts by insertion, which is to be seen where elements have no order."""


def _equal_or_not(left: Any, right: Any) -> bool:
    try:
        return equal(left, right)
    except CelError:
        return False


def _is_sorted(items: Any) -> bool:
    values = items_of(items)
    _check_ordered(values)
    return all(_order(left, right) <= 0 for left, right in pairwise(values))


def _order(left: Any, right: Any) -> int:
    """-1, 0 or 1; also 0 for what has no order, as NaN or values of two types: upstream overlooks this here."""
    try:
        return compare(left, right)
    except CelError:
        return 0


def _check_ordered(values: list[Any]) -> None:
    """See that values are of kinds that have an order."""
    for value in values:
        if value.__class__ not in ORDERED:
            raise no_such_overload()


def _sum_from(zero: Any) -> Function:
    def total(items: Any) -> Any:
        result = zero
        for item in items_of(items):
            result = add(result, item)
        return result

    return total


def _extreme(name: str, sign: int) -> Function:
    def pick(items: Any) -> Any:
        values = items_of(items)
        if not values:
            raise CelError(f"{name} called on empty list")
        _check_ordered(values)
        result = values[0]
        for value in values[1:]:
            if _order(result, value) == -sign:
                result = value
        return result

    return pick


def _index_of(items: Any, wanted: Any) -> int:
    return next((index for index, item in enumerate(items_of(items)) if _equal_or_not(item, wanted)), -1)


def _last_index_of(items: Any, wanted: Any) -> int:
    values = items_of(items)
    found = (index for index in range(len(values) - 1, -1, -1) if _equal_or_not(values[index], wanted))
    return next(found, -1)


def _slice(items: Any, start: int, end: int) -> list[Any]:
    values = items_of(items)
    problem = ""
    if start < 0 or end < 0:
        problem = "negative indexes not supported"
    elif start > end:
        problem = "start index must be less than or equal to end index"
    elif len(values) < end:
        problem = f"list is length {len(values)}"
    if problem:
        raise CelError(f"cannot slice({start}, {end}), {problem}")
    return values[start:end]


def _flatten(items: Any, depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    out = []
    for item in items_of(items):
        if is_list(item) and depth:
            out += _flatten(item, depth - 1)
        else:
            out.append(item)
        if len(out) > MAX_ITEMS:
            raise CostLimitExceeded
    return out


def _sort(items: Any) -> Any:
    return _sort_by(items, items)


def _sort_by(items: Any, keys: Any) -> Any:
    values, order = items_of(items), items_of(keys)
    if len(values) != len(order):
        words = "expected a list of the same size as the associated keys list, but got"
        raise CelError(f"@sortByAssociatedKeys() {words} {len(values)} and {len(order)} elements respectively")
    if order and order[0].__class__ not in ORDERED:
        raise CelError("list elements must be comparable")
    if len({key.__class__ for key in order}) > 1:
        raise CelError("list elements must have the same type")
    by_key = cmp_to_key(_order)
    if len(values) > _INSERTION_SORT:
        return [values[index] for index in sorted(range(len(values)), key=lambda index: by_key(order[index]))]
    indexes: list[int] = []
    for index in range(len(values)):
        at = index
        while at and _order(order[index], order[indexes[at - 1]]) < 0:
            at -= 1
        indexes.insert(at, index)
    return [values[index] for index in indexes]


def _range(size: int) -> list[int]:
    if size < 0:
        raise CelError(f"lists.range: size must be non-negative, got {size}")
    if CALL_LIMIT < size <= _MAX_RANGE:
        raise CostLimitExceeded
    if size > _MAX_RANGE:
        raise CelError(f"lists.range: size {size} exceeds maximum allowed ({_MAX_RANGE})")
    return list(range(size))


def _hashed(*lists: Any) -> bool:
    """Whether all elements are of one class whose equality is Python's."""
    classes = {item.__class__ for items in lists for item in items_of(items)}
    return len(classes) <= 1 and classes <= _HASHED


def _distinct(items: Any) -> list[Any]:
    if _hashed(items):
        return list(dict.fromkeys(items_of(items)))
    out: list[Any] = []
    for item in items_of(items):
        if not any(_equal_or_not(item, kept) for kept in out):
            out.append(item)
    return out


def _contains_all(items: Any, wanted: Any) -> bool:
    if _hashed(items, wanted):
        return set(items_of(items)).issuperset(items_of(wanted))
    return all(contains(item, items) for item in items_of(wanted))


def _equivalent(left: Any, right: Any) -> bool:
    return _contains_all(left, right) and _contains_all(right, left)


def _intersects(left: Any, right: Any) -> bool:
    if _hashed(left, right):
        return not set(items_of(left)).isdisjoint(items_of(right))
    for item in items_of(left):
        try:
            if contains(item, right):
                return True
        except CelError:
            continue
    return False


def _flatten_list(items: Any, *depths: Any) -> list[Any]:
    if not is_list(items):
        words = ", ".join(str(type_of(depth).name) for depth in depths)
        raise CelError(f"no such overload: {_shown_type(items)}.flatten({words})")
    return _flatten(items, *depths)


def _shown_type(value: Any) -> str:
    found = type_of(value)
    if found == OPTIONAL_TYPE:
        return "optional_type(dyn)"
    return "map(dyn, dyn)" if found == MAP_TYPE else found.name


_KINDS = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]
_ZEROS = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}

OVERLOADS: dict[str, Function] = {
    **{f"list_{kind}_is_sorted_bool": _is_sorted for kind in _KINDS},
    **{f"list_{kind}_max_{kind}": _extreme("max", 1) for kind in _KINDS},
    **{f"list_{kind}_min_{kind}": _extreme("min", -1) for kind in _KINDS},
    **{f"list_{kind}_sum_{kind}": _sum_from(zero) for kind, zero in _ZEROS.items()},
    **{f"list_{kind}_sort": _sort for kind in _KINDS},
    **{f"list_{kind}_sortByAssociatedKeys": _sort_by for kind in _KINDS},
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_slice": _slice,
    "list_flatten": _flatten_list,
    "list_flatten_int": _flatten_list,
    "lists_range": _range,
    "list_reverse": lambda items: items_of(items)[::-1],
    "list_distinct": _distinct,
    "list_sets_contains_list": _contains_all,
    "list_sets_equivalent_list": _equivalent,
    "list_sets_intersects_list": _intersects,
}
