"""The four kinds of policies and their bindings; what their expressions need is loaded with the first policy.

Source: kubernetes `pkg/registry/admissionregistration/{validating,mutating}admissionpolicy{,binding}/strategy.go`,
`pkg/apis/admissionregistration/validation/validation.go`,
`pkg/apis/admissionregistration/v1/zz_generated.validations.go`, `pkg/printers/internalversion/printers.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.admissionregistration.rules import (
    Part,
    match_resources_errors,
    mutating_operation_errors,
    reserved_name_errors,
    reserved_name_warnings,
)
from steersman.api.builtin import BuiltinStrategy, StatusStrategy
from steersman.api.conditions import condition_errors
from steersman.api.strategy import Object, Strategy
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names, selectors
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.jsonpath import compile_path

_UNSET = "<unset>"
_NOT_FOUND_ACTIONS = ("Deny", "Allow")
_ACTIONS = ("Audit", "Deny", "Warn")
_TWICE = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)


class PolicyStrategy(BuiltinStrategy):
    """The rules of all four kinds: a spec, in a name that no file's configuration may have."""

    def validate_create(self, obj: Object) -> list[FieldError]:
        errors = [*self.validate_meta(obj), *self.spec_errors(obj, None)]
        return errors + reserved_name_errors(obj["metadata"].get("name") or "")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*self.validate_meta(new), *self.spec_errors(new, old)]

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return reserved_name_warnings(obj["metadata"].get("name") or "") if old is not None else []

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        return [meta.get("name") or "", *self.cells(obj.get("spec") or {}), age(meta.get("creationTimestamp"), now)]

    def spec_errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        """What is wrong with the spec of a new (old: None) or changed object."""
        raise NotImplementedError

    def cells(self, spec: Part) -> list[Any]:
        """The cells of a Table between the name and the age."""
        raise NotImplementedError


class ValidatingAdmissionPolicyStrategy(PolicyStrategy):
    def cells(self, spec: Part) -> list[Any]:
        return [len(spec.get("validations") or ()), _param_kind_cell(spec)]

    def spec_errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        from steersman.api.admissionregistration.validating_policy import spec_errors

        return spec_errors(obj, old)

    def subresource(self, name: str) -> Strategy:
        return _PolicyStatus(self) if name == "status" else super().subresource(name)


class MutatingAdmissionPolicyStrategy(PolicyStrategy):
    def cells(self, spec: Part) -> list[Any]:
        return [len(spec.get("mutations") or ()), _param_kind_cell(spec)]

    def spec_errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        from steersman.api.admissionregistration.mutating_policy import spec_errors

        return spec_errors(obj, old)


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


class _BindingStrategy(PolicyStrategy):
    def cells(self, spec: Part) -> list[Any]:
        return [spec.get("policyName") or "", _param_ref_cell(spec.get("paramRef") or {})]


class ValidatingAdmissionPolicyBindingStrategy(_BindingStrategy):
    def spec_errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        return _binding_errors(spec) + _action_errors(spec.get("validationActions") or [], "spec.validationActions")

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


class MutatingAdmissionPolicyBindingStrategy(_BindingStrategy):
    def spec_errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors = [] if spec.get("policyName") else [fe.required("spec.policyName")]
        errors += _binding_errors(spec)
        return errors + mutating_operation_errors(spec.get("matchResources"), "spec.matchResources")


def _binding_errors(spec: Part) -> list[FieldError]:
    """What is wrong with the parts that both kinds of bindings have, beside a missing policyName."""
    policy = spec.get("policyName") or ""
    errors = checks.dns_subdomain(policy, "spec.policyName") if policy else []
    if spec.get("paramRef") is not None:
        errors += _param_ref_errors(spec["paramRef"], "spec.paramRef")
    return errors + match_resources_errors(spec.get("matchResources"), "spec.matchResources")


def _param_ref_errors(reference: Part, field: str) -> list[FieldError]:
    name, selector = reference.get("name") or "", reference.get("selector")
    exclusive = "name and selector are mutually exclusive"
    errors = [fe.invalid(f"{field}.name", name, text) for text in names.path_segment_name(name)] if name else []
    if name and selector is not None:
        errors.append(fe.forbidden(f"{field}.name", exclusive))
    errors += selectors.validate_object(selector, f"{field}.selector")
    if name and selector is not None:
        errors.append(fe.forbidden(f"{field}.selector", exclusive))
    if not name and selector is None:
        errors.append(fe.required(field, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    return errors + checks.one_of(action, _NOT_FOUND_ACTIONS, f"{field}.parameterNotFoundAction")


def _param_kind_cell(spec: Part) -> str:
    kind = spec.get("paramKind")
    return _UNSET if kind is None else f"{kind.get('apiVersion') or ''}/{kind.get('kind') or ''}"


def _param_ref_cell(reference: Part) -> str:
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    selector = reference.get("selector")
    return _UNSET if selector is None else selectors.go_text(selector)
