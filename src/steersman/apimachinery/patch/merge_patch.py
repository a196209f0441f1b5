"""JSON merge patch (RFC 7386), as kube-apiserver applies it.

Source: apiserver `endpoints/handlers/patch.go` (applyJSPatch), evanphx/json-patch v4 `merge.go`.
"""

from __future__ import annotations

from typing import Any

from steersman.apimachinery.errors import BadRequest

MEDIA_TYPE = "application/merge-patch+json"
_KINDS = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def apply(document: dict[str, Any], patch: Any, *, lenient: bool = False) -> dict[str, Any]:
    """The document with the patch merged in; the document itself if the patch changes no value.

    Takes decoded JSON and changes neither argument: what the patch does not touch is shared with the document, what
    it brings is shared with the patch. A null removes; null members of new objects are left out at any depth. The
    fields of what is touched are sorted, as Go writes them: errors tell the first of two.
    Raises BadRequest when the patch is no object; in other words if `lenient`, for fieldValidation=Ignore.
    """
    if patch is None or (lenient and not isinstance(patch, dict | list)):
        raise BadRequest("Invalid JSON Patch")
    if not isinstance(patch, dict):
        kind = _KINDS[type(patch)]
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    return _merge_objects(document, patch)


def diff(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The smallest merge patch that makes `new` out of `old`: `apply(old, diff(old, new)) == new`.

    Nulls inside `new` cannot be said in a merge patch: they count as absent.
    """
    out: dict[str, Any] = {name: None for name in old if new.get(name) is None and old[name] is not None}
    for name, value in new.items():
        before = old.get(name)
        if value is None or before is value:
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            below = diff(before, value)
            if below:
                out[name] = below
        elif not _same(before, value):
            out[name] = value
    return out


def _same(a: Any, b: Any) -> bool:
    """Equality that tells true from 1 at any depth."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(value, b[name]) for name, value in a.items())
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _merge_objects(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] | None = None
    for name, value in patch.items():
        if value is None:
            if name in document:
                out = dict(document) if out is None else out
                del out[name]
            continue
        merged = _merge(document.get(name), value)
        if name not in document or merged is not document[name]:
            out = dict(document) if out is None else out
            out[name] = merged
    return document if out is None else dict(sorted(out.items()))


def _merge(current: Any, patch: Any) -> Any:
    if not isinstance(current, dict):
        return _without_nulls(patch)
    if not isinstance(patch, dict):
        return patch
    return _merge_objects(current, patch)


def _without_nulls(value: Any) -> Any:
    """The value, in order, without null members of objects; nulls that are list items stay."""
    if isinstance(value, dict):
        return {name: _without_nulls(value[name]) for name in sorted(value) if value[name] is not None}
    if isinstance(value, list):
        if not any(isinstance(item, dict | list) for item in value):
            return value
        return [_without_nulls(item) for item in value]
    return value
