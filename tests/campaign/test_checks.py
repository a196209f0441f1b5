"""The checks accept what a register with versions does, and find what it cannot do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from faults.checks import check, check_leaders, read_claims
from faults.history import Claim, History, Segment, Snapshot, Told, color_of
from faults.linearizability import Operation, OperationKind, Outcome

KEYS = ("configmaps/a", "configmaps/b")
OK, CONFLICT, UNKNOWN, ABSENT = Outcome.OK, Outcome.CONFLICT, Outcome.UNKNOWN, Outcome.ABSENT


class World:
    """A perfect register for each key, and clients that ask one after the other; the history is right."""

    def __init__(self) -> None:
        self.history = History()
        self.version, self.time = 10, 0.0
        self.state: dict[str, tuple[int, str]] = {}
        self.all = Segment("all", "configmaps", None, 10, {}, last=10)
        self.red = Segment("red", "configmaps", "red", 10, {}, last=10)
        self.history.segments += [self.all, self.red]

    def tick(self) -> float:
        self.time += 1.0
        return self.time

    def write(
        self, kind: OperationKind, key: str, value: str | None, *, answered: bool = True, told: bool = True
    ) -> Operation:
        """A write that succeeds, whether or not that is answered."""
        before = self.state.get(key)
        invoked = self.tick()
        self.version += 1
        if value is None:
            del self.state[key]
        else:
            self.state[key] = self.version, value
        if told:
            self._tell(key, before[1] if before else None, value)
        expected = before[1] if before and kind in ("put", "delete") else None
        version = self.version if answered and value is not None else 0
        done = Operation(kind, key, invoked, self.tick(), OK if answered else UNKNOWN, value, expected, version)
        self.history.operations.append(done)
        return done

    def _tell(self, key: str, before: str | None, value: str | None) -> None:
        for segment in (self.all, self.red):
            was = before is not None and segment.color in (None, color_of(before))
            now = value is not None and segment.color in (None, color_of(value))
            told = value if now else before
            if now or was:
                kind = ("MODIFIED" if was else "ADDED") if now else "DELETED"
                assert told is not None
                segment.events.append(Told(kind, key, self.version, told, self.time))  # type: ignore[arg-type]
            segment.last = self.version

    def read(self, key: str) -> None:
        found = self.state.get(key)
        invoked = self.tick()
        outcome, value, version = (OK, found[1], found[0]) if found else (ABSENT, None, 0)
        self.history.operations.append(Operation("read", key, invoked, self.tick(), outcome, value, None, version))

    def refused(self, key: str, expected: str) -> None:
        invoked = self.tick()
        self.history.operations.append(Operation("put", key, invoked, self.tick(), CONFLICT, "x-1-red", expected))

    def list(self) -> None:
        invoked = self.tick()
        found = Snapshot("configmaps", invoked, self.tick(), self.version, True, dict(self.state))
        self.history.snapshots.append(found)


def world(seed: int = 0, length: int = 200) -> World:
    """A random history of two keys that is as it should be."""
    chance = Random(seed)
    made = World()
    overwritten: dict[str, str] = {}
    for number in range(length):
        key, value = chance.choice(KEYS), f"w-{number}-{chance.choice(('red', 'blue'))}"
        answered = chance.random() < 0.9
        if key not in made.state:
            made.write("create", key, value, answered=answered)
            continue
        overwritten[key] = made.state[key][1]
        choice = chance.random()
        if choice < 0.4:
            made.write("put", key, value, answered=answered)
            made.refused(key, overwritten[key])
        elif choice < 0.5:
            made.write("patch", key, value, answered=answered)
        elif choice < 0.6:
            made.write("delete", key, None, answered=answered)
            made.read(key)
        elif choice < 0.8:
            made.read(key)
        else:
            made.list()
    return made


@pytest.mark.parametrize("seed", range(20))
def test_what_is_right_is_found_right(seed: int) -> None:
    assert check(world(seed).history) == []


def laws(history: History) -> set[str]:
    return {violation.check for violation in check(history)}


def broken(change: Callable[[World], None]) -> set[str]:
    made = world()
    change(made)
    return laws(made.history)


def test_a_lost_update() -> None:
    """Two were told that they had overwritten the same state."""
    made = World()
    made.write("create", KEYS[0], "a-1-red")
    made.write("put", KEYS[0], "a-2-red")
    second = made.write("put", KEYS[0], "b-1-red")
    made.history.operations[-1] = replace(second, expected="a-1-red")
    assert laws(made.history) == {"no update is lost", "linearizable"}


def test_a_lost_write() -> None:
    """It was acknowledged, nobody was told, and it is not there."""
    made = World()
    made.write("create", KEYS[0], "a-1-red")
    before = dict(made.state)
    made.write("put", KEYS[0], "a-2-red", told=False)
    made.state = before
    made.read(KEYS[0])
    made.write("patch", KEYS[0], "a-3-red")
    made.list()
    assert {"linearizable", "watches are complete and in order"} <= laws(made.history)


def test_a_lost_deletion() -> None:
    made = World()
    made.write("create", KEYS[0], "a-1-red")
    before = dict(made.state)
    made.write("delete", KEYS[0], None, told=False)
    made.state = before
    made.write("patch", KEYS[0], "a-2-red")
    assert "no acknowledged write is lost" in laws(made.history)


def test_a_stale_read() -> None:
    made = World()
    first = made.write("create", KEYS[0], "a-1-red")
    made.write("put", KEYS[0], "a-2-red")
    invoked = made.tick()
    made.history.operations.append(
        Operation("read", KEYS[0], invoked, made.tick(), OK, first.value, None, first.version)
    )
    assert laws(made.history) == {"linearizable"}


def test_an_absence_that_was_not() -> None:
    made = World()
    made.write("create", KEYS[0], "a-1-red")
    invoked = made.tick()
    made.history.operations.append(Operation("read", KEYS[0], invoked, made.tick(), ABSENT))
    assert laws(made.history) == {"linearizable"}


def test_a_conflict_without_a_reason() -> None:
    made = World()
    made.write("create", KEYS[0], "a-1-red")
    made.refused(KEYS[0], "a-1-red")
    made.read(KEYS[0])
    assert laws(made.history) == {"linearizable"}


def test_a_write_that_was_refused_and_carried_out() -> None:
    made = World()
    made.write("create", KEYS[0], "a-1-red")
    refused = made.write("put", KEYS[0], "a-2-red")
    made.history.operations[-1] = replace(refused, outcome=CONFLICT, version=0)
    made.read(KEYS[0])
    assert "everything was asked for" in laws(made.history)


def test_a_deletion_that_nobody_asked_for() -> None:
    made = World()
    made.write("create", KEYS[0], "a-1-red")
    made.write("delete", KEYS[0], None)
    del made.history.operations[-1]
    assert laws(made.history) == {"everything was asked for"}


def test_a_version_that_is_two_writes() -> None:
    made = World()
    made.write("create", KEYS[0], "a-1-red")
    made.version -= 1
    made.write("create", KEYS[1], "b-1-red", told=False)
    assert laws(made.history) == {"a version is one write"}


def test_a_value_that_is_written_twice() -> None:
    made = World()
    made.write("create", KEYS[0], "a-1-red", answered=False)
    made.write("patch", KEYS[0], "a-2-red")
    made.write("patch", KEYS[0], "a-1-red")
    assert laws(made.history) == {"a version is one write"}


def test_versions_that_go_back() -> None:
    """Of different keys: no one register shows it."""
    made = World()
    late = made.write("create", KEYS[0], "a-1-red")
    made.write("create", KEYS[1], "b-1-red")
    operations = made.history.operations
    operations[0] = replace(late, invoked=made.tick(), completed=made.tick())
    assert laws(made.history) == {"nothing is older than what was known before"}


def test_a_list_that_is_older_than_an_acknowledged_write() -> None:
    made = World()
    made.write("create", KEYS[0], "a-1-red")
    version, state = made.version, dict(made.state)
    made.write("put", KEYS[0], "a-2-red")
    old = Snapshot("configmaps", made.tick(), made.tick(), version, True, state)
    made.history.snapshots.append(old)
    assert laws(made.history) == {"nothing is older than what was known before"}
    made.history.snapshots[-1] = replace(old, consistent=False)
    assert laws(made.history) == set()


def test_a_list_of_two_moments() -> None:
    made = World()
    made.write("create", KEYS[0], "a-1-red")
    made.write("create", KEYS[1], "b-1-red")
    made.list()
    made.history.snapshots[-1].objects.pop(KEYS[0])
    assert laws(made.history) == {"lists show one state"}


WATCHES = "watches are complete and in order"


def test_a_missing_event() -> None:
    assert broken(lambda made: made.all.events.pop(50) and None) >= {WATCHES}
    assert broken(lambda made: made.red.events.pop(20) and None) == {WATCHES}


def test_an_event_that_is_told_twice() -> None:
    assert broken(lambda made: made.all.events.insert(51, made.all.events[50])) == {WATCHES}


def test_events_that_are_told_in_another_order() -> None:
    def swap(made: World) -> None:
        events = made.red.events
        events[10], events[11] = events[11], events[10]

    assert broken(swap) == {WATCHES}


def test_an_event_of_the_wrong_kind() -> None:
    def change(made: World) -> None:
        found = next(at for at, event in enumerate(made.red.events) if event.type == "ADDED")
        made.red.events[found] = replace(made.red.events[found], type="MODIFIED")

    assert broken(change) == {WATCHES}


def test_a_gap_where_a_watch_was_resumed() -> None:
    def cut(made: World) -> None:
        middle = made.red.events[10].version
        rest = Segment("red", "configmaps", "red", middle, None, made.red.events[11:], made.red.last)
        del made.red.events[10:]
        made.red.last = middle - 1
        made.history.segments.append(rest)

    assert broken(cut) == {WATCHES}


def test_a_gap_after_410_is_none() -> None:
    """What nobody could be told of is not missed; what is known besides is judged all the same."""
    made = World()
    made.write("create", KEYS[0], "a-1-red")
    made.write("put", KEYS[0], "a-2-red", told=False)
    made.write("delete", KEYS[0], None, told=False)
    made.write("create", KEYS[0], "a-3-red", told=False)
    made.all.last = made.red.last = made.version - 3
    state = {KEYS[0]: Told("ADDED", KEYS[0], made.version, "a-3-red", made.time)}
    made.history.segments.append(Segment("all", "configmaps", None, made.version, state, last=made.version))
    made.list()
    assert laws(made.history) == set()


def test_a_state_that_a_watch_should_not_have_begun_with() -> None:
    def begin(made: World) -> None:
        made.history.segments.append(Segment("new", "configmaps", None, made.version, {}, last=made.version))

    assert broken(begin) == {"lists show one state"}


LEADING = [Claim("a", 1, 0.0, 0.1), Claim("a", 1, 5.0, 5.1), Claim("b", 2, 6.0, 6.1), Claim("a", 3, 9.0, 9.1)]


def test_leaders_one_after_the_other() -> None:
    assert check_leaders(LEADING) == []


def test_two_leaders_at_a_time() -> None:
    found = check_leaders([*LEADING, Claim("b", 2, 9.2, 9.3), Claim("a", 3, 9.4, 9.5)])
    assert [violation.check for violation in found] == ["one leads at a time"]


def test_a_fencing_token_that_does_not_grow() -> None:
    found = check_leaders([*LEADING, Claim("b", 3, 12.0, 12.1)])
    assert [violation.check for violation in found] == ["fencing tokens grow"]


def test_claims_are_read_from_a_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "claims"
    assert read_claims(file) == []
    file.write_text("a 1 0.5 0.75\nb 2 1.5")
    assert read_claims(file) == [Claim("a", 1, 0.5, 0.75)]
