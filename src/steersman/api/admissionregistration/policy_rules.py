"""What both kinds of policies have in common.

Source: kubernetes `pkg/apis/admissionregistration/validation/validation.go`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from steersman.api import checks
from steersman.api.admissionregistration.expressions import Composition, Names
from steersman.api.admissionregistration.rules import (
    FAILURE_POLICIES,
    Part,
    condition_errors,
    expression_errors,
    match_resources_errors,
)
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.gvk import split_api_version
from steersman.apimachinery.schema.cel.escaping import RESERVED

_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*\Z")


def head_errors(spec: Part) -> list[FieldError]:
    """What is wrong with the part of a policy's spec that says when it counts."""
    errors: list[FieldError] = []
    failure = spec.get("failurePolicy")
    if failure is None:
        errors.append(fe.required("spec.failurePolicy"))
    else:
        errors += checks.supported(failure, FAILURE_POLICIES, "spec.failurePolicy")
    if spec.get("paramKind") is not None:
        errors += _param_kind_errors(spec["paramKind"], "spec.paramKind")
    match = spec.get("matchConstraints")
    if match is None:
        errors.append(fe.required("spec.matchConstraints"))
    else:
        errors += match_resources_errors(match, "spec.matchConstraints")
        if not match.get("resourceRules"):
            errors.append(fe.required("spec.matchConstraints.resourceRules"))
    return errors


def policy_condition_errors(spec: Part, old: Part | None) -> list[FieldError]:
    """What is wrong with a policy's match conditions; those that stay as they were do not count."""
    conditions = spec.get("matchConditions") or []
    same = old is not None and conditions == (old.get("matchConditions") or [])
    if same and old is not None and spec.get("paramKind") == old.get("paramKind"):
        return []
    return condition_errors(conditions, "spec.matchConditions", params=spec.get("paramKind") is not None)


def variable_errors(variables: Sequence[Part], names_: Names, composition: Composition) -> list[FieldError]:
    """What is wrong with the variables, which are compiled into the composition on the way."""
    errors: list[FieldError] = []
    for index, variable in enumerate(variables):
        here = f"spec.variables[{index}]"
        name, expression = variable.get("name") or "", variable.get("expression") or ""
        if not name.strip():
            errors.append(fe.required(f"{here}.name", "name is not specified"))
        elif not _IDENTIFIER.match(name) or name in RESERVED:
            errors.append(fe.invalid(f"{here}.name", name, "must be a valid CEL identifier"))
        if not expression.strip():
            errors.append(fe.required(f"{here}.expression", "expression is not specified"))
        else:
            errors += expression_errors(composition.add(name, expression, names_), f"{here}.expression")
    return errors


def _param_kind_errors(kind: Part, field: str) -> list[FieldError]:
    text, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    errors = _api_version_errors(text, f"{field}.apiVersion") if text else [fe.required(f"{field}.apiVersion")]
    if not name:
        errors.append(fe.required(f"{field}.kind"))
    elif found := names.dns1035_label(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(found)}"
        errors.append(fe.invalid(f"{field}.kind", name, detail))
    return errors


def _api_version_errors(text: str, field: str) -> list[FieldError]:
    try:
        group, version = split_api_version(text)
    except ValueError as error:
        return [fe.invalid(field, text, str(error))]
    errors: list[FieldError] = []
    if group and (found := names.dns1123_subdomain(group)):
        errors.append(fe.invalid(field, group, ",".join(found)))
    if not version:
        errors.append(fe.invalid(field, text, "version must be specified"))
    elif found := names.dns1035_label(version):
        errors.append(fe.invalid(field, version, ",".join(found)))
    return errors
