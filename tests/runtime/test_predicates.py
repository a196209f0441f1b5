"""Which events count."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from steersman.apimachinery.selectors import SelectorError
from steersman.client.watch_memory import Known
from steersman.runtime import predicates
from steersman.runtime.cache.events import Event

FIELDS = {
    predicates.generation_changed: ("generation", 1, 2),
    predicates.labels_changed: ("labels", {"a": "1"}, {"a": "2"}),
    predicates.annotations_changed: ("annotations", None, {"a": "2"}),
    predicates.finalizers_changed: ("finalizers", ["a"], []),
}


def obj(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "resourceVersion": "1", **metadata}}


def changed(old: dict[str, Any], new: dict[str, Any]) -> Event:
    return Event("MODIFIED", new, Known("u", "1", orjson.dumps(old)))


@pytest.mark.parametrize("predicate", FIELDS)
def test_a_field_counts_and_no_other_does(predicate: predicates.Predicate) -> None:
    field, before, after = FIELDS[predicate]
    assert predicate(changed(obj(**{field: before}), obj(**{field: after})))
    for other, old, new in FIELDS.values():
        if other != field:
            assert not predicate(changed(obj(**{other: old}), obj(**{other: new})))
    assert predicate(Event("ADDED", obj()))
    assert predicate(Event("DELETED", obj()))
    assert not predicate(Event("MODIFIED", obj(), resync=True))


def test_resyncs_can_be_left_out() -> None:
    assert predicates.resource_version_changed(changed(obj(), obj(resourceVersion="2")))
    assert not predicates.resource_version_changed(Event("MODIFIED", obj(), resync=True))


def test_labels_select() -> None:
    blue = predicates.has_labels("color in (blue, navy), !hidden")
    assert blue(Event("ADDED", obj(labels={"color": "navy"})))
    assert not blue(Event("ADDED", obj(labels={"color": "navy", "hidden": ""})))
    assert not blue(Event("ADDED", obj()))
    with pytest.raises(SelectorError):
        predicates.has_labels("color in (")


def test_predicates_are_combined() -> None:
    yes, no = predicates.has_labels("a"), predicates.has_labels("!a")
    event = Event("ADDED", obj(labels={"a": ""}))
    assert predicates.all_of(yes, yes)(event)
    assert not predicates.all_of(yes, no)(event)
    assert predicates.any_of(no, yes)(event)
    assert not predicates.any_of(no, no)(event)
    assert predicates.negate(no)(event)
