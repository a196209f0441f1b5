"""How long rules may be evaluated where others wait for it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

patience: Final[ContextVar[int | None]] = ContextVar("patience", default=None)
"""What all rules on an object may cost before TakesLong is raised; None: they are evaluated to the end."""


class TakesLong(Exception):
    """The rules on an object cost more than there is `patience` for."""
