"""What a schema's shape does to objects: lists that cannot be merged, objects that lose what they hold, loose types."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.apiextensions.lint.findings import LintFinding, found
from steersman.api.apiextensions.lint.patterns import is_anchored
from steersman.api.apiextensions.lint.places import PRESERVE, Place, Version, children, is_in_metadata, keeps_unknown


def shape_findings(version: Version) -> Iterator[LintFinding]:
    """What is odd about the types in a version."""
    if version.root.get(PRESERVE):
        message = "keeps all unknown fields: a typo in a manifest is stored, and nobody is told"
        yield found("preserve-unknown-at-root", f"{version.places[0].path}.{PRESERVE}", version.subject(), message)
    for place in version.places:
        if is_in_metadata(place):
            continue
        subject = version.subject(place.field)
        match place.schema.get("type"):
            case "array":
                yield from _of_list(place, subject)
            case "object":
                yield from _of_object(place, subject)
            case "integer" if not place.schema.get("format"):
                message = "has no format: int32 or int64 tells clients how large it may be"
                yield found("integer-without-format", place.path, subject, message)
            case "string":
                yield from _of_string(place, subject)


def _of_list(place: Place, subject: str) -> Iterator[LintFinding]:
    holds_objects = any(child.role == "item" and child.schema.get("type") == "object" for child in children(place))
    if holds_objects and place.schema.get("x-kubernetes-list-type") is None:
        message = (
            "is a list of objects without x-kubernetes-list-type, and so atomic: who applies one item owns them all; "
            "choose map with its keys, or write atomic"
        )
        yield found("atomic-list", place.path, subject, message)


def _of_object(place: Place, subject: str) -> Iterator[LintFinding]:
    properties = place.schema.get("properties") or {}
    if not properties and place.parent is not None and not keeps_unknown(place.schema):
        message = "is an object without properties: whatever is given in it is dropped"
        yield found("empty-object", place.path, subject, message)
        return
    known = {*properties, *(("apiVersion", "kind", "metadata") if place.parent is None else ())}
    for name in place.schema.get("required") or ():
        if name not in known and not keeps_unknown(place.schema):
            message = f"requires {name}, which it does not have: no object can be valid"
            yield found("required-unknown-field", f"{place.path}.required", subject, message)


def _of_string(place: Place, subject: str) -> Iterator[LintFinding]:
    pattern = place.schema.get("pattern")
    if pattern and not is_anchored(str(pattern)):
        message = "has a pattern that is not anchored on both sides (^...$): a part of the text that matches is enough"
        yield found("unanchored-pattern", f"{place.path}.pattern", subject, message)
