"""Versions of one definition that do not go together: without a webhook an object is stored as it is.

It is only given another apiVersion, and then loses what the storage version does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steersman.api.apiextensions.lint.breaking_schema import compare_schemas
from steersman.api.apiextensions.lint.findings import LintFinding, found
from steersman.api.apiextensions.lint.places import Place, Version, is_in_metadata, keeps_unknown

_STRICTER = frozenset({"required-added", "enum-narrowed", "bound-tightened", "pattern-changed", "nullable-removed"})


def version_findings(crd: Mapping[str, Any], versions: Sequence[Version]) -> Iterator[LintFinding]:
    """What each served version has that the storage version cannot keep, or would refuse."""
    strategy = ((crd.get("spec") or {}).get("conversion") or {}).get("strategy") or "None"
    storage = next((version for version in versions if version.raw.get("storage")), None)
    if strategy != "None" or storage is None:
        return
    stored = {place.field: place for place in storage.places}
    for version in versions:
        if version is storage or not version.raw.get("served"):
            continue
        for place in version.places:
            if place.parent is not None and not is_in_metadata(place):
                yield from _beside(version, place, stored, storage)
        for change in compare_schemas(version.places[0], storage.places[0], storage):
            if change.rule in _STRICTER:
                message = f"{change.message} (in {version.name} it is not so)"
                yield found("version-stricter", change.path, change.subject, message)


def _beside(version: Version, place: Place, stored: Mapping[str, Place], storage: Version) -> Iterator[LintFinding]:
    assert place.parent is not None
    twin, parent = stored.get(place.field), stored.get(place.parent.field)
    subject = version.subject(place.field)
    if twin is None:
        if parent is not None and place.role == "property" and not keeps_unknown(parent.schema):
            message = f"is not in the storage version {storage.name}: what is written to it is lost"
            yield found("lossy-version", place.path, subject, message)
        return
    before, after = place.schema.get("type"), twin.schema.get("type")
    if before and after and before != after:
        message = f"is of type {before}, but of type {after} in the storage version {storage.name}"
        yield found("version-types-differ", place.path, subject, message)
