"""What a new state of a definition breaks for those who use the old one: objects, and the programs that write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steersman.api.apiextensions.lint.breaking_schema import compare_schemas
from steersman.api.apiextensions.lint.findings import LintFinding, found
from steersman.api.apiextensions.lint.places import Version, versions_of


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[LintFinding]:
    """The changes that break something, by what stands in the new definition."""
    return list(_changes(old, new))


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[LintFinding]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if before.get("scope") != after.get("scope"):
        message = f"the scope was {before.get('scope')}, and is {after.get('scope')}"
        yield found("scope-changed", "spec.scope", "", message)
    still = {version.name: version for version in versions_of(new)}
    served = {raw.get("name") for raw in after.get("versions") or () if raw.get("served")}
    for raw in before.get("versions") or ():
        if raw.get("served") and raw.get("name") not in served:
            name = raw.get("name")
            index = next((at for at, each in enumerate(after.get("versions") or ()) if each.get("name") == name), None)
            path = "spec.versions" if index is None else f"spec.versions[{index}].served"
            how = "removed" if index is None else "not served any more"
            yield found("version-removed", path, str(name), f"is {how}: clients of it get 404")
    for version in versions_of(old):
        if version.raw.get("served") and version.name in still:
            yield from _of_version(version, still[version.name])


def _of_version(old: Version, new: Version) -> Iterator[LintFinding]:
    yield from compare_schemas(old.places[0], new.places[0], new)
    before, after = old.raw.get("subresources") or {}, new.raw.get("subresources") or {}
    for name in ("status", "scale"):
        if before.get(name) is not None and after.get(name) is None:
            message = f"has no subresource {name} any more"
            yield found("subresource-removed", f"{new.path}.subresources", new.subject(), message)
    kept = {each.get("jsonPath") for each in new.raw.get("selectableFields") or ()}
    for each in old.raw.get("selectableFields") or ():
        if each.get("jsonPath") not in kept:
            message = f"objects cannot be selected by {each.get('jsonPath')} any more"
            yield found("selectable-field-removed", f"{new.path}.selectableFields", new.subject(), message)
