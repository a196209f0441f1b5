"""What stands around the schemas: subresources, printer columns, which versions are served."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steersman.api.apiextensions.lint.findings import LintFinding, found
from steersman.api.apiextensions.lint.places import Place, Version, children, keeps_unknown
from steersman.apimachinery.jsonpath import JsonPathError, keys_of

_COLUMN_TYPES = {
    "integer": ("integer", "number"),
    "number": ("integer", "number"),
    "boolean": ("boolean",),
    "date": ("string",),
}


def definition_findings(crd: Mapping[str, Any]) -> Iterator[LintFinding]:
    """What is odd about a definition, whatever its schemas."""
    spec = crd.get("spec") or {}
    if spec.get("preserveUnknownFields") is not None:
        message = "preserveUnknownFields is deprecated and may only be false, as it is without it"
        yield found("deprecated-field", "spec.preserveUnknownFields", "", message)
    versions = spec.get("versions") or ()
    if versions and not any(version.get("served") for version in versions):
        yield found("nothing-served", "spec.versions", "", "no version is served: the kind does not exist for clients")


def surface_findings(version: Version) -> Iterator[LintFinding]:
    """What is odd about the subresources and the columns of a version."""
    yield from _status(version)
    yield from _scale(version)
    for index, column in enumerate(version.raw.get("additionalPrinterColumns") or ()):
        yield from _column(version, column, f"{version.path}.additionalPrinterColumns[{index}]")


def _status(version: Version) -> Iterator[LintFinding]:
    has_field = version.at("status") is not None
    enabled = _subresources(version).get("status") is not None
    if has_field and not enabled:
        message = "has a status, but not the status subresource: who changes the spec may change the status, too"
        yield found("missing-status-subresource", version.path, version.subject(), message)
    if enabled and not has_field and not keeps_unknown(version.root):
        message = "has the status subresource, but no status in its schema: every status is dropped"
        yield found("status-not-in-schema", f"{version.path}.subresources.status", version.subject(), message)


def _scale(version: Version) -> Iterator[LintFinding]:
    scale = _subresources(version).get("scale")
    if scale is None:
        if version.at("spec.replicas") is not None and version.at("status.replicas") is not None:
            message = "has replicas, but not the scale subresource: kubectl scale and autoscalers cannot set them"
            yield found("missing-scale-subresource", version.path, version.subject(), message)
        return
    for key in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath"):
        text = scale.get(key)
        if text and _target(version, str(text)) is None:
            message = f"scales by {text}, which its schema does not have"
            yield found("unknown-scale-path", f"{version.path}.subresources.scale.{key}", version.subject(), message)


def _subresources(version: Version) -> Mapping[str, Any]:
    return version.raw.get("subresources") or {}


def _column(version: Version, column: Mapping[str, Any], path: str) -> Iterator[LintFinding]:
    text, kind = str(column.get("jsonPath") or ""), column.get("type")
    if not text:
        return
    target = _target(version, text)
    subject = version.subject(f"column {column.get('name') or ''}")
    if target is None:
        yield found("unknown-column-path", f"{path}.jsonPath", subject, f"shows {text}, which the schema does not have")
    elif isinstance(target, Place) and kind in _COLUMN_TYPES:
        actual = target.schema.get("type")
        if actual and actual not in _COLUMN_TYPES[kind]:
            message = f"is of type {kind}, but {target.field} is of type {actual}: the column stays empty"
            yield found("column-type", f"{path}.type", subject, message)


def _target(version: Version, text: str) -> Place | bool | None:
    """The place that a JSONPath leads to; None if there is none, True if that cannot be told."""
    try:
        keys = keys_of(text)
    except JsonPathError:
        return True
    place = version.places[0]
    for key in keys:
        if key is None or (place.role == "root" and key in ("metadata", "apiVersion", "kind")):
            return True
        below = _step(place, key)
        if below is None:
            return True if keeps_unknown(place.schema) else None
        place = below
    return place


def _step(place: Place, key: str) -> Place | None:
    """The place below one: a property, an item of a list ("[]"), or a map's value."""
    below = list(children(place))
    named = next((each for each in below if each.name == key and each.role == "property"), None)
    if named is not None:
        return named
    wanted = "item" if key == "[]" else "value"
    return next((each for each in below if each.role == wanted), None)
