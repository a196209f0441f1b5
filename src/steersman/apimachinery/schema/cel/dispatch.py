"""Which overload fits arguments whose types are known only at run time.

Source: cel-go `common/decls/decls.go` (dynamic dispatch), `common/types/types.go` (IsAssignableRuntimeType).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from steersman.apimachinery.schema.cel.declarations import Overload, functions
from steersman.apimachinery.schema.cel.errors import no_such_overload
from steersman.apimachinery.schema.cel.library import Function, implementation
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import (
    MISSING,
    Duration,
    Optional,
    Timestamp,
    is_list,
    is_map,
    items_of,
    pairs_of,
    type_of,
)

# functions that look at their arguments themselves, and so do not name the types in their error
_UNGUARDED = frozenset({"contains", "startsWith", "endsWith"})
# functions whose overloads are told apart by the number of arguments alone
_COUNTED = frozenset({"flatten"})
_RECEIVERS = frozenset({str, Timestamp, Duration})
# functions with one implementation for all kinds of arguments that have a trait
_SINGLETONS = frozenset({"size", "matches", "type", "dyn", "sort", "@sortByAssociatedKeys"})
# such for lists, of whatever elements
_LISTS = frozenset({"sort", "@sortByAssociatedKeys"})


@cache
def dispatcher(function: str, member: bool) -> Function:
    """A function that calls the first overload that fits."""
    overloads = [overload for overload in functions()[function] if overload.member == member]

    def call(*args: Any) -> Any:
        if function in _LISTS and is_list(args[0]):
            return implementation(overloads[0].id)(*args)
        for overload in overloads:
            if _fits(overload, args, function in _COUNTED):
                return implementation(overload.id)(*args)
        if function in _UNGUARDED or (function in _SINGLETONS and args[0].__class__ in _RECEIVERS):
            raise no_such_overload()
        if function in _SINGLETONS:
            raise no_such_overload(function)
        raise no_such_overload(function, [type_of(arg).name for arg in args])

    return call


def _fits(overload: Overload, args: tuple[Any, ...], counted: bool) -> bool:
    return len(overload.args) == len(args) and (counted or all(map(_is_of, args, overload.args)))


def _is_of(value: Any, wanted: Type) -> bool:
    """Whether a value may be of a type; of containers the first element is looked at."""
    kind = wanted.kind
    if kind in ("dyn", "param"):
        return True
    if kind == "list":
        if not is_list(value):
            return False
        items = items_of(value)
        return not items or _is_of(items[0], wanted.params[0])
    if kind == "map":
        if not is_map(value):
            return False
        pairs = pairs_of(value)
        return not pairs or (_is_of(pairs[0][0], wanted.params[0]) and _is_of(pairs[0][1], wanted.params[1]))
    if value.__class__ is Optional and wanted.params:
        return wanted.name == "optional_type" and (value.item is MISSING or _is_of(value.item, wanted.params[0]))
    found = type_of(value)
    return found.kind == kind and found.name == wanted.name
