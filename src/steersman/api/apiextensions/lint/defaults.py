"""Defaults that do not do what they seem to.

A default is filled in where its field is absent from an object that is there (KEP-575). So it needs its parent: one
that is given, required, or has a default itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.apiextensions.lint.findings import LintFinding, Severity, found
from steersman.api.apiextensions.lint.places import Place, Version, children, is_in_metadata
from steersman.apimachinery.field_errors import format_value

MOST_NAMES = 3


def default_findings(version: Version) -> Iterator[LintFinding]:
    """What is odd about the defaults of a version."""
    for place in version.places:
        if is_in_metadata(place):
            continue
        yield from _of_parent(version, place)
        if place.schema.get("default") is not None:
            yield from _of_default(version, place)


def _of_parent(version: Version, place: Place) -> Iterator[LintFinding]:
    """An optional object without a default, and with fields that have one.

    Where a part of the spec requires something that has no default, who wants it must say so: then its defaults are
    hardly meant for all objects. A default of "" is none to miss.
    """
    if place.role != "property" or place.required or place.schema.get("default") is not None:
        return
    fields = [child for child in children(place) if child.role == "property"]
    names = [child.field for child in fields if child.schema.get("default") not in (None, "")]
    if not names:
        return
    chosen = any(child.required and child.schema.get("default") is None for child in fields)
    severity: Severity | None = "info" if chosen and "." in place.field else None
    what = "the default" if len(names) == 1 else "the defaults"
    yield found(
        "unreachable-default",
        place.path,
        version.subject(place.field),
        f"is optional and has no default, so {what} of {_listed(names)} {'is' if len(names) == 1 else 'are'} filled in "
        f"only where {place.field} is given; give it a default or make it required if that is not meant",
        severity,
    )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _of_default(version: Version, place: Place) -> Iterator[LintFinding]:
    path, subject = f"{place.path}.default", version.subject(place.field)
    if place.role == "root":
        yield found("unreachable-default", path, subject, "the default of a whole object is never used")
    elif place.role in ("item", "value"):
        when = "never, since they may be null" if place.schema.get("nullable") else "only in place of null"
        what = "items of a list" if place.role == "item" else "values of a map"
        yield found("unreachable-default", path, subject, f"a default of {what} is filled in {when}")
    if place.required:
        message = "is required and has a default: who leaves it out gets the default, so that it is never missing"
        yield found("required-with-default", path, subject, message)
    outer = place.parent.schema.get("default") if place.parent is not None and place.role == "property" else None
    own = place.schema["default"]
    if isinstance(outer, dict) and place.name in outer and outer[place.name] != own and place.parent is not None:
        message = (
            f"defaults to {format_value(own)} where {place.parent.field} is given without it, and to "
            f"{format_value(outer[place.name])}, by the default of {place.parent.field}, where that is absent"
        )
        yield found("shadowed-default", path, subject, message)
