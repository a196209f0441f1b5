"""What happens when something that is given out is another's."""

from __future__ import annotations

from typing import Any


class Claimed(Exception):
    """Another server gives this to another object: `kind` is ip or port."""

    def __init__(self, kind: str, value: Any) -> None:
        super().__init__(f"{kind} {value} is claimed")
        self.kind = kind
        self.value = value
