"""What a schema asks of objects that its earlier state did not: what was valid may be refused, or lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from steersman.api.apiextensions.lint.findings import LintFinding, Severity, found
from steersman.api.apiextensions.lint.places import PRESERVE, RULES_KEY, Place, Version, children, keeps_unknown
from steersman.apimachinery.field_errors import format_value
from steersman.apimachinery.schema.correlation import deep_equal

Found = Iterator[LintFinding]

_UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "minLength", "minItems", "minProperties")
_LIST_KEYS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
_IMPLIED = {"x-kubernetes-list-type": "atomic", "x-kubernetes-map-type": "granular"}


def compare_schemas(old: Place, new: Place, version: Version) -> Found:
    """What the schema at `new` and all below it break of what was at `old`."""
    before, after = _type_of(old), _type_of(new)
    if before != after:
        message = f"was of type {before or 'any'}, and is of type {after or 'any'}"
        yield found("type-changed", _path(new, "type"), version.subject(new.field), message)
        return
    for rule in _RULES:
        yield from rule(old, new, version)
    yield from _below(old, new, version)


def _type_of(place: Place) -> str:
    if place.schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    return str(place.schema.get("type") or "")


def _path(place: Place, keyword: str) -> str:
    return f"{place.path}.{keyword}"


def _below(old: Place, new: Place, version: Version) -> Found:
    after = {(child.role, child.name): child for child in children(new)}
    before = list(children(old))
    added = [after[key] for key in after if key not in {(child.role, child.name) for child in before}]
    for child in before:
        twin = after.get((child.role, child.name))
        if twin is not None:
            yield from compare_schemas(child, twin, version)
        elif child.role == "property" and not keeps_unknown(new.schema):
            same = [each.field for each in added if deep_equal(each.schema, child.schema)]
            hint = f" (renamed to {same[0]}?)" if len(same) == 1 else ""
            message = f"is removed{hint}: objects lose what they have in it"
            yield found("field-removed", _path(new, "properties"), version.subject(child.field), message)


def _required(old: Place, new: Place, version: Version) -> Found:
    before = old.schema.get("required") or ()
    for child in children(new):
        if child.required and child.name not in before and child.schema.get("default") is None:
            message = "is required now, and has no default: objects without it are refused"
            yield found("required-added", _path(new, "required"), version.subject(child.field), message)


def _enum(old: Place, new: Place, version: Version) -> Found:
    before, after = old.schema.get("enum") or [], new.schema.get("enum") or []
    if not after or deep_equal(before, after):
        return
    gone = [format_value(value) for value in before if not any(deep_equal(value, each) for each in after)]
    if not before:
        message = "may only have the values of an enum, and could have any"
    elif gone:
        message = f"may not be {', '.join(gone)} any more"
    else:
        return
    yield found("enum-narrowed", _path(new, "enum"), version.subject(new.field), message)


def _bounds(old: Place, new: Place, version: Version) -> Found:
    for keyword in (*_UPPER, *_LOWER):
        then, now = old.schema.get(keyword), new.schema.get(keyword)
        if now is None or (then is None and keyword in _LOWER[1:] and not now):
            continue
        if then is None or (now < then if keyword in _UPPER else now > then):
            yield _tightened(keyword, then, now, new, version)
        elif now == then and keyword in ("maximum", "minimum"):
            exclusive = f"exclusive{keyword.capitalize()}"
            if new.schema.get(exclusive) and not old.schema.get(exclusive):
                yield _tightened(exclusive, False, True, new, version)
    then, now = old.schema.get("multipleOf"), new.schema.get("multipleOf")
    if now is not None and then != now and not (then is not None and _divides(now, then)):
        yield _tightened("multipleOf", then, now, new, version)


def _divides(divisor: float, number: float) -> bool:
    return divisor != 0 and (number / divisor).is_integer()


def _tightened(keyword: str, then: Any, now: Any, new: Place, version: Version) -> LintFinding:
    was = f"was {format_value(then)}" if then is not None else "was not limited"
    message = f"{keyword} {was}, and is {format_value(now)}"
    return found("bound-tightened", _path(new, keyword), version.subject(new.field), message)


def _pattern(old: Place, new: Place, version: Version) -> Found:
    then, now = old.schema.get("pattern"), new.schema.get("pattern")
    if now and then != now:
        was = f"had to match {then}" if then else "could be any text"
        message = f"must match {now}, and {was}"
        severity: Severity | None = "warning" if then else None
        yield found("pattern-changed", _path(new, "pattern"), version.subject(new.field), message, severity)


def _format(old: Place, new: Place, version: Version) -> Found:
    then, now = old.schema.get("format"), new.schema.get("format")
    if now and then != now:
        message = f"is of format {now}, and was of {then or 'none'}"
        yield found("format-changed", _path(new, "format"), version.subject(new.field), message)


def _default(old: Place, new: Place, version: Version) -> Found:
    then, now = old.schema.get("default"), new.schema.get("default")
    if then is None or (now is not None and deep_equal(then, now)):
        return
    after = f"defaults to {format_value(now)}" if now is not None else "has no default"
    message = f"{after}, and defaulted to {format_value(then)}: objects without it change their meaning"
    yield found("default-changed", _path(new, "default"), version.subject(new.field), message)


def _nullable(old: Place, new: Place, version: Version) -> Found:
    if old.schema.get("nullable") and not new.schema.get("nullable"):
        message = "may not be null any more"
        yield found("nullable-removed", _path(new, "nullable"), version.subject(new.field), message)


def _merging(old: Place, new: Place, version: Version) -> Found:
    for keyword in _LIST_KEYS:
        then = old.schema.get(keyword) or _IMPLIED.get(keyword)
        now = new.schema.get(keyword) or _IMPLIED.get(keyword)
        if then != now:
            message = f"{keyword} was {_shown(then)}, and is {_shown(now)}: appliers may own more or less than before"
            yield found("list-type-changed", _path(new, keyword), version.subject(new.field), message)


def _shown(value: Any) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, list) else str(value or "none")


def _openness(old: Place, new: Place, version: Version) -> Found:
    subject = version.subject(new.field)
    if old.schema.get(PRESERVE) and not keeps_unknown(new.schema):
        yield found("preserve-unknown-removed", _path(new, PRESERVE), subject, "drops unknown fields, and kept them")
    elif old.schema.get("additionalProperties") and not keeps_unknown(new.schema):
        message = "was a map with any keys, and has only fields of its schema"
        yield found("additional-properties-removed", _path(new, "additionalProperties"), subject, message)


def _cel(old: Place, new: Place, version: Version) -> Found:
    then = [rule.get("rule") for rule in old.schema.get(RULES_KEY) or ()]
    for index, rule in enumerate(new.schema.get(RULES_KEY) or ()):
        if rule.get("rule") not in then:
            message = f"must follow a rule that is new: {rule.get('rule')}"
            yield found("rule-added", f"{_path(new, RULES_KEY)}[{index}]", version.subject(new.field), message)


_RULES: tuple[Callable[[Place, Place, Version], Found], ...] = (
    _required,
    _enum,
    _bounds,
    _pattern,
    _format,
    _default,
    _nullable,
    _merging,
    _openness,
    _cel,
)
