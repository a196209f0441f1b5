"""CustomResourceDefinitions from files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from steersman.apimachinery.codec import yaml
from steersman.apimachinery.codec.json import JsonError
from steersman.generate.errors import GenerateError


def read(names: Iterable[str]) -> list[dict[str, Any]]:
    """The definitions in files ("-" is stdin), YAML or JSON, also those in Lists; what else is there is passed over.

    Raises GenerateError where there is none, OSError for a file that cannot be read.
    """
    found: list[dict[str, Any]] = []
    for name in names:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        try:
            documents = yaml.decode_all(raw)
        except (JsonError, ValueError) as error:
            raise GenerateError(f"{name}: {error}") from None
        for document in documents:
            if isinstance(document, dict):
                items = document.get("items") if document.get("kind") == "List" else None
                found += [each for each in items or [document] if isinstance(each, dict)]
    chosen = [each for each in found if each.get("kind") == "CustomResourceDefinition"]
    if not chosen:
        raise GenerateError(f"{', '.join(names)}: there is no CustomResourceDefinition")
    return chosen
