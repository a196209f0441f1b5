"""Lists, maps and texts that may be of any length.

They may fill the store, and CEL's estimate of what a rule costs takes them for as long as a request can be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from steersman.api.apiextensions.lint.findings import LintFinding, Severity, found
from steersman.api.apiextensions.lint.places import RULES_KEY, Place, Version, is_in_metadata, walk

_LIMITS = {"list": "maxItems", "map": "maxProperties", "string": "maxLength"}
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The formats that bound a text's length by themselves.
_SHORT_FORMATS = frozenset(
    {"bsonobjectid", "cidr", "creditcard", "date", "date-time", "datetime", "duration", "hexcolor", "ipv4", "ipv6"}
    | {"isbn", "isbn10", "isbn13", "mac", "rgbcolor", "ssn", "uuid", "uuid3", "uuid4", "uuid5"}
)


def bound_findings(version: Version) -> Iterator[LintFinding]:
    """What has no upper bound in a version. What only the controller writes, the status, is left to it."""
    for place in version.places:
        what = _unbounded(place)
        if not what or is_in_metadata(place):
            continue
        rule = _rule_over(place)
        if rule is None and place.field.partition(".")[0] == "status":
            continue
        message = f"has no {_LIMITS[what]}: it may be as large as a request"
        if rule is not None:
            message += f", and so the cost of the CEL rule at {rule.field or 'the root'} is estimated"
        severity: Severity | None = None if rule is None else "warning"
        yield found(f"unbounded-{what}", place.path, version.subject(place.field), message, severity)


def _unbounded(place: Place) -> str:
    schema, kind = place.schema, place.schema.get("type")
    if kind == "array":
        return "list" if schema.get("maxItems") is None else ""
    if kind == "object":
        return "map" if schema.get("additionalProperties") and schema.get("maxProperties") is None else ""
    short = schema.get("enum") or schema.get("format") in _SHORT_FORMATS or schema.get("maxLength") is not None
    return "string" if kind == "string" and not short else ""


def _rule_over(place: Place) -> Place | None:
    """Where a rule stands that runs over what may be long: below a list, once for each item, or around it."""
    if place.schema.get("type") != "string":
        below = next((each for each in walk(place) if each is not place and each.schema.get(RULES_KEY)), None)
        if below is not None:
            return below
    names: list[str] = []
    for above in place.up():
        if any(_mentions(str(rule.get("rule") or ""), names) for rule in above.schema.get(RULES_KEY) or ()):
            return above
        if above.role == "property":
            names.append(above.name)
    return None


def _mentions(rule: str, names: list[str]) -> bool:
    """Whether a rule's text has all the names on the way from where it stands to a field."""
    words = set(_IDENTIFIER.findall(rule))
    return "self" in words and all(name in words or not _IDENTIFIER.fullmatch(name) for name in names)
