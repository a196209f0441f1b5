"""The recorded answers about expressions, and what they are about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from .differential import read_expressions
from .rig import FIELDS, OBJECT, OTHER

FOLDER = Path(__file__).with_name("recorded")


class Recording(NamedTuple):
    """Expressions of a file on `self` of a schema, evaluated on `inputs`; `size` of them are in one definition."""

    name: str
    schema: dict[str, Any]
    inputs: list[dict[str, Any]]
    size: int

    @property
    def answers(self) -> Path:
        return FOLDER / f"{self.name}.json"

    def expressions(self) -> list[str]:
        return read_expressions((FOLDER / f"{self.name}.txt").read_text())


EXPRESSIONS = Recording("expressions", {"type": "object", "properties": FIELDS}, [OBJECT, OTHER, {}], 60)
COSTS = Recording("costs", json.loads((FOLDER / "costs_schema.json").read_text()), [], 1)
