"""What generated code calls beside the libraries' functions."""

from __future__ import annotations

from typing import Any, Final

from steersman.apimachinery.schema.cel.costs import smaller_size
from steersman.apimachinery.schema.cel.errors import CelError, CostLimitExceeded, EvaluationPanic, no_such_overload
from steersman.apimachinery.schema.cel.messages import build
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
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import (
    MISSING,
    NONE,
    Duration,
    Optional,
    Timestamp,
    Uint,
    actual_size,
    check_qualifier,
    find,
    get,
    go_type,
    is_list,
    is_map,
    items_of,
    map_key,
    pairs_of,
    show,
    type_of,
)

ERRORS: Final = (CelError, TypeError, AttributeError)
"""What the code absorbs: a value of another kind than its schema says (a null, say) surfaces as Python's own error."""

_NO_LIST = "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"
_ADDABLE = frozenset({str, int, Uint, float, bytes, Duration, Timestamp})


def check_list(value: Any) -> None:
    """See that a value is a list where upstream takes it for one."""
    if not is_list(value):
        missing = "Contains" if value.__class__ in _ADDABLE else "Add"
        words = f"interface conversion: {go_type(value)} is not traits.Lister: missing method {missing}"
        raise EvaluationPanic(f"internal error: {words}")


def check_depth(value: Any) -> None:
    """See that a value is an integer where upstream takes it for one."""
    if value.__class__ is not int:
        found = "*types.Err" if isinstance(value, Exception) else go_type(value)
        raise EvaluationPanic(f"internal error: interface conversion: ref.Val is {found}, not types.Int")


def subject(value: Any) -> str:
    """What a constant pattern is matched with: a text, or the name of a type."""
    if value.__class__ is str:
        return str(value)
    if value.__class__ is Type:
        return value.name
    raise no_such_overload()


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
    check_qualifier(key)
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
    if find(entries, key) is not MISSING:
        raise CelError(f"insert failed: key {show(key)} already exists")
    entries[map_key(key)] = value


def insert_all(entries: dict[Any, Any], added: Any) -> None:
    if not is_map(added):
        raise no_such_overload("cel.@mapInsert", ["map", type_of(added).name])
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
        check_depth,
        check_list,
        check_qualifier,
        checked_int,
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
        map_key,
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
        subject,
        subtract,
    )
} | {
    "build_message": build,
    "NO_LIST": _NO_LIST,
    "ERRORS": ERRORS,
    "MISSING": MISSING,
    "NONE": NONE,
}
"""The globals of generated code."""
