"""What is known of objects, from the watch and from our own writes, in whatever order the two tell it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.runtime.cache.indexer import TRUST, Indexer, is_newer

KEY = ("default", "a")


def obj(version: int, uid: str = "u1", name: str = "a", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **more}


def tell(indexer: Indexer, kind: Any, raw: dict[str, Any], initial: bool = False) -> list[tuple[str, str]]:
    return [(told.type, told.raw["metadata"]["resourceVersion"]) for told in indexer.tell(kind, raw, initial)]


def version_of(indexer: Indexer, key: tuple[str, str] = KEY) -> str | None:
    known = indexer.get(key)
    return None if known is None else known.version


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, dict[str, Any]]]:
    """What happens to one name on a server: it is made, changed, deleted, made anew."""
    events: list[tuple[str, dict[str, Any]]] = []
    version, life, alive = 0, 0, False
    for _ in range(draw(st.integers(1, 10))):
        version += draw(st.integers(1, 3))
        if not alive:
            life, alive = life + 1, True
            events.append(("ADDED", obj(version, f"u{life}")))
        elif draw(st.booleans()):
            events.append(("MODIFIED", obj(version, f"u{life}")))
        else:
            alive = False
            events.append(("DELETED", obj(version, f"u{life}")))
    return events


@settings(max_examples=150, deadline=None)
@given(histories(), st.data())
def test_whatever_the_order_of_answers_and_events_nothing_older_is_read_and_the_end_is_right(
    history: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    """Some of what happens was done by us: the answers come before, between or after the events of the watch."""
    indexer = Indexer()
    ours = [number for number, (kind, _) in enumerate(history) if kind != "DELETED" and data.draw(st.booleans())]
    written = 0
    for kind, raw in history:
        # Answers come in the order of our writes, at any time after the write, so also long before the watch.
        while ours and data.draw(st.booleans()):
            answer = history[ours.pop(0)][1]
            indexer.observe(answer)
            written = max(written, int(answer["metadata"]["resourceVersion"]))
        tell(indexer, kind, raw)
        known = version_of(indexer)
        assert known is None or int(known) >= written
    for number in ours:
        indexer.observe(history[number][1])
    kind, last = history[-1]
    assert version_of(indexer) == (None if kind == "DELETED" else last["metadata"]["resourceVersion"])
    assert len(indexer) == len(indexer.keys_in("default")) == (kind != "DELETED")


def test_when_the_server_has_begun_anew_older_states_count() -> None:
    indexer = Indexer()
    tell(indexer, "ADDED", obj(800), True)
    indexer.observe(obj(801))
    indexer.observe_deletion(("default", "b"), "u2")
    indexer.begin_anew()
    assert tell(indexer, "ADDED", obj(3), True) == [("MODIFIED", "3")]
    assert tell(indexer, "ADDED", obj(4, "u2", "b"), True) == [("ADDED", "4")]
    assert [told.type for told in indexer.observe(obj(5))] == ["MODIFIED"]


def test_an_answer_before_its_event_is_read_at_once_and_the_event_is_nothing_new() -> None:
    indexer = Indexer()
    tell(indexer, "ADDED", obj(1), True)
    [told] = indexer.observe(obj(5))
    assert (told.type, told.before and told.before.version) == ("MODIFIED", "1")
    assert tell(indexer, "MODIFIED", obj(3)) == []
    assert version_of(indexer) == "5"
    assert tell(indexer, "MODIFIED", obj(5)) == []
    assert tell(indexer, "MODIFIED", obj(6)) == [("MODIFIED", "6")]


def test_an_answer_after_the_deletion_makes_no_ghost() -> None:
    indexer = Indexer()
    tell(indexer, "ADDED", obj(1), True)
    tell(indexer, "MODIFIED", obj(5))
    tell(indexer, "DELETED", obj(6))
    assert indexer.observe(obj(5)) == []
    assert version_of(indexer) is None


def test_an_answer_of_the_past_makes_no_ghost_after_a_relist() -> None:
    indexer = Indexer()
    list(indexer.vanished(set(), "9"))
    assert indexer.observe(obj(5)) == []
    assert [told.type for told in indexer.observe(obj(10))] == ["ADDED"]


def test_what_was_deleted_by_us_does_not_come_back_with_older_events() -> None:
    indexer = Indexer()
    tell(indexer, "ADDED", obj(1), True)
    assert [told.type for told in indexer.observe_deletion(KEY, "u1")] == ["DELETED"]
    assert tell(indexer, "MODIFIED", obj(2)) == []
    assert indexer.observe(obj(2)) == []
    assert version_of(indexer) is None
    assert tell(indexer, "DELETED", obj(3)) == []
    assert tell(indexer, "ADDED", obj(4, "u2")) == [("ADDED", "4")]


def test_what_was_deleted_before_it_was_told_does_not_appear() -> None:
    indexer = Indexer()
    assert indexer.observe_deletion(KEY, "u1") == []
    assert tell(indexer, "ADDED", obj(2)) == []
    assert tell(indexer, "DELETED", obj(3)) == []
    assert version_of(indexer) is None


def test_made_anew_under_its_name_the_old_one_goes_first() -> None:
    indexer = Indexer()
    tell(indexer, "ADDED", obj(1), True)
    assert [(told.type, told.raw["metadata"]["uid"]) for told in indexer.observe(obj(5, "u2"))] == [
        ("DELETED", "u1"),
        ("ADDED", "u2"),
    ]
    assert tell(indexer, "DELETED", obj(4, "u1")) == []
    assert tell(indexer, "ADDED", obj(5, "u2")) == []
    assert version_of(indexer) == "5"


def test_a_relist_keeps_what_was_written_after_it() -> None:
    indexer = Indexer()
    tell(indexer, "ADDED", obj(1), True)
    indexer.observe(obj(8, "u9", "b"))
    indexer.observe(obj(4, "u8", "c"))
    gone = list(indexer.vanished({KEY}, "6"))
    assert [told.raw["metadata"]["name"] for told in gone] == ["c"]
    assert sorted(name for _, name in indexer.keys_in()) == ["a", "b"]


def test_a_cluster_from_a_backup_is_believed_in_the_end() -> None:
    now = 0.0
    indexer = Indexer(clock=lambda: now)
    indexer.observe(obj(100))
    assert tell(indexer, "MODIFIED", obj(50), True) == []
    now = TRUST + 1
    assert tell(indexer, "MODIFIED", obj(50), True) == [("MODIFIED", "50")]


def test_deletions_are_not_remembered_for_ever() -> None:
    now = 0.0
    indexer = Indexer(clock=lambda: now)
    for number in range(1000):
        now += 1.0
        indexer.observe_deletion(("default", str(number)), f"u{number}")
    assert len(indexer._buried) <= TRUST + 2


def test_what_is_handed_out_is_the_callers_own() -> None:
    indexer = Indexer()
    given_in = obj(1, data={"a": "b"})
    tell(indexer, "ADDED", given_in)
    given_in["data"]["a"] = "changed"
    known = indexer.get(KEY)
    assert known is not None
    known.raw["data"]["a"] = "changed"
    assert known.raw["data"] == {"a": "b"}


def test_indexes_follow_changes_and_have_what_was_there() -> None:
    indexer = Indexer()
    tell(indexer, "ADDED", obj(1, data={"use": "x"}))
    indexer.add_index("use", lambda raw: [raw["data"]["use"], raw["data"]["use"]] if raw.get("data") else [])
    tell(indexer, "ADDED", obj(2, "u2", "b", data={"use": "x"}))
    assert sorted(indexer.by_index("use", "x")) == [("default", "a"), ("default", "b")]
    tell(indexer, "MODIFIED", obj(3, data={"use": "y"}))
    indexer.observe(obj(4, "u2", "b"))
    assert (indexer.by_index("use", "x"), indexer.by_index("use", "y")) == ([], [KEY])
    tell(indexer, "DELETED", obj(5))
    assert indexer.by_index("use", "y") == []
    with pytest.raises(LookupError, match="no index 'other'"):
        indexer.by_index("other", "x")
    with pytest.raises(ValueError, match="an index 'use' already"):
        indexer.add_index("use", lambda raw: [])


def test_versions_compare_as_numbers_where_they_are() -> None:
    assert is_newer("10", "9")
    assert not is_newer("9", "10")
    assert not is_newer("9", "9")
    assert is_newer("abc", "abd")


def test_an_object_that_an_index_fails_for_is_told_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    indexer = Indexer()
    indexer.add_index("use", lambda raw: [raw["data"]["use"]])
    assert tell(indexer, "ADDED", obj(1)) == [("ADDED", "1")]
    assert [told.type for told in indexer.observe(obj(2, data={"use": "x"}))] == ["MODIFIED"]
    assert indexer.by_index("use", "x") == [KEY]
    assert "an index cannot be made of default/a" in caplog.text
