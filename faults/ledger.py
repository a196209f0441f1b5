"""All that is known of what was written: one line of versions, put together from everything that anybody was told."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from faults.history import History, Violation, plural_of
from faults.linearizability import Operation, Outcome


@dataclass(frozen=True, slots=True)
class Entry:
    """What a key holds since `version`; None when it was deleted."""

    version: int
    value: str | None


class Ledger:
    """Made from a history; `violations` says where it contradicts itself.

    `timelines` has each key's entries in the order of their versions, `covered` for each kind the ranges (after, up to]
    of versions of which some watcher of all its objects was told everything. Watchers begin before the first write.
    """

    def __init__(self, history: History) -> None:
        self.violations: list[Violation] = []
        self.covered: dict[str, list[tuple[int, int]]] = {}
        self._facts: dict[int, tuple[str, str | None]] = {}
        self._versions: dict[str, int] = {}
        self._seen: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        self._gather(history)
        self.timelines: dict[str, list[Entry]] = {}
        for version in sorted(self._facts):
            key, value = self._facts[version]
            self.timelines.setdefault(key, []).append(Entry(version, value))
        self._first_seen = {key: _earliest(seen) for key, seen in self._seen.items()}
        ranges: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for segment in history.segments:
            if segment.color is None:
                ranges[segment.plural].append((segment.start, segment.last))
        for plural, each in ranges.items():
            merged = _merged(each)
            self.covered[plural] = [(0, merged[0][1]), *merged[1:]]

    def of(self, key: str) -> list[Entry]:
        return self.timelines.get(key, [])

    def is_known(self, plural: str, after: int, until: int) -> bool:
        """Whether all that happened to a kind in (after, until] is known."""
        ranges = self.covered.get(plural, [])
        at = bisect_right(ranges, (after, math.inf)) - 1
        return after >= until or (at >= 0 and ranges[at][1] >= until)

    def version_of(self, value: str | None) -> int | None:
        """The version that a value was written with, if anybody was told of it."""
        return None if value is None else self._versions.get(value)

    def entry_after(self, key: str, version: int) -> Entry | None:
        entries = self.of(key)
        at = bisect_right(entries, version, key=lambda entry: entry.version)
        return entries[at] if at < len(entries) else None

    def entry_at(self, key: str, version: int) -> Entry | None:
        """What was known of a key at a version; None where it had never been written."""
        entries = self.of(key)
        at = bisect_right(entries, version, key=lambda entry: entry.version)
        return entries[at - 1] if at else None

    def seen_by(self, key: str, version: int) -> float:
        """When somebody had first been told of this version of a key, or a later one."""
        versions, times = self._first_seen.get(key, ([], []))
        at = bisect_right(versions, version - 1)
        return times[at] if at < len(versions) else math.inf

    def _gather(self, history: History) -> None:
        for operation in history.operations:
            if operation.outcome is Outcome.OK and operation.version and operation.value is not None:
                self._note(operation.key, operation.version, operation.value, operation.completed)
        for snapshot in history.snapshots:
            for key, (version, value) in snapshot.objects.items():
                self._note(key, version, value, snapshot.completed)
        for segment in history.segments:
            for told in (*(segment.initial or {}).values(), *segment.events):
                if told.type != "DELETED":
                    self._note(told.key, told.version, told.value, told.at)
                elif segment.color is None:
                    self._note(told.key, told.version, None, told.at)

    def _note(self, key: str, version: int, value: str | None, at: float) -> None:
        known = self._facts.setdefault(version, (key, value))
        if known != (key, value):
            self._complain(f"version {version} is {known}, and also {(key, value)}")
        if value is not None and self._versions.setdefault(value, version) != version:
            self._complain(f"{value} was written once, and is versions {self._versions[value]} and {version}")
        self._seen[key].append((version, at))

    def _complain(self, text: str) -> None:
        self.violations.append(Violation("a version is one write", text))


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges that touch or overlap as one, in order."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _earliest(seen: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    """For each version, when it or a later one was first seen."""
    versions: list[int] = []
    times: list[float] = []
    best = math.inf
    for version, at in sorted(seen, reverse=True):
        best = min(best, at)
        if versions and versions[-1] == version:
            times[-1] = best
        else:
            versions.append(version)
            times.append(best)
    return versions[::-1], times[::-1]


def deletion_of(ledger: Ledger, operation: Operation) -> Entry | None:
    """The deletion that a delete may have carried out, if anybody was told of it."""
    version = ledger.version_of(operation.expected)
    after = None if version is None else ledger.entry_after(operation.key, version)
    if version is None or after is None or after.value is not None:
        return None
    return after if ledger.is_known(plural_of(operation.key), version, after.version) else None
