"""What the controllers of CustomResourceDefinitions find out: accepted names, and the conditions in status.

Conditions are given without lastTransitionTime; `set_condition` puts in the time that it is handed.

Source: apiextensions `pkg/controller/{status,establish,nonstructuralschema,apiapproval}`, `pkg/apihelpers/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from steersman._util.gotext import quote
from steersman.api.apiextensions.approval import Approval, approval_state, is_protected_group
from steersman.api.apiextensions.conversion_rules import ca_bundle_error
from steersman.api.apiextensions.structural_rules import structural_errors, unsupported_keyword
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError, aggregate

Crd = Mapping[str, Any]
Condition = dict[str, Any]
_CONFLICTS = (
    ("plural", "PluralConflict", True),
    ("singular", "SingularConflict", True),
    ("kind", "KindConflict", False),
    ("listKind", "ListKindConflict", False),
)


@dataclass(frozen=True, slots=True)
class Naming:
    """The outcome of a naming round: `status.acceptedNames` and the two conditions that follow from it."""

    accepted_names: dict[str, Any]
    names_accepted: Condition
    established: Condition


def accept_names(crd: Crd, others: Iterable[Crd]) -> Naming:
    """Which of its names a CRD may have, given what `others` (all CRDs, itself included or not) were granted."""
    spec = crd.get("spec") or {}
    wanted: Mapping[str, Any] = spec.get("names") or {}
    current = _accepted(crd)
    resources, kinds = _taken([crd, *others], spec.get("group"))
    accepted = {"plural": "", "kind": "", **current}
    problem: tuple[str, str] | None = None

    def claim(key: str, reason: str, taken: set[str]) -> None:
        nonlocal problem
        name = wanted.get(key) or ""
        if name != (current.get(key) or "") and name in taken:
            problem = (reason, _in_use(name))
        else:
            accepted[key] = name

    for key, reason, is_resource in _CONFLICTS:
        if key == "kind":
            problem = _claim_short_names(wanted, current, accepted, resources) or problem
        claim(key, reason, resources if is_resource else kinds)
    accepted["categories"] = list(wanted.get("categories") or ())
    if problem is not None:
        names_accepted = _condition("NamesAccepted", "False", *problem)
    else:
        names_accepted = _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
    return Naming(_without_empty(accepted), names_accepted, _after_naming(crd, accepted=problem is None))


def _claim_short_names(
    wanted: Mapping[str, Any], current: Mapping[str, Any], accepted: dict[str, Any], taken: set[str]
) -> tuple[str, str] | None:
    names, owned = list(wanted.get("shortNames") or ()), list(current.get("shortNames") or ())
    conflicts = list(dict.fromkeys(_in_use(name) for name in names if name not in owned and name in taken))
    if conflicts:
        text = conflicts[0] if len(conflicts) == 1 else f"[{', '.join(conflicts)}]"
        return "ShortNamesConflict", text
    accepted["shortNames"] = names
    return None


def _in_use(name: str) -> str:
    return f"{quote(name)} is already in use"


def _accepted(crd: Crd) -> Mapping[str, Any]:
    return (crd.get("status") or {}).get("acceptedNames") or {}


def _taken(crds: Iterable[Crd], group: Any) -> tuple[set[str], set[str]]:
    """(names of resources, kinds) that are granted in a group."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for crd in crds:
        if (crd.get("spec") or {}).get("group") == group:
            names = _accepted(crd)
            resources |= {names.get("plural") or "", names.get("singular") or "", *(names.get("shortNames") or ())}
            kinds |= {names.get("kind") or "", names.get("listKind") or ""}
    return resources, kinds


def _without_empty(names: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in names.items() if value or key in ("plural", "kind")}


def _after_naming(crd: Crd, *, accepted: bool) -> Condition:
    condition = find_condition(crd, "Established")
    if condition is None:
        condition = _condition("Established", "False", "NotAccepted", "not all names are accepted")
    if condition["status"] != "True" and accepted:
        message = "the initial names have been accepted"
        return _condition("Established", "False", "Installing", message)
    return dict(condition)


def establish(crd: Crd) -> Condition | None:
    """The Established condition once names are accepted; None when there is nothing to change."""
    if not is_condition_true(crd, "NamesAccepted") or is_condition_true(crd, "Established"):
        return None
    webhook = ((crd.get("spec") or {}).get("conversion") or {}).get("webhook") or {}
    bundle = (webhook.get("clientConfig") or {}).get("caBundle")
    if bundle and ca_bundle_error(bundle):
        message = "The conversion webhook CABundle is invalid"
        return _condition("Established", "False", "InvalidCABundle", message)
    return _condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")


def non_structural_violations(crd: Crd) -> Condition | None:
    """The NonStructuralSchema condition; None when every schema is structural."""
    spec = crd.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("preserveUnknownFields"):
        errors.append(fe.invalid("spec.preserveUnknownFields", True, "must be false"))
    for index, version in enumerate(spec.get("versions") or ()):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            continue
        reason = unsupported_keyword(schema)
        if reason:
            message = f"failed to check validation schema for version {version.get('name')}: {reason}"
            return _condition("NonStructuralSchema", "Unknown", "StructuralError", message)
        errors += structural_errors(schema, f"spec.versions[{index}].schema.openAPIV3Schema")
    return _condition("NonStructuralSchema", "True", "Violations", aggregate(errors)) if errors else None


def approval_condition(crd: Crd) -> Condition | None:
    """The KubernetesAPIApprovalPolicyConformant condition; None outside of the community's groups."""
    if not is_protected_group((crd.get("spec") or {}).get("group") or ""):
        return None
    state, message = approval_state(crd)
    status = "True" if state is Approval.APPROVED else "False"
    return _condition("KubernetesAPIApprovalPolicyConformant", status, state.value, message)


def _condition(kind: str, status: str, reason: str, message: str) -> Condition:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def find_condition(crd: Crd, kind: str) -> Condition | None:
    """The condition of a type in a CRD's status."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def is_condition_true(crd: Crd, kind: str) -> bool:
    """Whether a CRD's status says that a condition holds."""
    condition = find_condition(crd, kind)
    return condition is not None and condition.get("status") == "True"


def set_condition(crd: dict[str, Any], condition: Condition, now: str) -> None:
    """Put a condition into a CRD's status, in place; its time (`now`, RFC 3339) changes only with its status."""
    status = crd.setdefault("status", {})
    conditions = list(status.get("conditions") or ())
    fresh = {
        "type": condition["type"],
        "status": condition["status"],
        "lastTransitionTime": now,
        "reason": condition["reason"],
        "message": condition["message"],
    }
    for index, old in enumerate(conditions):
        if old["type"] == condition["type"]:
            if old["status"] == condition["status"] and old.get("lastTransitionTime"):
                fresh["lastTransitionTime"] = old["lastTransitionTime"]
            conditions[index] = fresh
            break
    else:
        conditions.append(fresh)
    status["conditions"] = conditions


def remove_condition(crd: dict[str, Any], kind: str) -> None:
    """Take a condition out of a CRD's status, in place."""
    status = crd.setdefault("status", {})
    status["conditions"] = [each for each in status.get("conditions") or () if each.get("type") != kind]
