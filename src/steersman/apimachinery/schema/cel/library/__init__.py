"""The functions that Kubernetes lets expressions call: implementations by overload.

Source: cel-go `common/stdlib`, `ext`; apiserver `pkg/cel/library`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

Function = Callable[..., Any]
_MODULES = (
    "standard",
    "optionals",
    "strings",
    "formatting",
    "lists",
    "regex",
    "network",
    "quantities",
    "formats",
    "semver",
    "authorization",
    "patches",
)


def implementation(overload: str) -> Function:
    """What computes an overload: a function of values that raises CelError."""
    return _implementations()[overload]


@cache
def _implementations() -> dict[str, Function]:
    out: dict[str, Function] = {}
    for name in _MODULES:
        out |= import_module(f"{__name__}.{name}").OVERLOADS
    return out
