"""What a MutatingAdmissionPolicy has to say.

Source: kubernetes `pkg/apis/admissionregistration/validation/validation.go`.
"""

from __future__ import annotations

from steersman.api import checks
from steersman.api.admissionregistration.expressions import Composition, Names, compile_admission
from steersman.api.admissionregistration.patches import APPLY_CONFIGURATION, JSON_PATCHES
from steersman.api.admissionregistration.policy_rules import (
    head_errors,
    policy_condition_errors,
    variable_errors,
)
from steersman.api.admissionregistration.rules import (
    REINVOCATION_POLICIES,
    Part,
    expression_errors,
    mutating_operation_errors,
)
from steersman.api.strategy import Object
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

_PATCHES = {"JSONPatch": ("jsonPatch", JSON_PATCHES), "ApplyConfiguration": ("applyConfiguration", APPLY_CONFIGURATION)}


def spec_errors(obj: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with the spec of a new (old: None) or changed policy."""
    spec, old_spec = obj.get("spec") or {}, None if old is None else old.get("spec") or {}
    names, composition = Names(params=spec.get("paramKind") is not None), Composition()
    errors = head_errors(spec)
    errors += mutating_operation_errors(spec.get("matchConstraints"), "spec.matchConstraints")
    errors += policy_condition_errors(spec, old_spec)
    errors += variable_errors(spec.get("variables") or [], names, composition)
    mutations = spec.get("mutations") or []
    if not mutations:
        errors.append(fe.required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(mutations):
        errors += _mutation_errors(mutation, names, composition, f"spec.mutations[{index}]")
    again = spec.get("reinvocationPolicy")
    return errors + checks.one_of(again, REINVOCATION_POLICIES, "spec.reinvocationPolicy")


def _mutation_errors(mutation: Part, names: Names, composition: Composition, field: str) -> list[FieldError]:
    kind = mutation.get("patchType") or ""
    if kind not in _PATCHES:
        return checks.one_of(kind, tuple(sorted(_PATCHES)), f"{field}.patchType")
    key, wanted = _PATCHES[kind]
    (other,) = (name for name, _ in _PATCHES.values() if name != key)
    patch = mutation.get(key)
    errors: list[FieldError] = []
    if patch is None:
        errors.append(fe.required(f"{field}.{key}", f"must be specified when patchType is {kind}"))
    elif not (expression := (patch.get("expression") or "").strip()):
        errors.append(fe.required(f"{field}.{key}.expression"))
    else:
        compiled = compile_admission(expression, (wanted,), names, composition, patches=True)
        errors += expression_errors(compiled, f"{field}.{key}.expression")
    if mutation.get(other) is not None:
        detail = f"must not be specified when patchType is {kind}"
        errors.append(fe.invalid(f"{field}.{other}", f"{{{other}}}", detail))
    return errors
