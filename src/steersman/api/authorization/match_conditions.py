"""Match conditions of webhook authorizers: CEL over the SubjectAccessReview that would be sent.

Source: apiserver `pkg/authorization/cel/{compile,matcher}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from steersman.api.admissionregistration.declared import declare_field, declare_object
from steersman.api.admissionregistration.expressions import go_type_text
from steersman.apimachinery.field_errors import aggregate_texts
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError, CompileError, CostLimitExceeded, EvaluationPanic
from steersman.apimachinery.schema.cel.program import Program, ProgramError, Variable, compile_expression, object_types
from steersman.apimachinery.schema.cel.schema_types import Decl
from steersman.apimachinery.schema.structural import Node

_TEXTS: Final = t.list_of(t.STRING)
_FAILURES = (CelError, CostLimitExceeded, EvaluationPanic)
_PARTS = ("namespace", "verb", "group", "version", "resource", "subresource", "name")


class ConditionError(ValueError):
    """An expression cannot be used; `internal` tells what is no fault of its text."""

    def __init__(self, message: str, *, internal: bool = False) -> None:
        super().__init__(message)
        self.internal = internal


def _selector(name: str) -> Decl:
    texts = {"key": t.STRING, "operator": t.STRING, "values": _TEXTS}
    requirement = declare_object("kubernetes.SelectorRequirement", texts)
    assert requirement.type is not None
    several = Decl(Node(), "list", t.list_of(requirement.type))
    several.element = requirement
    selector = declare_object(name, {"rawSelector": t.STRING})
    declare_field(selector, "requirements", several)
    return selector


def _spec() -> Decl:
    resource = declare_object("kubernetes.ResourceAttributes", dict.fromkeys(_PARTS, t.STRING))
    declare_field(resource, "fieldSelector", _selector("kubernetes.FieldSelectorAttributes"))
    declare_field(resource, "labelSelector", _selector("kubernetes.LabelSelectorAttributes"))
    path = declare_object("kubernetes.NonResourceAttributes", {"path": t.STRING, "verb": t.STRING})
    user = {"user": t.STRING, "groups": _TEXTS, "extra": t.map_of(t.STRING, _TEXTS), "uid": t.STRING}
    return declare_object(
        "kubernetes.SubjectAccessReviewSpec", {"resourceAttributes": resource, "nonResourceAttributes": path, **user}
    )


_SPEC: Final = _spec()
_OBJECTS: Final[Mapping[str, Decl]] = object_types(_SPEC)
_VARIABLES: Final = (Variable("request", t.object_type("kubernetes.SubjectAccessReviewSpec")),)


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition."""

    source: str
    program: Program


def compile_condition(source: str) -> Condition:
    """Compile an expression, which must give a bool. Raises ConditionError with upstream's words."""
    try:
        checked = compile_expression(source, _VARIABLES, _OBJECTS)
    except CompileError as error:
        raise ConditionError(f"compilation failed: {error}") from None
    if checked.type != t.BOOL or checked.type.nullable:
        raise ConditionError(f"must evaluate to bool but got {go_type_text(checked.type)}")
    try:
        return Condition(source, checked.program())
    except ProgramError as error:
        raise ConditionError(f"program instantiation failed: {error}", internal=True) from None


def matches(conditions: Sequence[Condition], spec: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether all conditions hold for a review's spec, and what could not be evaluated ("": everything could).

    One that is false counts more than those that cannot be evaluated.
    """
    errors = []
    request = _completed(spec)
    for condition in conditions:
        result, _ = condition.program.evaluate(request)
        if isinstance(result, _FAILURES):
            errors.append(f"cel evaluation error: expression '{condition.source}' resulted in error: {result}")
        elif result is False:
            return False, ""
    return not errors, aggregate_texts(errors) if errors else ""


def _completed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec as expressions see it: texts that are empty are there, too."""
    out: dict[str, Any] = {
        "user": spec.get("user", ""),
        "groups": spec.get("groups") or [],
        "uid": spec.get("uid", ""),
        "extra": spec.get("extra") or {},
    }
    resource = spec.get("resourceAttributes")
    if resource is not None:
        out["resourceAttributes"] = {**dict.fromkeys(_PARTS, ""), **resource}
    if "nonResourceAttributes" in spec:
        out["nonResourceAttributes"] = {"path": "", "verb": "", **spec["nonResourceAttributes"]}
    return out
