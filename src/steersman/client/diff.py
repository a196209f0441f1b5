"""What changed between two reads of an object, and which manager wrote it.

Source of the managedFields format: structured-merge-diff `fieldpath/serialize.go` (f:, k:, v:, i:) and KEP-555.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

_ABSENT: Final = object()
_BOOKKEEPING = frozenset({"managedFields", "resourceVersion", "generation"})


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs. `path` is as kubectl prints it (`.spec.ports[0].name`).

    `before` and `after` are None where the field was absent. `managers` are those that wrote the new value, as far as
    managedFields tell: usually one, empty when unknown (nobody owns a removed field, unless only one manager wrote).
    """

    path: str
    before: Any
    after: Any
    managers: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f" by {', '.join(self.managers)}" if self.managers else ""
        return f"{self.path}: {_short(self.before)} -> {_short(self.after)}{by}"


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """The fields in which two versions of an object differ, without the server's own bookkeeping.

    `metadata.resourceVersion`, `metadata.generation` and `metadata.managedFields` are left out: they follow from the
    other changes.
    """
    entries = _managed(after)
    wrote = writers(before, after)
    found = []
    for path, old, new in _differences(before, after, ()):
        if len(path) > 1 and path[0] == "metadata" and path[1] in _BOOKKEEPING:
            continue
        owners = _owners(entries, after, path) if new is not _ABSENT else []
        managers = [name for name in owners if name in wrote] or owners or (wrote if len(wrote) == 1 else [])
        found.append(Change(_path_text(path), _value(old), _value(new), tuple(dict.fromkeys(managers))))
    return found


def writers(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The managers that wrote between the two reads: their managedFields entry is new, later, or holds more fields.

    An entry that only lost fields was written by nobody: another manager took them over. Times are in whole seconds, so
    a manager that wrote the same fields twice within one is not seen.
    """
    old = {_identity(entry): entry for entry in _managed(before)}
    found = []
    for entry in _managed(after):
        previous = old.get(_identity(entry))
        if (
            previous is None
            or previous.get("time") != entry.get("time")
            or not _within(entry.get("fieldsV1"), previous.get("fieldsV1"))
        ):
            found.append(entry["manager"])
    return list(dict.fromkeys(found))


def _managed(obj: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    metadata = obj.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    return [entry for entry in entries or [] if isinstance(entry, Mapping) and entry.get("manager")]


def _identity(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(entry.get(part) or "" for part in ("manager", "operation", "apiVersion", "subresource"))


def _within(fields: Any, others: Any) -> bool:
    """Whether one set of fields holds nothing that the other does not."""
    if not isinstance(fields, Mapping):
        return True
    if not isinstance(others, Mapping):
        return not fields
    return all(key in others and _within(value, others[key]) for key, value in fields.items())


def _differences(
    before: Any, after: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _differences(before.get(key, _ABSENT), after.get(key, _ABSENT), (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            old = before[index] if index < len(before) else _ABSENT
            new = after[index] if index < len(after) else _ABSENT
            yield from _differences(old, new, (*path, index))
    elif before is _ABSENT or after is _ABSENT or before != after:
        yield path, before, after


def _owners(entries: Sequence[Mapping[str, Any]], obj: Any, path: Sequence[str | int]) -> list[str]:
    """The managers of the field itself; where nobody has that, those of the list or map above it as one whole.

    An empty set below `f:spec` may stand for an atomic value, or for a struct whose fields others own: as long as
    somebody owns the field itself, it is the latter.
    """
    depths = [(_owned_depth(entry, obj, path), entry["manager"]) for entry in entries]
    deepest = max((depth for depth, _ in depths), default=0)
    return [manager for depth, manager in depths if depth and depth == deepest]


def _owned_depth(entry: Mapping[str, Any], obj: Any, path: Sequence[str | int]) -> int:
    """How many steps of the path the entry's fields include, up to a leaf; 0 when they end before one."""
    fields: Any = entry.get("fieldsV1")
    for depth, step in enumerate(path):
        if not isinstance(fields, Mapping):
            return 0
        if not fields:
            return depth
        obj = obj[step]
        member = f"f:{step}" if isinstance(step, str) else _list_member(fields, step, obj)
        if member not in fields:
            return 0
        fields = fields[member]
    return len(path)


def _list_member(members: Iterable[str], index: int, item: Any) -> str | None:
    for member in members:
        kind, _, text = member.partition(":")
        if kind == "i" and text == str(index):
            return member
        if kind == "v" and orjson.loads(text) == item:
            return member
        if kind == "k" and isinstance(item, Mapping):
            keys = orjson.loads(text)
            if all(item.get(key) == value for key, value in keys.items()):
                return member
    return None


def _path_text(path: Sequence[str | int]) -> str:
    parts = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif "." in step or "/" in step:
            parts.append(f"[{orjson.dumps(step).decode()}]")
        else:
            parts.append(f".{step}")
    return "".join(parts)


def _value(value: Any) -> Any:
    return None if value is _ABSENT else value


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
