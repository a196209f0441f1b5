"""Nodes, ResourceQuotas, LimitRanges and PodTemplates.

Source: kubernetes `pkg/registry/core/{node,resourcequota,limitrange,podtemplate}/strategy.go`,
`pkg/apis/core/validation/validation.go`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.apps.pod_sets import labels_text
from steersman.api.builtin import BuiltinStrategy, StatusStrategy
from steersman.api.core.affinity import TAINT_EFFECTS
from steersman.api.core.pod_spec import template_errors
from steersman.api.core.pod_warnings import generation_changed, template_warnings
from steersman.api.core.resources import (
    container_name_errors,
    is_standard_quota,
    name_errors,
    overcommit_allowed,
    quantity_errors,
    quota_name_errors,
)
from steersman.api.strategy import Object, Strategy
from steersman.api.tables import age, container_cells
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names, quantity
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_label_name

_ROLE = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_LIMIT_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_ORDER = (
    ("min", "max", "min", "min"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
    ("min", "default", "default", "min"),
    ("default", "max", "default", "max"),
)
_WORDS = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}
_COMPUTE = frozenset(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory", "ephemeral-storage")
)
_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
_CONFLICTS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_EXISTING = frozenset(_SCOPES) - {"PriorityClass", "VolumeAttributesClass"}
_ANY = (
    "ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


class NodeStrategy(BuiltinStrategy):
    def prepare_for_create(self, obj: Object) -> None:
        """Nodes are created with their status."""

    def validate_content(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        seen = set()
        for index, taint in enumerate(spec.get("taints") or ()):
            place = f"metadata.taints[{index}]"
            key, effect, value = (taint.get(name) or "" for name in ("key", "effect", "value"))
            errors += validate_label_name(key, f"{place}.key")
            if texts := names.label_value(value):
                errors.append(fe.invalid(f"{place}.value", value, ";".join(texts)))
            if not effect:
                errors.append(fe.required(f"{place}.effect"))
            elif effect not in TAINT_EFFECTS:
                errors.append(fe.not_supported(f"{place}.effect", effect, TAINT_EFFECTS))
            if (key, effect) in seen:
                shown = fe.Struct(Key=key, Value=value, Effect=effect, TimeAdded=taint.get("timeAdded"))
                text = "taints must be unique by key and effect pair"
                errors.append(FieldError(fe.DUPLICATE, place, shown, text))
            seen.add((key, effect))
        return errors + _networks_errors(spec.get("podCIDRs") or [], "spec.podCIDRs")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = super().validate_update(new, old)
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        if before.get("podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
            text = 'node updates may not change podCIDR except from "" to valid'
            errors.append(fe.forbidden("spec.podCIDRs", text))
        if (spec.get("externalID") or "") != (before.get("externalID") or ""):
            errors.append(fe.forbidden("spec.externalID", "may not be updated"))
        return errors

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        known, given = (((item or {}).get("spec") or {}).get("providerID") for item in (old, new))
        if not known or given == known:
            return []
        change = "modified" if given else "cleared"
        return [fe.invalid("spec.providerID", None, f"field cannot be {change} once set")]

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        info = status.get("nodeInfo") or {}
        kernel = info.get("kernelVersion") or "<unknown>"
        if info.get("architecture"):
            kernel += f" ({info['architecture']})"
        return [
            meta.get("name") or "",
            _node_state(spec, status),
            _roles(meta.get("labels") or {}),
            age(meta.get("creationTimestamp"), now),
            info.get("kubeletVersion") or "",
            _address(status, "InternalIP"),
            _address(status, "ExternalIP"),
            info.get("osImage") or "<unknown>",
            kernel,
            info.get("containerRuntimeVersion") or "<unknown>",
        ]


def _networks_errors(networks: list[str], place: str) -> list[FieldError]:
    """One network of each family."""
    errors: list[FieldError] = []
    for index, network in enumerate(networks):
        errors += checks.cidr(network, f"{place}[{index}]")
    if len(networks) < 2:
        return errors
    parsed = [checks.parse_network(network) for network in networks]
    if None in parsed:
        bad = parsed.index(None)
        why = f"invalid CIDR[{bad}]: <nil> (invalid CIDR address: {networks[bad]})"
        text = f"invalid PodCIDRs. failed to check with dual stack with error:{why}"
        errors.append(FieldError(fe.INTERNAL, place, None, text))
    families = {found[0].version for found in parsed if found is not None}
    if None in parsed or len(families) < 2 or len(networks) > 2:
        errors.append(fe.invalid(place, networks, "may specify no more than one CIDR for each IP family"))
    return errors


def _node_state(spec: Object, status: Object) -> str:
    ready = next((item for item in status.get("conditions") or () if item.get("type") == "Ready"), None)
    found = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{found},SchedulingDisabled" if spec.get("unschedulable") else found


def _roles(labels: Object) -> str:
    found = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} - {""}
    if labels.get(_ROLE_LABEL):
        found.add(labels[_ROLE_LABEL])
    return ",".join(sorted(found)) or "<none>"


def _address(status: Object, kind: str) -> str:
    found = (item.get("address") for item in status.get("addresses") or () if item.get("type") == kind)
    return next(found, None) or "<none>"


class ResourceQuotaStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        for name, value in (spec.get("hard") or {}).items():
            errors += quota_name_errors(name, f"spec.hard[{name}]")
            errors += quantity_errors(name, value, f"spec.hard[{name}]")
        errors += _scopes_errors(spec.get("scopes") or [], spec.get("hard") or {})
        selector = spec.get("scopeSelector")
        return errors + (_selector_errors(selector, spec) if selector is not None else [])

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = super().validate_update(new, old)
        scopes, before = ((item.get("spec") or {}).get("scopes") or [] for item in (new, old))
        if set(scopes) != set(before):
            errors.append(fe.invalid("spec.scopes", scopes or None, "field is immutable"))
        return errors

    def subresource(self, name: str) -> Strategy:
        return _QuotaStatus(self) if name == "status" else super().subresource(name)

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, status = obj["metadata"], obj.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        shown = {name: f"{name}: {used.get(name) or '0'}/{hard[name]}" for name in sorted(hard)}
        limits = [text for name, text in shown.items() if name.startswith("limits.")]
        requests = [text for name, text in shown.items() if not name.startswith("limits.")]
        created = age(meta.get("creationTimestamp"), now)
        return [meta.get("name") or "", ", ".join(requests), ", ".join(limits), created]


def _scope_counts(scope: str, name: str) -> bool:
    """Whether a scope tells objects apart that a resource counts."""
    pods = name == "pods" or name in _COMPUTE
    if scope == "BestEffort":
        return name == "pods"
    if scope == "VolumeAttributesClass":
        return name in ("persistentvolumeclaims", "requests.storage")
    return pods if scope in _SCOPES else True


def _scopes_errors(scopes: Sequence[str], hard: Object) -> list[FieldError]:
    errors = []
    for scope in scopes:
        if scope not in _SCOPES:
            errors.append(fe.invalid("spec.scopes", list(scopes), "unsupported scope"))
        errors += [
            fe.invalid("spec.scopes", list(scopes), "unsupported scope applied to resource")
            for name in sorted(hard)
            if is_standard_quota(name) and not _scope_counts(scope, name)
        ]
    return errors + [
        fe.invalid("spec.scopes", list(scopes), "conflicting scopes") for pair in _CONFLICTS if pair <= set(scopes)
    ]


def _selector_errors(selector: Object, spec: Object) -> list[FieldError]:
    """A selector by scopes: upstream places its errors at the list, whichever item they are of."""
    requirements, place = selector.get("matchExpressions") or [], "spec.scopeSelector.matchExpressions"
    fields = (("ScopeName", "scopeName"), ("Operator", "operator"))
    printed = [
        fe.Struct({name: item.get(key) or "" for name, key in fields} | {"Values": item.get("values")})
        for item in requirements
    ]
    errors: list[FieldError] = []
    for requirement in requirements:
        scope, operator = (requirement.get(key) or "" for key in ("scopeName", "operator"))
        values = requirement.get("values") or []
        if scope not in _SCOPES:
            errors.append(fe.invalid(f"{place}.scopeName", scope, "unsupported scope"))
        for name in sorted(spec.get("hard") or ()):
            if is_standard_quota(name) and not _scope_counts(scope, name):
                shown = fe.Struct(MatchExpressions=printed)
                errors.append(fe.invalid(place, shown, "unsupported scope applied to resource"))
        if scope in _EXISTING and operator != "Exists":
            errors.append(fe.invalid(f"{place}.operator", operator, f"must be 'Exists' when scope is any of {_ANY}"))
        if operator in ("In", "NotIn") and not values:
            text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            errors.append(fe.required(f"{place}.values", text))
        elif operator in ("Exists", "DoesNotExist") and values:
            text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            errors.append(fe.invalid(f"{place}.values", values, text))
        elif operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            errors.append(fe.invalid(f"{place}.operator", operator, "not a valid selector operator"))
    named = {requirement.get("scopeName") for requirement in requirements}
    conflicts = [pair for pair in _CONFLICTS if pair <= named]
    return errors + [fe.invalid(place, spec.get("scopes"), "conflicting scopes") for _ in conflicts]


class _QuotaStatus(StatusStrategy):
    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = super().validate_update(new, old)
        for key in ("hard", "used"):
            for name, value in ((new.get("status") or {}).get(key) or {}).items():
                field = f"status.{key}[{name}]"
                errors += [*quota_name_errors(name, field), *quantity_errors(name, value, field)]
        return errors


class LimitRangeStrategy(BuiltinStrategy):
    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        if not obj["metadata"].get("name"):
            obj["metadata"]["name"] = obj["metadata"]["uid"]  # upstream: another UUID

    def validate_content(self, obj: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        seen: set[str] = set()
        for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
            errors += _limit_errors(limit, f"spec.limits[{index}]", seen)
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*self.validate_meta_update(new, old), *self.validate_create(new)]


def _limit_errors(limit: Object, place: str, seen: set[str]) -> list[FieldError]:
    kind = limit.get("type") or ""
    errors = [fe.invalid(f"{place}.type", kind, text) for text in names.qualified_name(kind)]
    if not errors and "/" not in kind and kind not in _LIMIT_TYPES:
        errors.append(fe.invalid(f"{place}.type", kind, "must be a standard limit type or fully qualified"))
    if kind in seen:
        errors.append(fe.duplicate(f"{place}.type", kind))
    seen.add(kind)
    parts = {key: limit.get(key) or {} for key in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")}
    if kind == "Pod":
        text = "may not be specified when `type` is 'Pod'"
        wrong = [fe.forbidden(f"{place}.{key}", text) for key in ("default", "defaultRequest") if parts[key]]
        parts = {**parts, "default": {}, "defaultRequest": {}}
    else:
        wrong = []
    errors += _limit_names_errors(kind, parts, ("max", "min"), place) + wrong
    errors += _limit_names_errors(kind, parts, ("default", "defaultRequest"), place)
    if kind == "PersistentVolumeClaim" and not any("storage" in parts[key] for key in ("min", "max")):
        text = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(fe.required(f"{place}.limits", text))
    errors += _limit_names_errors(kind, parts, ("maxLimitRequestRatio",), place)
    for name in sorted(set().union(*parts.values())):
        errors += _order_errors(name, parts, place) + _ratio_errors(name, parts, place)
    return errors


def _limit_names_errors(kind: str, parts: Mapping[str, Object], keys: Sequence[str], place: str) -> list[FieldError]:
    rule = container_name_errors if kind in ("Pod", "Container") else name_errors
    return [error for key in keys for name in parts[key] for error in rule(name, f"{place}.{key}[{name}]")]


def _ratio_errors(name: str, parts: Mapping[str, Object], place: str) -> list[FieldError]:
    """The greatest ratio of limit to request: no less than one, no more than the bounds allow."""
    ratio = parts["maxLimitRequestRatio"].get(name)
    errors, field = [], f"{place}.maxLimitRequestRatio[{name}]"
    if ratio is not None:
        wanted = quantity.parse(ratio)
        if wanted < quantity.parse("1"):
            errors.append(fe.invalid(field, ratio, f"ratio {ratio} is less than 1"))
        low, high = (parts[key].get(name) for key in ("min", "max"))
        if low is not None and high is not None:
            small, large = (quantity.parse(text).rounded_up(-3) for text in (low, high))
            most = large / small if small else math.inf
            if wanted.rounded_up(-3) / 1000 > most:
                text = f"ratio {ratio} is greater than max/min = {most:f}"
                errors.append(fe.invalid(field, ratio, text))
    default, request = parts["default"].get(name), parts["defaultRequest"].get(name)
    if default is None or request is None or overcommit_allowed(name):
        return errors
    if quantity.parse(default) != quantity.parse(request):
        text = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.append(fe.invalid(f"{place}.defaultRequest[{name}]", request, text))
    return errors


def _order_errors(name: str, parts: Mapping[str, Object], place: str) -> list[FieldError]:
    """min <= default request <= default <= max; errors stand at the value that users gave a default for."""
    errors: list[FieldError] = []
    for low, high, at, shown in _ORDER:
        small, large = parts[low].get(name), parts[high].get(name)
        if small is None or large is None or not quantity.parse(large) < quantity.parse(small):
            continue
        limit = "default limit" if (low, high) == ("defaultRequest", "default") else _WORDS[high]
        text = f"{_WORDS[low]} value {small} is greater than {limit} value {large}"
        errors.append(fe.invalid(f"{place}.{at}[{name}]", small if shown == low else large, text))
    return errors


class PodTemplateStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        return template_errors(obj.get("template") or {}, "template")

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        changed = old is None or generation_changed(obj, old)
        return template_warnings(obj.get("template"), "template") if changed else []

    def row(self, obj: Object, now: datetime) -> list[Any]:
        template = obj.get("template") or {}
        cells = container_cells((template.get("spec") or {}).get("containers") or [])
        labels = labels_text((template.get("metadata") or {}).get("labels"))
        return [obj["metadata"].get("name") or "", *cells, labels]
