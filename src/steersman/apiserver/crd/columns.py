"""Table columns of custom resources, from additionalPrinterColumns.

Source: apiextensions-apiserver `pkg/registry/customresource/tableconvertor/tableconvertor.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from steersman._util.gotext import format_float
from steersman.api.tables import age
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.jsonpath import JsonPathError, compile_path
from steersman.apimachinery.times import TimeError
from steersman.apiserver.builtins import field_description
from steersman.apiserver.scope import Column
from steersman.apiserver.strategy import Object

_INT64 = 2**63
AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def columns(additional: Sequence[Mapping[str, Any]] | None) -> tuple[Column, ...]:
    """Name, then the given columns, or Age without any; a path that cannot be read ends them, as it does upstream."""
    name = Column(
        "Name", "string", "name", field_description("name"), 0, lambda obj, now: obj["metadata"].get("name", "")
    )
    if not additional:
        return (name, _column({**AGE, "description": field_description("creationTimestamp")}))
    found = [name]
    with suppress(JsonPathError):  # validation lets some of them through
        for facts in additional:
            found.append(_column(facts))  # noqa: PERF401  # those before it stay
    return tuple(found)


def _column(facts: Mapping[str, Any]) -> Column:
    path = facts["jsonPath"]
    description = facts.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
    return Column(
        facts["name"],
        facts["type"],
        facts.get("format", ""),
        description,
        facts.get("priority", 0),
        _cell(path, facts["type"]),
    )


def _cell(path: str, kind: str) -> Callable[[Object, float], Any]:
    find = compile_path(path)
    convert: Callable[[Any, float], Any] = _CONVERTERS.get(kind, _nothing)

    def cell(obj: Object, now: float) -> Any:
        found = find(obj)
        return convert(found[0], now) if found else None

    return cell


def _nothing(value: Any, now: float) -> None:
    return None


def _integer(value: Any, now: float) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # what Go makes of a float that no int64 holds
    return int(value) if -_INT64 <= value < _INT64 else -_INT64


def _number(value: Any, now: float) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: Any, now: float) -> Any:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: float) -> Any:
    if not isinstance(value, str):
        return None
    try:
        return age(value, datetime.fromtimestamp(now, UTC))
    except TimeError:
        return "<invalid>"


def _string(value: Any, now: float) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "<nil>"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, int):
        return str(value)
    return codec.encode(value).decode()


_CONVERTERS: dict[str, Callable[[Any, float], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
    "string": _string,
}
