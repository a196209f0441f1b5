"""Custom resources carry their metadata untyped; the API still reads it as the type ObjectMeta.

Source: apimachinery `pkg/apis/meta/v1/types.go`; apiextensions-apiserver `pkg/apiserver/schema/objectmeta/coerce.go`.
"""

from __future__ import annotations

from typing import Any

from steersman.apimachinery.go_types import TypeTable
from steersman.apimachinery.go_values import DecodeError, json_kind, mismatch

_META = "apimachinery/pkg/apis/meta/v1."
_STRING_MAP = "map[string]string"
_TYPES: dict[str, Any] = {
    f"{_META}ObjectMeta": [
        ["name", 1, "string"],
        ["generateName", 1, "string"],
        ["namespace", 1, "string"],
        ["selfLink", 1, "string"],
        ["uid", 1, "apimachinery/pkg/types.UID"],
        ["resourceVersion", 1, "string"],
        ["generation", 1, "int64"],
        ["creationTimestamp", 3, f"{_META}Time"],
        ["deletionTimestamp", 1, f"*{_META}Time"],
        ["deletionGracePeriodSeconds", 1, "*int64"],
        ["labels", 1, _STRING_MAP],
        ["annotations", 1, _STRING_MAP],
        ["ownerReferences", 1, f"[]{_META}OwnerReference"],
        ["finalizers", 1, "[]string"],
        ["managedFields", 1, f"[]{_META}ManagedFieldsEntry"],
    ],
    f"{_META}OwnerReference": [
        ["apiVersion", 0, "string"],
        ["kind", 0, "string"],
        ["name", 0, "string"],
        ["uid", 0, "apimachinery/pkg/types.UID"],
        ["controller", 1, "*bool"],
        ["blockOwnerDeletion", 1, "*bool"],
    ],
    f"{_META}ManagedFieldsEntry": [
        ["manager", 1, "string"],
        ["operation", 1, f"{_META}ManagedFieldsOperationType"],
        ["apiVersion", 1, "string"],
        ["time", 1, f"*{_META}Time"],
        ["fieldsType", 1, "string"],
        ["fieldsV1", 1, f"*{_META}FieldsV1"],
        ["subresource", 1, "string"],
    ],
    f"{_META}ManagedFieldsOperationType": "string",
    f"{_META}Time": "!Time",
    f"{_META}FieldsV1": "!FieldsV1",
    "apimachinery/pkg/types.UID": "string",
}
_TABLE = TypeTable(_TYPES)
_FIELDS = frozenset(entry[0] for entry in _TYPES[f"{_META}ObjectMeta"])


def coerce_object_meta(value: Any, *, drop_malformed: bool = False) -> tuple[dict[str, Any], list[str]]:
    """A custom resource's metadata as the API stores it, and the paths of fields it does not know (`metadata.x`).

    Null and empty fields vanish, times become canonical, keys are sorted. `drop_malformed` (for what the store holds)
    drops fields of wrong types instead of refusing them. Raises DecodeError with Go's text for a wrong type.
    """
    if not isinstance(value, dict):
        if drop_malformed or value is None:
            return {}, []
        raise mismatch(json_kind(value), None, "v1.ObjectMeta")
    ordered = {key: _as_marshalled(value[key]) for key in sorted(value)}
    if drop_malformed:
        ordered = {key: each for key, each in ordered.items() if _fits(key, each)}
    try:
        decoded, unknown = _TABLE.decode(f"{_META}ObjectMeta", ordered)
    except DecodeError:
        _TABLE.decode(f"{_META}ObjectMeta", _sorted(ordered))  # upstream comes across the keys in their order
        raise
    if len(unknown) > 1:
        decoded, unknown = _TABLE.decode(f"{_META}ObjectMeta", _sorted(ordered))
    return dict(sorted(decoded.items())), [f"metadata.{path}" for path in unknown]


def _fits(key: str, value: Any) -> bool:
    if key not in _FIELDS:
        return False
    try:
        _TABLE.decode(f"{_META}ObjectMeta", {key: value})
    except DecodeError:
        return False
    return True


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _as_marshalled(value: Any) -> Any:
    """Untyped numbers lose a fraction of zero on their way into the typed metadata."""
    if isinstance(value, float) and value == int(value) and abs(value) < 1e21:
        return int(value)
    return value
