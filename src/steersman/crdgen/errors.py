"""Why a definition cannot be made."""

from __future__ import annotations


class SchemaError(Exception):
    """What a model says cannot be said in a CustomResourceDefinition. The message begins with the field's path."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why
