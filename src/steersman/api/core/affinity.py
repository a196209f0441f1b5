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
_NO_OPERATOR = "not a valid selector operator"
_POSITIVE = "must be greater than zero"
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
        errors += node_selector_errors(required, f"{place}.{_REQUIRED}")
    for index, weighted in enumerate(node.get(_PREFERRED) or ()):
        at = f"{place}.{_PREFERRED}[{index}]"
        preference = weighted.get("preference") or {}
        errors += _weight(weighted, at) + node_term_errors(preference, f"{at}.preference", check_values=False)
    return errors


def node_selector_errors(selector: Object, place: str) -> list[FieldError]:
    """A node selector: at least one term."""
    here = f"{place}.nodeSelectorTerms"
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        return [fe.required(here, "must have at least one node selector term")]
    return [error for index, term in enumerate(terms) for error in node_term_errors(term, f"{here}[{index}]")]


def node_term_errors(term: Object, place: str, *, check_values: bool = True) -> list[FieldError]:
    """One term of a node selector: requirements for labels and for the node's name."""
    errors: list[FieldError] = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        here = f"{place}.matchExpressions[{index}]"
        errors += _label_operator(requirement, here)
        errors += validate_label_name(requirement.get("key") or "", f"{here}.key")
        for number, value in enumerate((requirement.get("values") or ()) if check_values else ()):
            errors += [fe.invalid(f"{here}.values[{number}]", value, text) for text in names.label_value(value)]
    for index, requirement in enumerate(term.get("matchFields") or ()):
        errors += _node_field(requirement, f"{place}.matchFields[{index}]")
    return errors


def _label_operator(requirement: Object, place: str) -> list[FieldError]:
    operator, count = requirement.get("operator") or "", len(requirement.get("values") or ())
    field = f"{place}.values"
    if operator in ("In", "NotIn"):
        return [] if count else [fe.required(field, "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in ("Exists", "DoesNotExist"):
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [fe.forbidden(field, text)] if count else []
    if operator in ("Gt", "Lt"):
        text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        return [] if count == 1 else [fe.required(field, text)]
    return [fe.invalid(f"{place}.operator", operator, _NO_OPERATOR)]


def _node_field(requirement: Object, place: str) -> list[FieldError]:
    """A requirement for a field of the node: its name is the only one."""
    operator, key = requirement.get("operator") or "", requirement.get("key") or ""
    values, errors = requirement.get("values") or [], []
    if operator not in ("In", "NotIn"):
        errors.append(fe.invalid(f"{place}.operator", operator, _NO_OPERATOR))
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(fe.required(f"{place}.values", text))
    if key != "metadata.name":
        return [*errors, fe.invalid(f"{place}.key", key, "not a valid field selector key")]
    return errors + [
        fe.invalid(f"{place}.values[{index}]", value, text)
        for index, value in enumerate(values)
        for text in names.name_is_dns_subdomain(value, False)
    ]


def _pod_term(term: Object, place: str) -> list[FieldError]:
    errors = []
    for name in ("labelSelector", "namespaceSelector"):
        if (selector := term.get(name)) is not None:
            errors += selectors.validate_object(selector, f"{place}.{name}")
    for namespace in term.get("namespaces") or ():
        texts = names.name_is_dns_label(namespace, False)
        errors += [fe.invalid(f"{place}.namespace", namespace, text) for text in texts]
    errors += _label_keys_errors(term, place)
    key = term.get("topologyKey") or ""
    if not key:
        errors.append(fe.required(f"{place}.topologyKey", "can not be empty"))
    return errors + validate_label_name(key, f"{place}.topologyKey")


def _label_keys_errors(term: Object, place: str) -> list[FieldError]:
    """Keys of the pod's own labels, which become part of the label selector."""
    selector, errors = term.get("labelSelector"), []
    match, mismatch = (term.get(name) or () for name in ("matchLabelKeys", "mismatchLabelKeys"))
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            text = "must not be specified when labelSelector is not set"
            errors.append(fe.forbidden(f"{place}.{name}", text))
        elif keys:
            for index, key in enumerate(keys):
                errors += validate_label_name(key, f"{place}.{name}[{index}]")
    if selector is not None:
        known, places = set(selector.get("matchLabels") or ()), {key: index for index, key in enumerate(match)}
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key") or ""
            if key in places and key in known:
                text = "exists in both matchLabelKeys and labelSelector"
                errors.append(fe.invalid(f"{place}[{places[key]}]", key, text))
            known.add(key)
    return errors + [
        fe.invalid(f"{place}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")
        for index, key in enumerate(match)
        if key in mismatch
    ]


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
    known = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
    return [fe.not_supported(field, operator, known)]


def spread_errors(constraints: Sequence[Object], place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    pairs = [(item.get("topologyKey") or "", item.get("whenUnsatisfiable") or "") for item in constraints]
    for index, constraint in enumerate(constraints):
        here = f"{place}[{index}]"
        skew = constraint.get("maxSkew") or 0
        if skew <= 0:
            errors.append(fe.invalid(f"{here}.maxSkew", skew, _POSITIVE))
        key, unsatisfiable = pairs[index]
        if not key:
            errors.append(fe.required(f"{here}.topologyKey", "can not be empty"))
        allowed = ("DoNotSchedule", "ScheduleAnyway")
        errors += checks.supported(unsatisfiable, allowed, f"{here}.whenUnsatisfiable")
        if pairs[index] in pairs[index + 1 :]:
            pair = f"{{{key}, {unsatisfiable}}}"
            errors.append(fe.duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", pair))
        errors += _domains_errors(constraint.get("minDomains"), unsatisfiable, f"{here}.minDomains")
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) is not None:
                errors += checks.supported(constraint[name], ("Honor", "Ignore"), f"{here}.{name}")
        errors += _label_keys_errors({**constraint, "mismatchLabelKeys": None}, here)
        if (selector := constraint.get("labelSelector")) is not None:
            errors += selectors.validate_object(selector, f"{here}.labelSelector")
    return errors


def _domains_errors(domains: int | None, unsatisfiable: str, place: str) -> list[FieldError]:
    if domains is None:
        return []
    errors = [] if domains > 0 else [fe.invalid(place, domains, _POSITIVE)]
    if unsatisfiable != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {unsatisfiable}"
        errors.append(fe.invalid(place, domains, text))
    return errors
