"""Values that are made when they are first used: a server's start loads many of which it uses few."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast

_P = ParamSpec("_P")
_T = TypeVar("_T")


def lazily(make: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """What `make(*args, **kwargs)` gives; it is called for the first attribute that is asked for.

    For compiled patterns, and other values that are worth nothing but their attributes.
    """
    return cast(_T, _Lazy(lambda: make(*args, **kwargs)))


class _Lazy:
    def __init__(self, make: Callable[[], Any]) -> None:
        self.__make = cache(make)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__make(), name)
        self.__dict__[name] = value  # is found without this the next time
        return value
