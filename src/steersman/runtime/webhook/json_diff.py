"""The JSON patch (RFC 6902) that makes one object of another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steersman.client.resources import Object


def json_diff(before: Any, after: Any, path: str = "") -> Iterator[Object]:
    """Operations in an order in which they can be carried out. Lists are changed item by item from their start, and
    shortened or lengthened at their end."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                yield {"op": "remove", "path": f"{path}/{_escape(key)}"}
        for key, value in after.items():
            place = f"{path}/{_escape(key)}"
            if key not in before:
                yield {"op": "add", "path": place, "value": value}
            else:
                yield from json_diff(before[key], value, place)
    elif isinstance(before, list) and isinstance(after, list):
        common = min(len(before), len(after))
        for index in range(common):
            yield from json_diff(before[index], after[index], f"{path}/{index}")
        for index in range(len(before) - 1, common - 1, -1):
            yield {"op": "remove", "path": f"{path}/{index}"}
        for value in after[common:]:
            yield {"op": "add", "path": f"{path}/-", "value": value}
    elif type(before) is not type(after) or before != after:
        yield {"op": "replace", "path": path, "value": after}


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
