"""Values that may be absent.

Source: cel-go `cel/library.go` (OptionalTypes).
"""

from __future__ import annotations

from typing import Any

from steersman.apimachinery.schema.cel.errors import CelError
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.cel.values import (
    MIN_TIME,
    MISSING,
    NONE,
    Duration,
    Optional,
    Timestamp,
    is_list,
    is_map,
    items_of,
    show,
)


def _of_non_zero(value: Any) -> Optional:
    if value is None or value.__class__ in (bool, str, bytes) or isinstance(value, (int, float)):
        return Optional(value) if value else NONE
    if is_list(value) or is_map(value):
        return Optional(value) if len(value) else NONE
    if value.__class__ is Duration:
        return Optional(value) if value.nanos else NONE
    if value.__class__ is Timestamp:
        return Optional(value) if value.nanos != MIN_TIME else NONE
    return Optional(value)


def _unwrap(items: Any) -> list[Any]:
    out = []
    for item in items_of(items):
        if item.__class__ is not Optional:
            raise CelError(f"value {show(item)} is not optional")
        if item.item is not MISSING:
            out.append(item.item)
    return out


def _at(position: int) -> Function:
    def pick(items: Any) -> Optional:
        values = items_of(items)
        return Optional(values[position]) if values else NONE

    return pick


def _or(left: Optional, right: Optional) -> Optional:
    return right if left.item is MISSING else left


def _or_value(left: Optional, right: Any) -> Any:
    return right if left.item is MISSING else left.item


OVERLOADS: dict[str, Function] = {
    "optional_of": Optional,
    "optional_ofNonZeroValue": _of_non_zero,
    "optional_none": lambda: NONE,
    "optional_value": Optional.get,
    "optional_hasValue": lambda optional: optional.item is not MISSING,
    "optional_or_optional": _or,
    "optional_orValue_value": _or_value,
    "list_first": _at(0),
    "list_last": _at(-1),
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
}
