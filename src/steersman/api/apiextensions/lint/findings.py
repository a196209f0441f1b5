"""The rules by name, and what they find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "info"]


class Rule(NamedTuple):
    """How bad it is as a rule, and what it is about in a few words."""

    severity: Severity
    about: str


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One thing found. `path` leads into the definition, `subject` is what it is about as users see it: `v1 spec.size`.

    `message` is one sentence about the subject.
    """

    rule: str
    severity: Severity
    path: str
    subject: str
    message: str


def found(rule: str, path: str, subject: str, message: str, severity: Severity | None = None) -> LintFinding:
    """A finding of a rule, as bad as the rule says unless told otherwise."""
    return LintFinding(rule, severity or RULES[rule].severity, path, subject, message)


RULES: Mapping[str, Rule] = {
    "unreachable-default": Rule("warning", "defaults that no object gets, or only those that give a parent"),
    "shadowed-default": Rule("warning", "a field's default differs from what its parent's default holds"),
    "required-with-default": Rule("warning", "a required field that has a default is never missing"),
    "unbounded-list": Rule("info", "a list without maxItems (a warning where a CEL rule runs over it)"),
    "unbounded-map": Rule("info", "a map without maxProperties (a warning where a CEL rule runs over it)"),
    "unbounded-string": Rule("info", "a string without maxLength (a warning where a CEL rule runs over it)"),
    "atomic-list": Rule("warning", "a list of objects without x-kubernetes-list-type"),
    "empty-object": Rule("warning", "an object without properties, whose content is dropped"),
    "required-unknown-field": Rule("warning", "a required field that the schema does not have"),
    "preserve-unknown-at-root": Rule("warning", "x-kubernetes-preserve-unknown-fields for the whole object"),
    "integer-without-format": Rule("info", "an integer that is neither int32 nor int64"),
    "unanchored-pattern": Rule("info", "a pattern that may match any part of a text"),
    "deprecated-field": Rule("info", "a field of the definition that is deprecated"),
    "missing-status-subresource": Rule("warning", "a status in the schema without the subresource"),
    "missing-scale-subresource": Rule("info", "replicas in spec and status without the scale subresource"),
    "status-not-in-schema": Rule("warning", "the status subresource without a status in the schema"),
    "unknown-scale-path": Rule("warning", "a path of the scale subresource to a field that the schema does not have"),
    "unknown-column-path": Rule("warning", "a printer column of a field that the schema does not have"),
    "column-type": Rule("warning", "a printer column of another type than its field: it stays empty"),
    "nothing-served": Rule("warning", "no version is served"),
    "lossy-version": Rule("warning", "a field of a served version that the storage version does not have"),
    "version-types-differ": Rule("warning", "a field has another type in the storage version"),
    "version-stricter": Rule("warning", "the storage version refuses what a served version takes"),
    "version-removed": Rule("error", "a version that was served is not any more"),
    "field-removed": Rule("error", "a field is gone"),
    "type-changed": Rule("error", "a field has another type"),
    "required-added": Rule("error", "a field has become required, and has no default"),
    "enum-narrowed": Rule("error", "values are not allowed any more"),
    "bound-tightened": Rule("error", "a limit is tighter"),
    "pattern-changed": Rule("error", "texts must match another pattern (a warning if they had to match one before)"),
    "format-changed": Rule("warning", "texts or numbers must have another format"),
    "default-changed": Rule("warning", "a default is another, or gone"),
    "nullable-removed": Rule("error", "a field may not be null any more"),
    "list-type-changed": Rule("error", "lists or maps are merged otherwise"),
    "additional-properties-removed": Rule("error", "a map has become an object with fixed fields"),
    "preserve-unknown-removed": Rule("error", "unknown fields are dropped where they were kept"),
    "rule-added": Rule("warning", "a CEL rule that objects did not have to follow"),
    "subresource-removed": Rule("error", "a subresource is gone"),
    "selectable-field-removed": Rule("warning", "a field cannot be selected by any more"),
    "scope-changed": Rule("error", "from namespaces to the cluster, or the other way round"),
}
