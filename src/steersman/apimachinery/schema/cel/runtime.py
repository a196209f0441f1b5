"""What generated code calls beside the libraries' functions."""

from __future__ import annotations

from typing import Any, Final

from steersman.apimachinery.schema.cel.costs import CALL_LIMIT, smaller_size
from steersman.apimachinery.schema.cel.errors import CelError, CostLimitExceeded, EvaluationPanic, no_such_overload
from steersman.apimachinery.schema.cel.objects import (
    ListValue,
    ObjectValue,
    convert,
    read_container,
    read_entry,
    read_field,
    read_index,
)
from steersman.apimachinery.schema.cel.operators import (
    add,
    checked_int,
    contains,
    divide,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_not,
    modulo,
    multiply,
    negate,
    not_equal,
    subtract,
)
from steersman.apimachinery.schema.cel.schema_types import Decl
from steersman.apimachinery.schema.cel.values import (
    MISSING,
    NONE,
    Optional,
    actual_size,
    checked_key,
    find,
    get,
    is_list,
    is_map,
    items_of,
    pairs_of,
    show,
)

ERRORS: Final = (CelError, TypeError, AttributeError)
"""What the code absorbs: a value of another kind than its schema says (a null, say) surfaces as Python's own error."""

_NO_LIST = "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"


def has(container: Any, name: str) -> bool:
    """Presence of a field; what has no fields has none of them."""
    if container.__class__ is Optional:
        container = container.item
    return (is_map(container) or is_list(container)) and find(container, name) is not MISSING


def optional_get(container: Any, key: Any) -> Optional:
    """An optional's or a container's value at a key, as an optional."""
    if container.__class__ is Optional:
        if container.item is MISSING:
            return container
        container = container.item
    if not is_map(container) and not is_list(container):
        return NONE
    value = find(container, key)
    return NONE if value is MISSING else Optional(value)


def optional_field(decl: Decl, raw: Any) -> Optional:
    """A field of data as an optional; null counts as absent."""
    return NONE if raw is None else Optional(convert(decl, raw))


def append_optional(items: list[Any], value: Any) -> None:
    if value.__class__ is not Optional:
        raise CelError(f"cannot initialize optional list element from non-optional value {show(value)}")
    if value.item is not MISSING:
        items.append(value.item)


def set_optional(entries: dict[Any, Any], key: Any, value: Any) -> None:
    if value.__class__ is not Optional:
        raise CelError(f"cannot initialize optional entry '{show(key)}' from non-optional value {show(value)}")
    if value.item is not MISSING:
        entries[key] = value.item


def insert_key(entries: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry to the map that a macro builds."""
    held = checked_key(key)
    if held in entries:
        raise CelError(f"insert failed: key {show(key)} already exists")
    entries[held] = value


def insert_all(entries: dict[Any, Any], added: Any) -> None:
    if not is_map(added):
        raise no_such_overload("cel.@mapInsert")
    for key, value in pairs_of(added):
        insert_key(entries, key, value)


NAMES: Final[dict[str, Any]] = {
    each.__name__: each
    for each in (
        CelError,
        CostLimitExceeded,
        EvaluationPanic,
        ListValue,
        ObjectValue,
        Optional,
        actual_size,
        add,
        append_optional,
        checked_int,
        checked_key,
        contains,
        convert,
        divide,
        equal,
        get,
        greater,
        greater_equal,
        has,
        insert_all,
        insert_key,
        items_of,
        less,
        less_equal,
        logical_not,
        modulo,
        multiply,
        negate,
        no_such_overload,
        not_equal,
        optional_field,
        optional_get,
        pairs_of,
        read_container,
        read_entry,
        read_field,
        read_index,
        set_optional,
        smaller_size,
        subtract,
    )
} | {"NO_LIST": _NO_LIST, "ERRORS": ERRORS, "LIMIT": CALL_LIMIT, "MISSING": MISSING, "NONE": NONE}
"""The globals of generated code."""
