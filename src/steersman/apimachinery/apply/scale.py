"""Ownership through the scale subresource: spec.replicas of a Scale is a field of its parent under another path.

A write to /scale runs `track_update` or `apply` on Scale objects whose managedFields come from `to_scale`, and gives
the parent what `to_parent` makes of the outcome.

Source: apimachinery `util/managedfields/scalehandler.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steersman.apimachinery.apply.entries import Entry, Managed, WireEntry, decode, ordered
from steersman.apimachinery.apply.fieldset import FieldSet

SCALE_VERSION = "autoscaling/v1"
REPLICAS = FieldSet.of(("spec", "replicas"))

Paths = Mapping[str, Sequence[str] | None]
"""Where each apiVersion of the parent has its replicas, as plain field names; None: it has no scale subresource."""


def to_scale(parent: Any, paths: Paths) -> list[WireEntry]:
    """The managedFields of a Scale: the entries of its parent that own the replicas."""
    managed: Managed = {}
    for identity, entry in (decode(parent or [], trusted=True) or {}).items():
        path = paths.get(entry.api_version)
        if path and entry.fields.has(_elements(path)):
            managed[identity] = Entry(identity, SCALE_VERSION, REPLICAS, entry.time)
    return ordered(managed)


def to_parent(parent: Any, scale: Any, paths: Paths, api_version: str) -> list[WireEntry] | None:
    """The parent's managedFields after a write to its Scale gave that one `scale`; None when nothing is owned.

    `api_version` is the parent's version in the request. Entries of versions that `paths` lacks are dropped; one that
    is made here has no time, as upstream's.
    """
    before = decode(parent or [], trusted=True) or {}
    owners = decode(scale or [], trusted=True) or {}
    after: Managed = {}
    for identity, entry in before.items():
        if entry.api_version not in paths:
            continue
        path = paths[entry.api_version]
        if not path or not entry.fields.has(_elements(path)):
            after[identity] = entry
        elif identity in owners:
            after[identity] = entry
            del owners[identity]
        else:
            left = entry.fields.difference(FieldSet.of(path))
            if left:
                after[identity] = entry.with_fields(left)
    own_path = paths.get(api_version)
    for identity, entry in owners.items():
        if own_path and entry.fields.has(("f:spec", "f:replicas")):
            known = before.get(identity)
            after[identity] = Entry(identity, api_version, FieldSet.of(own_path), known.time if known else None)
    return ordered(after) or None


def _elements(path: Sequence[str]) -> list[str]:
    return [f"f:{name}" for name in path]
