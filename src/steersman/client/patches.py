"""Patches made from two states of an object. Source: RFC 7396; controller-runtime `pkg/client/patch.go` (MergeFrom)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.client.models import KubernetesObject
from steersman.client.options import wire
from steersman.client.resources import Object


def merge_patch(
    before: KubernetesObject | Object, after: KubernetesObject | Object, *, optimistic_lock: bool = False
) -> Object:
    """The JSON merge patch that makes `after` of `before`, for `Client.patch`; {} when they do not differ.

    With `optimistic_lock` it holds the resourceVersion of `before`: the patch is refused with Conflict when somebody
    has changed the object since. A list is one whole to a merge patch: without the lock, another's item may get lost.
    """
    old, new = wire(before), wire(after)
    patch: Object = merge_diff(old, new)
    if patch and optimistic_lock:
        version = (old.get("metadata") or {}).get("resourceVersion")
        patch["metadata"] = {**(patch.get("metadata") or {}), "resourceVersion": version}
    return patch


def merge_diff(before: Any, after: Any) -> Any:
    """The merge patch of any two values: `after` itself, unless both are mappings."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return after
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key not in before:
            patch[key] = value
        elif before[key] != value:
            patch[key] = merge_diff(before[key], value)
    return patch
