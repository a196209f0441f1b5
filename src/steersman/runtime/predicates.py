"""Which events lead to a reconcile. A predicate gets an Event and says whether it counts.

Source: controller-runtime `pkg/predicate/predicate.go`. They hold for changes; an object that is new or gone counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.apimachinery import selectors
from steersman.runtime.cache.events import Event

Predicate: TypeAlias = Callable[[Event], bool]


def generation_changed(event: Event) -> bool:
    """Only changes of the spec: of what raises `metadata.generation`. Deletion's beginning raises it, too."""
    return _differs(event, lambda metadata: metadata.get("generation"))


def resource_version_changed(event: Event) -> bool:
    """No resyncs."""
    return not event.resync


def labels_changed(event: Event) -> bool:
    return _differs(event, lambda metadata: metadata.get("labels"))


def annotations_changed(event: Event) -> bool:
    return _differs(event, lambda metadata: metadata.get("annotations"))


def finalizers_changed(event: Event) -> bool:
    return _differs(event, lambda metadata: metadata.get("finalizers"))


def has_labels(selector: str) -> Predicate:
    """Only objects that a label selector selects. Raises SelectorError."""
    matches = selectors.parse(selector).matches
    return lambda event: matches(event.metadata.get("labels"))


def all_of(*predicates: Predicate) -> Predicate:
    return lambda event: all(predicate(event) for predicate in predicates)


def any_of(*predicates: Predicate) -> Predicate:
    return lambda event: any(predicate(event) for predicate in predicates)


def negate(predicate: Predicate) -> Predicate:
    return lambda event: not predicate(event)


def _differs(event: Event, field: Callable[[Any], Any]) -> bool:
    if event.type != "MODIFIED":
        return True
    old = event.old
    return old is None or field(old.get("metadata") or {}) != field(event.metadata)
