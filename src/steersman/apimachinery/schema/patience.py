"""How long expressions may be compiled and evaluated where others wait for it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

_OF_EACH: Final = 20
"""What compiling an expression takes however short it is, in code points."""


class TakesLong(Exception):
    """Expressions take more than there is patience for."""


class Patience:
    """What may be done before TakesLong is raised.

    `cost` is what all rules on an object may cost, in CEL's units; `text` the code points of all expressions that may
    be compiled.
    """

    __slots__ = ("cost", "text")

    def __init__(self, cost: int, text: int) -> None:
        self.cost = cost
        self.text = text


patience: Final[ContextVar[Patience | None]] = ContextVar("patience", default=None)
"""The patience that there is now; None: everything is done to the end."""


def compiling(source: str) -> None:
    """Note that an expression is about to be compiled. Raises TakesLong when that is too much."""
    left = patience.get()
    if left is not None:
        left.text -= len(source) + _OF_EACH
        if left.text < 0:
            raise TakesLong
