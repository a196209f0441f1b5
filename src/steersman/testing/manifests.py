"""What a test's API server is to start with, as objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from steersman.client.models import KubernetesObject
from steersman.client.resources import Object

Loadable = Path | str | Mapping[str, Any] | type[KubernetesObject]
"""A file or directory of manifests, one object, or a model class (its CustomResourceDefinition)."""
_SUFFIXES = (".yaml", ".yml", ".json")


def objects_of(source: Loadable) -> list[Object]:
    """The objects in it. Raises TypeError, ValueError, OSError."""
    if isinstance(source, Mapping):
        return _listed(source, "the object")
    if isinstance(source, type) and issubclass(source, KubernetesObject):
        from steersman.crdgen import crd_for

        return [crd_for(source)]
    if not isinstance(source, str | Path):
        raise TypeError(f"files, directories, objects and model classes can be loaded, not {source!r}")
    path = Path(source)
    if not path.is_dir():
        return list(_in_file(path))
    files = sorted(found for found in path.rglob("*") if found.suffix in _SUFFIXES)
    if not files:
        raise ValueError(f"{path}: there is no file here that ends in {', '.join(_SUFFIXES)}")
    return [obj for file in files for obj in _in_file(file)]


def _in_file(file: Path) -> Iterator[Object]:
    empty, number = True, 0
    try:
        for number, document in enumerate(yaml.safe_load_all(file.read_text(encoding="utf-8")), 1):
            if document is not None:
                empty = False
                yield from _listed(document, f"{file}: document {number}")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{file}: document {number + 1} is not YAML: {' '.join(str(error).split())}") from None
    if empty:
        raise ValueError(f"{file}: there are no objects in it")


def _listed(document: Any, what: str) -> list[Object]:
    """An object, or those of a List."""
    if not isinstance(document, Mapping):
        raise ValueError(f"{what} is no object: {document!r:.60}")
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str):
            raise ValueError(f"{what} has no {field}")
    if document["kind"] != "List":
        metadata = document.get("metadata")
        if not isinstance(metadata, Mapping) or not (metadata.get("name") or metadata.get("generateName")):
            raise ValueError(f"{what} ({document['kind']}) has no metadata.name")
        return [dict(document)]
    items = document.get("items")
    if not isinstance(items, list):
        raise ValueError(f"{what} is a List without items")
    return [obj for number, item in enumerate(items) for obj in _listed(item, f"{what}, items[{number}]")]
