"""What calls cost while an expression runs.

Source: cel-go `interpreter/runtimecost.go`, `ext/{lists,sets}.go`; apiserver `pkg/cel/library/cost.go` (CallCost).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.apimachinery.schema.cel.values import Opaque, actual_size, is_list, is_map, items_of, pairs_of

Cost = Callable[..., int]
"""The cost of a call, from its result and its arguments."""

CALL_LIMIT = 1_000_000
"""Most that one expression may cost."""
OBJECT_LIMIT = 10_000_000
"""Most that all rules together may cost on one object."""
MAX_ITEMS = 1 << 21
MAX_TEXT = 1 << 24
"""Most elements and code points of what an expression makes. No request has as many, and to look at them all costs more
than an expression may; upstream has no such limits, where some functions make more than they cost."""


def call_cost(function: str, overload: str) -> int | Cost:
    """The cost of a call, or the function that computes it."""
    known = _BY_OVERLOAD.get(overload)
    if known is None:
        known = _BY_FUNCTION.get(function)
    return 1 if known is None else known


def regex_cost(pattern_length: int) -> int:
    return (pattern_length + 3) // 4


def tenth(value: Any) -> int:
    """A tenth of a size, rounded up."""
    return (actual_size(value) + 9) // 10


def smaller_size(left: Any, right: Any) -> int:
    """The cost of comparing two values."""
    if isinstance(left, Opaque):
        return 1
    return (min(actual_size(left), actual_size(right)) + 9) // 10


def traversal(value: Any) -> int:
    """The cost of looking at all parts of a value."""
    if value.__class__ is str:
        return len(value.encode("utf-8", "surrogatepass")) // 10
    if value.__class__ is bytes:
        return len(value) // 10
    if is_list(value):
        return sum(map(traversal, items_of(value)))
    if is_map(value):
        return sum(traversal(key) + traversal(item) for key, item in pairs_of(value))
    return 1


def _of_first(factor: int) -> Cost:
    """Of the first argument's size, `factor` tenths."""
    return lambda result, first, *rest: (actual_size(first) * factor + 9) // 10


def _traverse(result: Any, first: Any, *rest: Any) -> int:
    return traversal(first)


def _join(result: Any, *args: Any) -> int:
    return (actual_size(result) * 2 + 9) // 10


def _match(result: Any, text: Any, pattern: Any, *rest: Any) -> int:
    return ((actual_size(text) + 10) // 10) * regex_cost(actual_size(pattern))


def _contains_ip(result: Any, cidr: Any, other: Any) -> int:
    return (actual_size(cidr) * 2 + 9) // 10 + (tenth(other) if other.__class__ is str else 0)


def _contains_cidr(result: Any, cidr: Any, other: Any) -> int:
    return _contains_ip(result, cidr, other) + tenth(cidr) + 1


def _validate(result: Any, named: Any, text: Any) -> int:
    return ((actual_size(text) + 10) // 10) * regex_cost(named.regex_size)


def _selector(result: Any, check: Any, text: Any) -> int:
    size = actual_size(text)
    return 10 + (size + 9) // 10 + (size + 1) // 2 * 50


def _sets(factor: int) -> Cost:
    return lambda result, left, right: 1 + actual_size(left) * actual_size(right) * factor


def _list_of_result(result: Any, *args: Any) -> int:
    return 11 + actual_size(result)


def _flatten(result: Any, items: Any, depth: Any = 1) -> int:
    return 11 + actual_size(items) * (depth if depth >= 0 else 1)


def _self_compare(items: Any) -> int:
    size = actual_size(items)
    tenths = 20
    if size and items_of(items)[0].__class__ in (str, bytes):
        tenths = 21
    return 11 + size * size * tenths // 10


def _sort_by(result: Any, items: Any, keys: Any) -> int:
    return _self_compare(keys)


def _sort(result: Any, items: Any) -> int:
    return _self_compare(items)


_KINDS = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]
QUADRATIC = frozenset(
    [
        "list_distinct",
        *(f"list_{kind}_{name}" for kind in _KINDS for name in ("sort", "sortByAssociatedKeys")),
        *(f"list_sets_{name}_list" for name in ("contains", "intersects", "equivalent")),
    ]
)
"""Overloads whose cost is known by their arguments, and charged ahead: the work may be more than the limit allows."""
_BY_OVERLOAD: dict[str, int | Cost] = {
    "cidr_ip": 1,
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_slice": _list_of_result,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _list_of_result,
    "list_reverse": _list_of_result,
    "list_distinct": _sort,
    **{f"list_{kind}_sort": _sort for kind in _KINDS},
    **{f"list_{kind}_sortByAssociatedKeys": _sort_by for kind in _KINDS},
    "starts_with_string": lambda result, text, part: tenth(part),
    "ends_with_string": lambda result, text, part: tenth(part),
    "contains_string": lambda result, text, part: tenth(text) * tenth(part),
    "string_to_bytes": _of_first(1),
    "bytes_to_string": _of_first(1),
    "strings_quote": _of_first(1),
    "string_format": _of_first(1),
    "in_list": lambda result, item, items: actual_size(items),
    "add_string": lambda result, left, right: tenth(result),
    "add_bytes": lambda result, left, right: tenth(result),
    "matches": _match,
    "matches_string": _match,
}
_BY_FUNCTION: dict[str, int | Cost] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traverse),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _of_first(1)),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _of_first(1)),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _of_first(2)),
    "check": 350_000,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    "join": _join,
    "find": _match,
    "findAll": _match,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
}
