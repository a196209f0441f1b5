"""Which objects of a resource have a label with a value: so that a list by label does not look at all the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Protocol

MOST_LABELS: Final = 8
"""Labels of one resource that are indexed at a time; the one that was not asked for longest makes room."""


class Labelled(Protocol):
    @property
    def labels(self) -> Mapping[str, str]: ...


class LabelIndex:
    """Indexes a label when a value of it is first asked for, and keeps up with changes from then on."""

    def __init__(self, entries: Mapping[str, Labelled]) -> None:
        """`entries` is what is indexed, by key; it may change whenever `changed` is told."""
        self._entries = entries
        self._labels: dict[str, dict[str, set[str] | str]] = {}

    def keys(self, label: str, value: str) -> Collection[str]:
        """The keys of the objects whose label has the value, in no order."""
        values = self._labels.pop(label, None)
        if values is None:
            values = self._made(label)
        self._labels[label] = values
        found = values.get(value, ())
        return (found,) if isinstance(found, str) else found

    def _made(self, label: str) -> dict[str, set[str] | str]:
        values: dict[str, set[str] | str] = {}
        for key, entry in self._entries.items():
            _add(values, entry.labels.get(label), key)
        if len(self._labels) >= MOST_LABELS:
            del self._labels[next(iter(self._labels))]
        return values

    def changed(self, key: str, old: Labelled | None, new: Labelled | None) -> None:
        """An object was created (`old` None), updated, or deleted (`new` None)."""
        for label, values in self._labels.items():
            before = old.labels.get(label) if old is not None else None
            after = new.labels.get(label) if new is not None else None
            if before != after:
                _discard(values, before, key)
                _add(values, after, key)


def _add(values: dict[str, set[str] | str], value: str | None, key: str) -> None:
    """A set for each value that several have; a value of one object alone costs no set."""
    if value is None:
        return
    known = values.get(value)
    if known is None:
        values[value] = key
    elif isinstance(known, str):
        values[value] = {known, key}
    else:
        known.add(key)


def _discard(values: dict[str, set[str] | str], value: str | None, key: str) -> None:
    if value is None:
        return
    known = values.get(value)
    if isinstance(known, set):
        known.discard(key)
        if not known:
            del values[value]
    elif known == key:
        del values[value]
