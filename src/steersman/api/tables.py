"""Tables of built-in kinds: their columns from the package's data, and what cells are made of.

Source: kubernetes `pkg/printers/internalversion/printers.go`; apiserver `pkg/registry/rest/table.go`; apimachinery
`pkg/util/duration/duration.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from steersman.api import _data
from steersman.apimachinery import times

_KEYS = ("name", "type", "format", "description", "priority")
UNKNOWN = "<unknown>"


def columns(group: str, kind: str) -> list[dict[str, Any]]:
    """TableColumnDefinitions: the kind's own, or Name and Created At. Shared, not to be changed."""
    return _columns(f"{group}/{kind}")


@cache
def _columns(key: str) -> list[dict[str, Any]]:
    found = _data.load("columns").get(key)
    if found is None:
        meta = {column[0]: column[3] for column in _data.load("columns")["/ConfigMap"]}
        found = [["Name", "string", "name", meta["Name"], 0], ["Created At", "date", "", meta["Age"], 0]]
    return [dict(zip(_KEYS, column, strict=True)) for column in found]


def default_row(definitions: Sequence[dict[str, Any]], obj: dict[str, Any], now: datetime) -> list[Any]:
    """Name and age; what else a kind shows is left blank."""
    meta = obj["metadata"]
    cells: list[Any] = []
    for column in definitions:
        match column["name"]:
            case "Name":
                cells.append(meta.get("name") or "")
            case "Age":
                cells.append(age(meta.get("creationTimestamp"), now))
            case "Created At":
                cells.append(meta.get("creationTimestamp"))
            case _:
                cells.append(0 if column["type"] == "integer" else "")
    return cells


def age(timestamp: str | None, now: datetime) -> str:
    """How long ago a time on the wire is, in kubectl's short form."""
    if not timestamp:
        return UNKNOWN
    return human_duration(now - times.parse_time(timestamp))


def container_cells(containers: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """The names and the images of a template's containers, each joined by commas."""
    names = ",".join(container.get("name") or "" for container in containers)
    return names, ",".join(container.get("image") or "" for container in containers)


def human_duration(elapsed: timedelta) -> str:
    """`5s`, `3m20s`, `7h`, `2d`, `400d`: two units at most, and fewer the longer it is."""
    seconds = int(elapsed / timedelta(seconds=1))
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours = seconds // 60, seconds // 3600
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
