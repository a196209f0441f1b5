"""Objects that look like something: the fields that a test cares for, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from steersman.client.models import KubernetesObject
from steersman.client.options import wire


class Like:
    """Equal to every object that has at least these fields. Made by `like`."""

    def __init__(self, expected: Any) -> None:
        self.expected = expected

    def __eq__(self, other: object) -> bool:
        return next(differences(other, self.expected), None) is None

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"like({self.expected!r})"


def like(expected: Any) -> Any:
    """`assert obj == like({"spec": {"replicas": 3}})`: other fields do not matter, and a failure shows what differs.

    A mapping must have at least the expected keys; a list must have as many items, each like the expected one; a
    pattern (`re.compile`) must be found in the text; a type means any value of it; `...` any value at all; None a field
    that is absent or null. Typed objects are compared as they are sent.
    """
    return Like(expected)


def differences(actual: Any, expected: Any, path: str = "") -> Iterator[str]:
    """What keeps `actual` from being like `expected`, a line each, with the field's path."""
    if isinstance(actual, KubernetesObject):
        actual = wire(actual)
    if isinstance(expected, Like):
        expected = expected.expected
    if isinstance(expected, Mapping):
        yield from _of_mapping(actual, expected, path)
    elif isinstance(expected, list):
        yield from _of_list(actual, expected, path)
    elif expected is not ...:
        yield from _of_value(actual, expected, path or "the object")


def _of_mapping(actual: Any, expected: Mapping[str, Any], path: str) -> Iterator[str]:
    if not isinstance(actual, Mapping):
        yield f"{path or 'the object'}: {actual!r} is no mapping"
        return
    for key, value in expected.items():
        if key not in actual and value is not None:
            yield f"{path}.{key}: absent, expected {value!r}"
        else:
            yield from differences(actual.get(key), value, f"{path}.{key}")


def _of_list(actual: Any, expected: list[Any], path: str) -> Iterator[str]:
    if not isinstance(actual, list):
        yield f"{path or 'the object'}: {actual!r} is no list"
    elif len(actual) != len(expected):
        yield f"{path or 'the object'}: {len(actual)} items, expected {len(expected)}: {actual!r}"
    else:
        for index, (item, value) in enumerate(zip(actual, expected, strict=True)):
            yield from differences(item, value, f"{path}[{index}]")


def _of_value(actual: Any, expected: Any, where: str) -> Iterator[str]:
    if isinstance(expected, re.Pattern):
        if not isinstance(actual, str) or not expected.search(actual):
            yield f"{where}: {actual!r} does not match {expected.pattern!r}"
    elif isinstance(expected, type):
        if not isinstance(actual, expected):
            yield f"{where}: {actual!r} is no {expected.__name__}"
    elif actual != expected or type(actual) is not type(expected):
        yield f"{where}: {actual!r}, expected {expected!r}"
