"""What a ValidatingAdmissionPolicy has to say.

Source: kubernetes `pkg/apis/admissionregistration/validation/validation.go`.
"""

from __future__ import annotations

from steersman.api import checks
from steersman.api.admissionregistration.expressions import Composition, Names, compile_admission
from steersman.api.admissionregistration.policy_rules import (
    head_errors,
    policy_condition_errors,
    variable_errors,
)
from steersman.api.admissionregistration.rules import Part, expression_errors
from steersman.api.strategy import Object
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.schema.cel.types import BOOL, NULL, STRING

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MAX_ANNOTATIONS = 20
_MAX_VALUE_EXPRESSION = 5 * 1024
_NOTHING = "validations or auditAnnotations must contain at least one item"


def spec_errors(obj: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with the spec of a new (old: None) or changed policy."""
    spec, old_spec = obj.get("spec") or {}, None if old is None else old.get("spec") or {}
    params = spec.get("paramKind") is not None
    variables = spec.get("variables") or []
    composition = Composition() if variables else None
    errors = [*head_errors(spec), *policy_condition_errors(spec, old_spec)]
    if composition is not None:
        errors += variable_errors(variables, Names(params=params), composition)
    validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not annotations:
        return [*errors, fe.required("spec.validations", _NOTHING), fe.required("spec.auditAnnotations", _NOTHING)]
    for index, validation in enumerate(validations):
        errors += _validation_errors(validation, params, composition, f"spec.validations[{index}]")
    return errors + _annotation_errors(obj["metadata"].get("name") or "", annotations, params, composition)


def _validation_errors(validation: Part, params: bool, composition: Composition | None, field: str) -> list[FieldError]:
    expression, words = validation.get("expression") or "", validation.get("messageExpression") or ""
    message = validation.get("message") or ""
    if not expression.strip():
        errors = [fe.required(f"{field}.expression", "expression is not specified")]
    else:
        compiled = compile_admission(expression, (BOOL,), Names(params=params), composition)
        errors = expression_errors(compiled, f"{field}.expression")
    if words and not words.strip():
        errors.append(fe.invalid(f"{field}.messageExpression", words, "must be non-empty if specified"))
    elif words:
        compiled = compile_admission(words, (STRING,), Names(params=params, authorizer=False), composition)
        errors += expression_errors(compiled, f"{field}.messageExpression")
    if message and not message.strip():
        errors.append(fe.invalid(f"{field}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        errors.append(fe.invalid(f"{field}.message", message, "must not contain line breaks"))
    if validation.get("reason") is not None:
        errors += checks.supported(validation["reason"], _REASONS, f"{field}.reason")
    return errors


def _annotation_errors(
    name: str, annotations: list[Part], params: bool, composition: Composition | None
) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(annotations) > _MAX_ANNOTATIONS:
        shown = [
            fe.Struct(Key=each.get("key") or "", ValueExpression=each.get("valueExpression") or "")
            for each in annotations
        ]
        detail = f"must not have more than {_MAX_ANNOTATIONS} auditAnnotations"
        errors.append(fe.invalid("spec.auditAnnotations", shown, detail))
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        here, key = f"spec.auditAnnotations[{index}]", annotation.get("key") or ""
        if name:
            errors += checks.qualified_name(f"{name}/{key}", f"{here}.key")
        else:
            errors.append(fe.invalid(f"{here}.key", key, "requires metadata.name be non-empty"))
        errors += _value_errors(annotation, params, composition, f"{here}.valueExpression")
        if key in seen:
            errors.append(fe.duplicate(f"{here}.key", key))
        seen.add(key)
    return errors


def _value_errors(annotation: Part, params: bool, composition: Composition | None, field: str) -> list[FieldError]:
    text = annotation.get("valueExpression") or ""
    expression = text.strip()
    if not expression:
        return [fe.required(field, "valueExpression is not specified")]
    if len(expression.encode()) > _MAX_VALUE_EXPRESSION:
        return [fe.required(field, f"must not exceed {_MAX_VALUE_EXPRESSION} bytes in length")]
    compiled = compile_admission(expression, (STRING, NULL), Names(params=params), composition)
    return expression_errors(compiled, field, text)
