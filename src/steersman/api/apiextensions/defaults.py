"""What the server itself puts into a CustomResourceDefinition before it is judged and stored.

Source: apiextensions `pkg/apis/apiextensions/v1/defaults.go`, `pkg/registry/customresourcedefinition/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman._util.gotext import quote
from steersman.api.apiextensions.schema_rules import walk_schemas
from steersman.apimachinery.schema.formats import is_recognised

Crd = dict[str, Any]


def default_crd(crd: Crd) -> None:
    """Fill in, in place: singular, listKind, conversion strategy None, a webhook service's port, stored versions.

    Nested objects are replaced, not changed.
    """
    spec, status = dict(crd.get("spec") or {}), dict(crd.get("status") or {})
    crd["spec"], crd["status"] = spec, status
    names = spec["names"] = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    spec["conversion"] = _with_port(_without_empty_webhook(spec.get("conversion") or {"strategy": "None"}))
    status.setdefault("conditions", None)
    status.setdefault("acceptedNames", {"plural": "", "kind": ""})
    if not status.get("storedVersions"):
        status["storedVersions"] = _storage_version(crd)


def _without_empty_webhook(conversion: dict[str, Any]) -> dict[str, Any]:
    """A conversion as it comes back from the internal version, which has no place for a webhook that says nothing."""
    webhook = conversion.get("webhook")
    if (
        webhook is None
        or webhook.get("clientConfig") is not None
        or webhook.get("conversionReviewVersions") is not None
    ):
        return conversion
    return {key: value for key, value in conversion.items() if key != "webhook"}


def _with_port(conversion: dict[str, Any]) -> dict[str, Any]:
    """A conversion whose webhook's service, if it has one, has a port."""
    webhook = conversion.get("webhook") or {}
    config = webhook.get("clientConfig") or {}
    service = config.get("service")
    if service is None or service.get("port") is not None:
        return conversion
    return {**conversion, "webhook": {**webhook, "clientConfig": {**config, "service": {**service, "port": 443}}}}


def prepare_crd_for_create(crd: Crd) -> None:
    """Wipe in place the status that a client sent; the storage version counts as stored from the start."""
    crd["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []}
    _note_storage_version(crd)


def prepare_crd_for_update(crd: Crd, old: Mapping[str, Any]) -> None:
    """Take the status from the old object, in place, and note the storage version if it is new."""
    crd["status"] = {**(old.get("status") or {})}
    _note_storage_version(crd)


def prepare_crd_for_status_update(crd: Crd, old: Mapping[str, Any]) -> None:
    """Through /status only status changes: take the spec from the old object, in place."""
    crd["spec"] = old.get("spec") or {}


def _storage_version(crd: Mapping[str, Any]) -> list[str]:
    """The name of the first version marked as storage, if any."""
    versions = (crd.get("spec") or {}).get("versions") or ()
    return [version.get("name") or "" for version in versions if version.get("storage")][:1]


def _note_storage_version(crd: Crd) -> None:
    stored = crd["status"].get("storedVersions") or []
    missing = [name for name in _storage_version(crd) if name not in stored]
    crd["status"]["storedVersions"] = [*stored, *missing]


def crd_warnings(crd: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[str]:
    """Warnings for a create, or for what an update brings anew: unknown formats, sets of objects or lists."""
    formats = _unrecognised_formats(crd)
    sets = _non_scalar_sets(crd)
    if old is not None:
        known_formats, known_sets = _unrecognised_formats(old), _non_scalar_sets(old)
        formats = [name for name in formats if name not in known_formats]
        sets = [name for name in sets if name not in known_sets]
    warnings = [f"unrecognized format {quote(name)}" for name in formats]
    return warnings + [
        f"x-kubernetes-list-type: set for items of type {quote(name)} is not supported by server-side apply "
        "or CEL validation rules"
        for name in sets
    ]


def _schemas(crd: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    versions = (crd.get("spec") or {}).get("versions") or ()
    roots: list[Mapping[str, Any]] = []
    for version in versions:
        root = (version.get("schema") or {}).get("openAPIV3Schema")
        # a schema that all versions share is looked at once
        if root is not None and root not in roots:
            roots.append(root)
    return [schema for root in roots for schema in walk_schemas(root)]


def _unrecognised_formats(crd: Mapping[str, Any]) -> list[str]:
    named = [(schema.get("type") or "", schema.get("format") or "") for schema in _schemas(crd)]
    return [name for kind, name in named if name and not is_recognised(kind, name)]


def _non_scalar_sets(crd: Mapping[str, Any]) -> list[str]:
    items = [
        schema["items"].get("type")
        for schema in _schemas(crd)
        if schema.get("x-kubernetes-list-type") == "set" and isinstance(schema.get("items"), Mapping)
    ]
    return sorted({kind for kind in items if kind in ("object", "array")})
