"""HorizontalPodAutoscalers: stored as v2, of which v1 shows the CPU target and puts the rest into annotations.

Source: kubernetes `pkg/apis/autoscaling/{v1/conversion.go,validation/validation.go}`,
`pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.autoscaling import conversion
from steersman.api.builtin import BuiltinStrategy, StatusStrategy
from steersman.api.core.resources import container_name_errors
from steersman.api.kinds import BuiltinKind
from steersman.api.strategy import Object, Strategy
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names, quantity
from steersman.apimachinery.field_errors import FieldError

SOURCES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_RAW = ("averageUtilization", "averageValue")
_NEEDED = {
    "object": (("value", "averageValue"), "averageValue", "must set either a target value or averageValue"),
    "external": (
        ("value", "averageValue"),
        "averageValue",
        "must set either a target value for metric or a per-pod target",
    ),
    "pods": (("averageValue",), "averageValue", "must specify a positive target averageValue"),
    "resource": (_RAW, "averageUtilization", "must set either a target raw value or a target utilization"),
    "containerResource": (_RAW, "averageUtilization", "must set either a target raw value or a target utilization"),
}
_RAW_OR_RATIO = "a target raw value and a target utilization"
_ONE = {
    "external": ("value", "a target value for metric and a per-pod target"),
    "resource": ("averageValue", _RAW_OR_RATIO),
    "containerResource": ("averageValue", _RAW_OR_RATIO),
}
_SELECT = ("Disabled", "Max", "Min")
_SHOWN = 2


class HorizontalPodAutoscalerStrategy(BuiltinStrategy):
    """Version v2."""

    def validate_content(self, obj: Object) -> list[FieldError]:
        return _spec_errors(obj.get("spec") or {})

    def subresource(self, name: str) -> Strategy:
        return _AutoscalerStatus(self) if name == "status" else super().subresource(name)

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        return _bounds_errors(new.get("spec") or {})

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        target, least = spec.get("scaleTargetRef") or {}, spec.get("minReplicas")
        return [
            meta.get("name") or "",
            f"{target.get('kind') or ''}/{target.get('name') or ''}",
            _targets(spec.get("metrics") or [], status.get("currentMetrics") or []),
            "<unset>" if least is None else str(least),
            spec.get("maxReplicas") or 0,
            status.get("currentReplicas") or 0,
            age(meta.get("creationTimestamp"), now),
        ]


class _AutoscalerStatus(StatusStrategy):
    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors, status = super().validate_update(new, old), new.get("status") or {}
        for key in ("currentReplicas", "desiredReplicas"):
            errors += checks.nonnegative(status.get(key), f"status.{key}")
        return errors


class V1Strategy(HorizontalPodAutoscalerStrategy):
    """Version v1: converted for the store and for every rule."""

    def default(self, obj: Object) -> None:
        super().default(obj)
        spec = obj.get("spec") or {}
        annotated = conversion.METRICS in (obj["metadata"].get("annotations") or {})
        if spec.get("targetCPUUtilizationPercentage") is None and not annotated:
            obj["spec"] = {**spec, "targetCPUUtilizationPercentage": conversion.DEFAULT_CPU}

    def to_storage(self, obj: Object) -> Object:
        return conversion.to_v2(obj)

    def from_storage(self, obj: Object) -> Object:
        return conversion.to_v1(obj)

    def validate_content(self, obj: Object) -> list[FieldError]:
        return _spec_errors(conversion.to_v2(obj).get("spec") or {})

    def row(self, obj: Object, now: datetime) -> list[Any]:
        return super().row(conversion.to_v2(obj), now)


def strategy(kind: BuiltinKind) -> HorizontalPodAutoscalerStrategy:
    """The rules of one version."""
    return V1Strategy(kind) if kind.version == "v1" else HorizontalPodAutoscalerStrategy(kind)


def _spec_errors(spec: Object) -> list[FieldError]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    errors: list[FieldError] = []
    if least is not None and most < least:
        errors.append(fe.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or {}
    errors += _reference_errors(target, "spec.scaleTargetRef")
    for index, metric in enumerate(spec.get("metrics") or ()):
        errors += _metric_errors(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in spec.get("metrics") or ()):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(fe.forbidden("spec.metrics", text))
    for key in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(key)
        if rules is not None:
            errors += _rules_errors(rules, f"spec.behavior.{key}")
    return errors


def _bounds_errors(spec: Object) -> list[FieldError]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    errors = checks.nonnegative(least, "spec.minReplicas")
    if most == 0:
        return [*errors, fe.required("spec.maxReplicas")]
    return errors + ([fe.invalid("spec.maxReplicas", most, "must be greater than or equal to 1")] if most < 0 else [])


def _reference_errors(reference: Object, place: str, *, any_group: bool = False) -> list[FieldError]:
    """A reference to an object; what is scaled must be of a group that has a name."""
    errors = []
    for key in ("kind", "name"):
        value = reference.get(key) or ""
        if value:
            errors += [fe.invalid(f"{place}.{key}", value, text) for text in names.path_segment_name(value)]
        else:
            errors.append(fe.required(f"{place}.{key}"))
    version = reference.get("apiVersion") or ""
    named = any_group or (version.partition("/")[0] and "/" in version)
    why = "" if named else "apiVersion must specify API group"
    if version.count("/") > 1:
        why = f"unexpected GroupVersion string: {version}"
    return errors + ([fe.invalid(f"{place}.apiVersion", version, why)] if why else [])


def _metric_errors(metric: Object, place: str) -> list[FieldError]:
    kind = metric.get("type") or ""
    errors = [] if kind else [fe.required(f"{place}.type", "must specify a metric source type")]
    errors += checks.supported(kind, SOURCES, f"{place}.type")
    names_of = ("object", "external", "pods", "resource", "containerResource")
    given = [name for name in names_of if metric.get(name) is not None]
    wanted = kind[:1].lower() + kind[1:]
    if given:
        errors += _source_errors(metric[given[0]], given[0], f"{place}.{given[0]}")
    if kind in SOURCES and wanted not in given:
        text = "must populate information for the given metric source"
        errors.append(fe.required(f"{place}.{wanted}", text))
    if len(given) > 1:
        text = "must populate the given metric source only"
        errors += [fe.forbidden(f"{place}.{name}", text) for name in given if kind not in SOURCES or name != wanted]
    return errors


def _source_errors(source: Object, kind: str, place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if kind == "object":
        errors += _reference_errors(source.get("describedObject") or {}, f"{place}.describedObject", any_group=True)
    if kind in ("resource", "containerResource"):
        errors += _resource_errors(source, kind, place)
    else:
        name, field = (source.get("metric") or {}).get("name") or "", f"{place}.metric.name"
        errors += [fe.invalid(field, name, text) for text in names.path_segment_name(name)]
        errors += [] if name else [fe.required(field, "must specify a metric name")]
    target, place = source.get("target") or {}, f"{place}.target"
    errors += _target_errors(target, place)
    needed, field, text = _NEEDED[kind]
    given = [key for key in needed if target.get(key) is not None]
    if not given:
        errors.append(fe.required(f"{place}.{field}", text))
    elif len(given) > 1 and kind in _ONE:
        errors.append(fe.forbidden(f"{place}.{_ONE[kind][0]}", f"may not set both {_ONE[kind][1]}"))
    return errors


def _resource_errors(source: Object, kind: str, place: str) -> list[FieldError]:
    name, container = source.get("name") or "", source.get("container") or ""
    if not name:
        errors = [fe.required(f"{place}.name", "must specify a resource name")]
    else:
        errors = container_name_errors(name, f"{place}.name") if kind == "containerResource" else []
    if kind == "resource":
        return errors
    if not container:
        return [*errors, fe.required(f"{place}.container", "must specify a container")]
    return errors + checks.dns_label(container, f"{place}.container")


def _target_errors(target: Object, place: str) -> list[FieldError]:
    kind = target.get("type") or ""
    errors = [] if kind else [fe.required(f"{place}.type", "must specify a metric target type")]
    if kind not in ("AverageValue", "Utilization", "Value"):
        errors.append(fe.invalid(f"{place}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for key in ("value", "averageValue"):
        value = target.get(key)
        if value is not None and not quantity.parse("0") < quantity.parse(value):
            errors.append(fe.invalid(f"{place}.{key}", value, "must be positive"))
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        errors.append(fe.invalid(f"{place}.averageUtilization", utilization, "must be greater than 0"))
    return errors


def _rules_errors(rules: Object, place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    window, field = rules.get("stabilizationWindowSeconds"), f"{place}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        errors.append(fe.invalid(field, window, "must be greater than or equal to zero"))
    if window is not None and window > 3600:
        errors.append(fe.invalid(field, window, "must be less than or equal to 3600"))
    if rules.get("selectPolicy") is not None:
        errors += checks.supported(rules["selectPolicy"], _SELECT, f"{place}.selectPolicy")
    policies = rules.get("policies") or []
    if not policies:
        errors.append(fe.required(f"{place}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        here = f"{place}.policies[{index}]"
        errors += checks.supported(policy.get("type"), ("Percent", "Pods"), f"{here}.type")
        for key in ("value", "periodSeconds"):
            if (policy.get(key) or 0) <= 0:
                errors.append(fe.invalid(f"{here}.{key}", policy.get(key) or 0, "must be greater than zero"))
        if (policy.get("periodSeconds") or 0) > 1800:
            text = "must be less than or equal to 1800"
            errors.append(fe.invalid(f"{here}.periodSeconds", policy["periodSeconds"], text))
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantity.parse(tolerance) < quantity.parse("0"):
        errors.append(fe.invalid(f"{place}.tolerance", tolerance, "must be greater than or equal to 0"))
    return errors


def _targets(metrics: Sequence[Object], current: Sequence[Object]) -> str:
    if not metrics:
        return "<none>"
    found = []
    for index, metric in enumerate(metrics):
        key = (metric.get("type") or "")[:1].lower() + (metric.get("type") or "")[1:]
        source = metric.get(key) or {}
        now = ((current[index] if index < len(current) else {}).get(key) or {}).get("current") or {}
        found.append(_target(key, source, now))
    more = f" + {len(found) - _SHOWN} more..." if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more


def _target(kind: str, source: Object, current: Object) -> str:
    target = source.get("target") or {}
    if kind in ("resource", "containerResource"):
        average, utilization = target.get("averageValue"), current.get("averageUtilization")
        if average is not None:
            return f"{source.get('name')}: {current.get('averageValue') or '<unknown>'}/{average}"
        wanted = target.get("averageUtilization")
        now = "<unknown>" if utilization is None else f"{utilization}%"
        return f"{source.get('name')}: {now}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if target.get("averageValue") is not None:
        text = f"{current.get('averageValue') or '<unknown>'}/{target['averageValue']}"
        return text if kind == "pods" else f"{text} (avg)"
    return f"{current.get('value') or '<unknown>'}/{target.get('value')}"
