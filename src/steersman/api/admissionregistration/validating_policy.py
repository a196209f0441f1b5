"""ValidatingAdmissionPolicies and their bindings.

Source: kubernetes `pkg/apis/admissionregistration/validation/validation.go`,
`pkg/apis/admissionregistration/v1/zz_generated.validations.go`,
`pkg/registry/admissionregistration/validatingadmissionpolicy{,binding}/strategy.go`.
"""

from __future__ import annotations

from steersman.api import checks
from steersman.api.admissionregistration.expressions import Composition, Names, compile_admission
from steersman.api.admissionregistration.policy_rules import (
    PolicyStrategy,
    binding_errors,
    head_errors,
    policy_condition_errors,
    variable_errors,
)
from steersman.api.admissionregistration.rules import Part, expression_errors
from steersman.api.builtin import StatusStrategy
from steersman.api.conditions import condition_errors
from steersman.api.strategy import Object, Strategy
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.jsonpath import compile_path
from steersman.apimachinery.schema.cel.types import BOOL, NULL, STRING

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_MAX_ANNOTATIONS = 20
_MAX_VALUE_EXPRESSION = 5 * 1024
_NOTHING = "validations or auditAnnotations must contain at least one item"
_TWICE = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)


class ValidatingAdmissionPolicyStrategy(PolicyStrategy):
    def spec_errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec, old_spec = obj.get("spec") or {}, None if old is None else old.get("spec") or {}
        params = spec.get("paramKind") is not None
        variables = spec.get("variables") or []
        composition = Composition() if variables else None
        errors = [*head_errors(spec, old_spec), *policy_condition_errors(spec, old_spec)]
        if composition is not None:
            errors += variable_errors(variables, Names(params=params), composition)
        validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
        if not validations and not annotations:
            return [*errors, fe.required("spec.validations", _NOTHING), fe.required("spec.auditAnnotations", _NOTHING)]
        for index, validation in enumerate(validations):
            errors += _validation_errors(validation, params, composition, f"spec.validations[{index}]")
        return errors + _annotation_errors(obj["metadata"].get("name") or "", annotations, params, composition)

    def subresource(self, name: str) -> Strategy:
        return _PolicyStatus(self) if name == "status" else super().subresource(name)


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


class _PolicyStatus(StatusStrategy):
    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        status = new.get("status") or {}
        errors: list[FieldError] = []
        for index, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
            here = f"status.typeChecking.expressionWarnings[{index}]"
            if not warning.get("warning"):
                errors.append(fe.required(f"{here}.warning"))
            errors += _field_ref_errors(warning.get("fieldRef") or "", f"{here}.fieldRef")
        return errors + condition_errors(status.get("conditions") or [], "status.conditions")


def _field_ref_errors(reference: str, field: str) -> list[FieldError]:
    reference = reference.strip()
    if not reference:
        return [fe.required(field)]
    path = f".{reference}" if reference[0].isalnum() else reference
    try:
        compile_path(f"{{{path}}}")
    except ValueError as error:
        return [fe.invalid(field, reference, f"invalid JSONPath: {error}")]
    return []


class ValidatingAdmissionPolicyBindingStrategy(PolicyStrategy):
    def spec_errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        return binding_errors(spec) + _action_errors(spec.get("validationActions") or [], "spec.validationActions")

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        spec, old_spec = new.get("spec") or {}, None if old is None else old.get("spec") or {}
        return [
            fe.required(f"spec.{key}")
            for key in ("policyName", "validationActions")
            if not spec.get(key) and (old_spec is None or old_spec.get(key))
        ]


def _action_errors(actions: list[str], field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, action in enumerate(actions):
        errors += checks.supported(action, _ACTIONS, f"{field}[{index}]")
        if action in actions[:index]:
            errors.append(fe.duplicate(f"{field}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        errors.append(fe.invalid(field, actions, _TWICE))
    return errors
