"""Were watchers told everything once and in order, and do lists show the state at their version?"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from faults.history import History, Segment, Told, Violation, color_of, plural_of
from faults.ledger import Ledger
from faults.linearizability import Outcome

LAW = "watches are complete and in order"


@dataclass(frozen=True, slots=True)
class Change:
    """One write as a watch tells it. `before` is what the key held; it is `certain` when nothing between is unknown."""

    version: int
    key: str
    before: str | None
    value: str | None
    certain: bool

    def as_told(self, color: str | None) -> tuple[str, str] | None:
        """Type and value of the event for a watcher of a color (None: of all); None when it is not concerned."""
        was = self.before is not None and color in (None, color_of(self.before))
        is_now = self.value is not None and color in (None, color_of(self.value))
        if is_now:
            assert self.value is not None
            return ("MODIFIED" if was else "ADDED"), self.value
        if was:
            assert self.before is not None
            return "DELETED", self.before
        return None


def changes(ledger: Ledger) -> dict[str, list[Change]]:
    """All that happened to each kind, in order."""
    found: defaultdict[str, list[Change]] = defaultdict(list)
    for key, entries in ledger.timelines.items():
        plural, before, since = plural_of(key), None, 0
        for entry in entries:
            certain = ledger.is_known(plural, since, entry.version)
            found[plural].append(Change(entry.version, key, before, entry.value, certain))
            before, since = entry.value, entry.version
    return {plural: sorted(each, key=lambda change: change.version) for plural, each in found.items()}


def check_streams(history: History, ledger: Ledger) -> list[Violation]:
    """Every watcher was told every change of its objects in the ranges that it followed, once, in order, rightly."""
    happened = changes(ledger)
    violations = []
    reached: dict[str, int] = {}
    for segment in history.segments:
        who = f"{segment.watcher} in ({segment.start}, {segment.last}]"
        if segment.initial is None and reached.get(segment.watcher) != segment.start:
            violations.append(Violation(LAW, f"{who} did not begin where it had ended: {reached.get(segment.watcher)}"))
        reached[segment.watcher] = segment.last
        violations += [Violation(LAW, f"{who}: {text}") for text in _check_segment(segment, happened)]
    return violations


def _check_segment(segment: Segment, happened: dict[str, list[Change]]) -> Iterable[str]:
    newest = segment.start
    told: dict[int, Told] = {}
    for each in segment.events:
        if each.version in told:
            yield f"told twice: {each}"
        elif each.version <= newest:
            yield f"told after version {newest}: {each}"
        newest = max(newest, each.version)
        told[each.version] = each
    all_changes = happened.get(segment.plural, [])
    first = bisect_right(all_changes, segment.start, key=lambda change: change.version)
    last = bisect_right(all_changes, segment.last, key=lambda change: change.version)
    for change in all_changes[first:last]:
        event = told.pop(change.version, None)
        if not change.certain:
            if event is None and segment.color is None:
                yield f"not told: {change}"
            continue
        wanted = change.as_told(segment.color)
        if event is None and wanted is not None:
            yield f"not told: {change}"
        elif event is not None and (event.type, event.value) != wanted:
            yield f"{event} should be {wanted}: {change}"
    for each in told.values():
        yield f"told, but it never happened: {each}"


def check_states(history: History, ledger: Ledger) -> list[Violation]:
    """Each list, and each state that a watcher began with, shows what was there at its version."""
    happened = changes(ledger)
    violations = []
    for plural, ranges in ledger.covered.items():
        wanted = sorted(_states(history, plural), key=lambda state: state.version)
        for start, end in ranges:
            base = next((each for each in wanted if each.version == start and each.color is None), None)
            current = dict(base.objects) if base is not None else {}
            following = [change for change in happened.get(plural, []) if start < change.version <= end]
            at = 0
            for state in wanted:
                if not start <= state.version <= end:
                    continue
                while at < len(following) and following[at].version <= state.version:
                    _apply(current, following[at])
                    at += 1
                if state.of(current) != state.objects:
                    violations.append(Violation("lists show one state", state.difference(current)))
    return violations


@dataclass(frozen=True, slots=True)
class _State:
    what: str
    version: int
    color: str | None
    objects: dict[str, tuple[int, str]]

    def of(self, objects: dict[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
        """The objects that it should show."""
        if self.color is None:
            return objects
        return {key: each for key, each in objects.items() if color_of(each[1]) == self.color}

    def difference(self, objects: dict[str, tuple[int, str]]) -> str:
        wanted = self.of(objects)
        missing = {key: each for key, each in wanted.items() if self.objects.get(key) != each}
        surplus = {key: each for key, each in self.objects.items() if wanted.get(key) != each}
        return f"{self.what} at version {self.version} shows {surplus} instead of {missing}"


def _states(history: History, plural: str) -> Iterable[_State]:
    for snapshot in history.snapshots:
        if snapshot.plural == plural:
            yield _State("a list", snapshot.version, None, snapshot.objects)
    for segment in history.segments:
        if segment.plural == plural and segment.initial is not None:
            objects = {key: (told.version, told.value) for key, told in segment.initial.items()}
            yield _State(f"{segment.watcher}'s first state", segment.start, segment.color, objects)


def _apply(objects: dict[str, tuple[int, str]], change: Change) -> None:
    if change.value is None:
        objects.pop(change.key, None)
    else:
        objects[change.key] = change.version, change.value


def check_real_time(history: History) -> list[Violation]:
    """A write that began after something was answered has a greater version, whatever the keys; a consistent list that
    began after it has no smaller one."""
    ends: list[tuple[float, int]] = []
    begins: list[tuple[float, int, int]] = []
    for operation in history.operations:
        if operation.outcome is Outcome.OK and operation.version:
            ends.append((operation.completed, operation.version))
            if operation.kind != "read":
                begins.append((operation.invoked, operation.version, 1))
    for snapshot in history.snapshots:
        ends.append((snapshot.completed, snapshot.version))
        if snapshot.consistent:
            begins.append((snapshot.invoked, snapshot.version, 0))
    ends.sort()
    at, newest, violations = 0, 0, []
    for invoked, version, least in sorted(begins):
        while at < len(ends) and ends[at][0] < invoked:
            newest = max(newest, ends[at][1])
            at += 1
        if version < newest + least:
            text = f"version {version} was asked for at {invoked}, after {newest} had been answered"
            violations.append(Violation("nothing is older than what was known before", text))
    return violations
