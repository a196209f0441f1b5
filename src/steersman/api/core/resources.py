"""Resource names and quantities of containers, quotas and nodes.

Source: kubernetes `pkg/apis/core/validation/validation.go`, `pkg/apis/core/helper/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names, quantity
from steersman.apimachinery.field_errors import FieldError

Object = dict[str, Any]
_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_OBJECT_COUNTS = frozenset(
    {
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_QUOTA = _CONTAINER | _OBJECT_COUNTS | {"requests.storage"}
_QUOTA |= {f"{kind}.{name}" for kind in ("requests", "limits") for name in _CONTAINER}
_STANDARD = _QUOTA | {"storage"}
_HUGE = ("hugepages-", "requests.hugepages-")
INTEGERS = _OBJECT_COUNTS
_NOT_NEGATIVE = "must be greater than or equal to 0"


def is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")


def is_standard_quota(name: str) -> bool:
    """Whether a quota may count the resource without its group."""
    return name in _QUOTA or name.startswith(_HUGE)


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """A device plugin's resource: qualified, of another domain than kubernetes.io."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not names.qualified_name(f"requests.{name}")


def overcommit_allowed(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def name_errors(name: str, field: str) -> list[FieldError]:
    """A resource's name: qualified, or one of the standard ones."""
    errors = [fe.invalid(field, name, text) for text in names.qualified_name(name)]
    if not errors and "/" not in name and name not in _STANDARD and not name.startswith(_HUGE):
        errors.append(fe.invalid(field, name, "must be a standard resource type or fully qualified"))
    return errors


def container_name_errors(name: str, field: str) -> list[FieldError]:
    errors = name_errors(name, field)
    if "/" not in name:
        if name not in _CONTAINER and not is_huge_page(name):
            errors.append(fe.invalid(field, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(fe.invalid(field, name, "doesn't follow extended resource name standard"))
    return errors


def quota_name_errors(name: str, field: str) -> list[FieldError]:
    errors = name_errors(name, field)
    if "/" not in name and name not in _QUOTA and not name.startswith(_HUGE):
        errors.append(fe.invalid(field, name, "must be a standard resource for quota"))
    return errors


def quantity_errors(name: str, text: str, field: str) -> list[FieldError]:
    """A quantity of a resource: not negative, and whole where things are counted."""
    value = quantity.parse(text)
    errors = [fe.invalid(field, text, _NOT_NEGATIVE)] if value < quantity.parse("0") else []
    if (name in INTEGERS or is_extended(name)) and not _is_whole(value):
        errors.append(fe.invalid(field, text, "must be an integer"))
    return errors


def _is_whole(value: quantity.Quantity) -> bool:
    return bool(value.scale >= 0 or value.unscaled % 10**-value.scale == 0)


def requirement_errors(
    requirements: Mapping[str, Any],
    field: str,
    *,
    claims: frozenset[str] = frozenset(),
    names_of: Callable[[str, str], list[FieldError]] = container_name_errors,
) -> list[FieldError]:
    """limits, requests (not above their limits) and claims; `claims` are those that the pod has."""
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    errors = []
    for name, value in limits.items():
        place = f"{field}.limits[{name}]"
        errors += [*names_of(name, place), *quantity_errors(name, value, place)]
    for name, value in requests.items():
        place = f"{field}.requests[{name}]"
        errors += [*names_of(name, place), *quantity_errors(name, value, place)]
        errors += _above_limit(name, value, limits.get(name), field)
    used = {*limits, *requests}
    if any(map(is_huge_page, used)) and not used & {"cpu", "memory"}:
        errors.append(fe.forbidden(field, "HugePages require cpu or memory"))
    return errors + _claim_errors(requirements.get("claims") or (), claims, f"{field}.claims")


def _above_limit(name: str, request: str, limit: str | None, field: str) -> list[FieldError]:
    fixed = not overcommit_allowed(name)
    if limit is None:
        return [fe.required(f"{field}.limits", "Limit must be set for non overcommitable resources")] if fixed else []
    wanted, most = quantity.parse(request), quantity.parse(limit)
    if fixed and wanted != most:
        return [fe.invalid(f"{field}.requests", request, f"must be equal to {name} limit of {limit}")]
    if most < wanted:
        return [fe.invalid(f"{field}.requests", request, f"must be less than or equal to {name} limit of {limit}")]
    return []


def _claim_errors(used: Any, known: frozenset[str], field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    among = f": {', '.join(sorted(known))}" if known else " which is empty"
    for index, claim in enumerate(used):
        place, name, request = f"{field}[{index}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            errors.append(fe.required(place))
        elif name in seen:
            errors.append(fe.duplicate(place, name))
        else:
            key = f"{name}/{request}" if request else name
            if request:
                errors += [fe.invalid(f"{place}.request", request, text) for text in names.dns1123_label(request)]
            if key in seen:
                errors.append(fe.duplicate(place, key))
            elif not request:
                errors += [fe.duplicate(place, name) for other in seen if other.partition("/")[0] == name]
            seen.add(key)
        if name and name not in known:
            text = f"must be one of the names in pod.spec.resourceClaims{among}"
            errors.append(FieldError(fe.NOT_FOUND, place, name, text))
    return errors
