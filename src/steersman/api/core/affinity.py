"""Where pods may go: affinity, tolerations, topology spread.

Source: kubernetes `pkg/apis/core/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman.api import checks
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names, selectors
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_label_name

Object = dict[str, Any]
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ALL_KEYS = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


def affinity_errors(affinity: Object, place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (node := affinity.get("nodeAffinity")) is not None:
        errors += _node_affinity(node, f"{place}.nodeAffinity")
    for key in ("podAffinity", "podAntiAffinity"):
        if (pods := affinity.get(key)) is None:
            continue
        here = f"{place}.{key}"
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            errors += _pod_term(term, f"{here}.{_REQUIRED}[{index}]")
        for index, weighted in enumerate(pods.get(_PREFERRED) or ()):
            at = f"{here}.{_PREFERRED}[{index}]"
            errors += _weight(weighted, at)
            errors += _pod_term(weighted.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")
    return errors


def _weight(term: Object, place: str) -> list[FieldError]:
    weight = term.get("weight") or 0
    return [] if 1 <= weight <= 100 else [fe.invalid(f"{place}.weight", weight, "must be in the range 1-100")]


def _node_affinity(node: Object, place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (required := node.get(_REQUIRED)) is not None:
        terms = required.get("nodeSelectorTerms") or ()
        here = f"{place}.{_REQUIRED}.nodeSelectorTerms"
        if not terms:
            errors.append(fe.required(here, "must have at least one node selector term"))
        for index, term in enumerate(terms):
            errors += node_term_errors(term, f"{here}[{index}]")
    for index, weighted in enumerate(node.get(_PREFERRED) or ()):
        at = f"{place}.{_PREFERRED}[{index}]"
        errors += _weight(weighted, at) + node_term_errors(weighted.get("preference") or {}, f"{at}.preference")
    return errors


def node_term_errors(term: Object, place: str) -> list[FieldError]:
    """One term of a node selector: requirements for labels and for the node's name."""
    errors: list[FieldError] = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        here = f"{place}.matchExpressions[{index}]"
        operator, values = requirement.get("operator") or "", requirement.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                text = "must be specified when `operator` is 'In' or 'NotIn'"
                errors.append(fe.required(f"{here}.values", text))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(fe.forbidden(f"{here}.values", text))
        elif operator in ("Gt", "Lt"):
            if len(values) != 1:
                text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                errors.append(fe.required(f"{here}.values", text))
        else:
            errors.append(fe.invalid(f"{here}.operator", operator, "not a valid selector operator"))
        errors += validate_label_name(requirement.get("key") or "", f"{here}.key")
    return errors


def _pod_term(term: Object, place: str) -> list[FieldError]:
    errors = []
    if (selector := term.get("labelSelector")) is not None:
        errors += selectors.validate_object(selector, f"{place}.labelSelector")
    if (selector := term.get("namespaceSelector")) is not None:
        errors += selectors.validate_object(selector, f"{place}.namespaceSelector")
    for index, namespace in enumerate(term.get("namespaces") or ()):
        texts = names.name_is_dns_label(namespace, False)
        errors += [fe.invalid(f"{place}.namespaces[{index}]", namespace, text) for text in texts]
    key = term.get("topologyKey") or ""
    if not key:
        errors.append(fe.required(f"{place}.topologyKey", "can not be empty"))
    return errors + validate_label_name(key, f"{place}.topologyKey")


def tolerations_errors(tolerations: Sequence[Object], place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        here = f"{place}[{index}]"
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        effect = toleration.get("effect") or ""
        if key:
            errors += validate_label_name(key, f"{here}.key")
        elif operator != "Exists":
            errors.append(fe.invalid(f"{here}.operator", operator, _ALL_KEYS))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(fe.invalid(f"{here}.effect", effect, text))
        errors += _operator(operator, toleration.get("value") or "", here)
        if effect and effect not in TAINT_EFFECTS:
            errors.append(fe.not_supported(f"{here}.effect", effect, TAINT_EFFECTS))
    return errors


def _operator(operator: str, value: str, place: str) -> list[FieldError]:
    field = f"{place}.operator"
    if operator in ("", "Equal"):
        texts = names.label_value(value)
        return [fe.invalid(field, value, ";".join(texts))] if texts else []
    if operator == "Exists":
        return [fe.invalid(field, value, "value must be empty when `operator` is 'Exists'")] if value else []
    return [fe.not_supported(field, operator, ("Equal", "Exists"))]


def spread_errors(constraints: Sequence[Object], place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen = set()
    for index, constraint in enumerate(constraints):
        here = f"{place}[{index}]"
        skew = constraint.get("maxSkew") or 0
        if skew <= 0:
            errors.append(fe.invalid(f"{here}.maxSkew", skew, "must be greater than zero"))
        key = constraint.get("topologyKey") or ""
        if not key:
            errors.append(fe.required(f"{here}.topologyKey", "can not be empty"))
        unsatisfiable = constraint.get("whenUnsatisfiable") or ""
        allowed = ("DoNotSchedule", "ScheduleAnyway")
        errors += checks.supported(unsatisfiable, allowed, f"{here}.whenUnsatisfiable")
        if (key, unsatisfiable) in seen:
            pair = f"{{{key}, {unsatisfiable}}}"
            errors.append(fe.duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", pair))
        seen.add((key, unsatisfiable))
        domains = constraint.get("minDomains")
        if domains is not None and domains <= 0:
            errors.append(fe.invalid(f"{here}.minDomains", domains, "must be greater than zero"))
        if (selector := constraint.get("labelSelector")) is not None:
            errors += selectors.validate_object(selector, f"{here}.labelSelector")
    return errors
