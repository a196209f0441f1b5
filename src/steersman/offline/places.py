"""From a field's path, as the API's errors name it, to the line in the text where the field stands."""

from __future__ import annotations

import re
from typing import Any

_INDEX = re.compile(r"\[(\d+)\]")
# With one version upstream reports what all versions share at the top of the spec (v1/conversion.go).
_HOISTED = (
    ("spec.validation", "spec.versions[0].schema"),
    ("spec.subresources", "spec.versions[0].subresources"),
    ("spec.additionalPrinterColumns", "spec.versions[0].additionalPrinterColumns"),
    ("spec.selectableFields", "spec.versions[0].selectableFields"),
    ("spec.version", "spec.versions[0].name"),
)


def line_of(node: Any, path: str) -> int:
    """The line (from 1) of the field at a path below a YAML node, or of the innermost parent that is there.

    A path has steps `.key`, `[key]` and `[0]`. Where a key is not there as it is written, one that differs only in case
    is taken; a list is passed through without an index, as Go's decoder names fields, if it has one item.
    """
    line: int = node.start_mark.line + 1
    rest = path.lstrip(".")
    while rest:
        step = _step(node, rest)
        if step is None:
            break
        line, node, rest = step
    return line


def unhoisted(path: str) -> str:
    """A path into a CustomResourceDefinition as its author wrote it."""
    for hoisted, written in _HOISTED:
        rest = path.removeprefix(hoisted)
        if rest != path and (not rest or rest[0] in ".["):
            return written + rest
    return path


def node_at(node: Any, path: str) -> Any:
    """The node at a path, None when the path does not lead all the way."""
    rest = path.lstrip(".")
    while rest:
        step = _step(node, rest)
        if step is None:
            return None
        _, node, rest = step
    return node


def _step(node: Any, rest: str) -> tuple[int, Any, str] | None:
    if node.id == "mapping":
        return _into_mapping(node, rest)
    if node.id == "sequence":
        return _into_sequence(node, rest)
    return None


def _into_mapping(node: Any, rest: str) -> tuple[int, Any, str] | None:
    best: tuple[int, int, Any, str] | None = None
    for key, value in node.value:
        length, exact = _match(str(key.value), rest)
        rank = 2 * length + exact
        if length and (best is None or rank >= best[0]):  # of keys that stand twice, the last counts
            best = (rank, key.start_mark.line + 1, value, rest[length:].removeprefix("."))
    return best[1:] if best is not None else None


def _match(key: str, rest: str) -> tuple[int, bool]:
    """How much of a path a key takes (0: it is not the next step), and whether it is written the same."""
    for form in (key, f"[{key}]"):
        end = len(form)
        if rest[:end].lower() == form.lower() and rest[end : end + 1] in ("", ".", "["):
            return end, rest[:end] == form
    return 0, False


def _into_sequence(node: Any, rest: str) -> tuple[int, Any, str] | None:
    items = node.value
    if match := _INDEX.match(rest):
        index = int(match[1])
        if index >= len(items):
            return None
        return items[index].start_mark.line + 1, items[index], rest[match.end() :].removeprefix(".")
    if len(items) == 1:
        return items[0].start_mark.line + 1, items[0], rest
    return None
