"""HorizontalPodAutoscalers between autoscaling/v1 and v2.

What v1 has no field for stands in annotations there: metrics, their current values and conditions in v1's own types,
behavior in the internal one.
Source: kubernetes `pkg/apis/autoscaling/v1/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

Object = dict[str, Any]
DEFAULT_CPU = 80
_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS, CURRENT = f"{_PREFIX}metrics", f"{_PREFIX}current-metrics"
CONDITIONS, BEHAVIOR = f"{_PREFIX}conditions", f"{_PREFIX}behavior"
_ANNOTATIONS = (METRICS, CURRENT, CONDITIONS, BEHAVIOR)
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message", "observedGeneration")
_SOURCES = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
}


def to_v2(obj: Object) -> Object:
    """A v1 object as v2; it is not changed."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    meta = dict(obj["metadata"])
    annotations = meta.get("annotations") or {}
    cpu = spec.get("targetCPUUtilizationPercentage")
    metrics = [_metric_to_v2(item, "target") for item in _decoded(annotations, METRICS)]
    metrics += [_cpu_metric(cpu)] if cpu is not None else []
    new_spec = {key: spec.get(key) for key in ("scaleTargetRef", "minReplicas", "maxReplicas")}
    new_spec["scaleTargetRef"] = _whole(new_spec["scaleTargetRef"])
    new_spec["metrics"] = metrics or [_cpu_metric(DEFAULT_CPU)]
    if behavior := _external_behavior(_loaded(annotations, BEHAVIOR)):
        new_spec["behavior"] = behavior
    new_status = _status_to_v2(status, annotations)
    left = {key: value for key, value in annotations.items() if key not in _ANNOTATIONS}
    meta.pop("annotations", None)
    if left:
        meta["annotations"] = left
    out = {**obj, "apiVersion": "autoscaling/v2", "metadata": meta, "spec": new_spec}
    return {**out, "status": new_status}


def to_v1(obj: Object) -> Object:
    """A v2 object as v1; it is not changed."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    metrics = spec.get("metrics") or []
    cpu = next((metric for metric in metrics if _is_cpu(metric)), None)
    new_spec = {key: spec[key] for key in ("scaleTargetRef", "minReplicas", "maxReplicas") if spec.get(key) is not None}
    new_spec["scaleTargetRef"] = _whole(spec.get("scaleTargetRef"))
    if cpu is not None:
        new_spec["targetCPUUtilizationPercentage"] = cpu["resource"]["target"]["averageUtilization"]
    annotations = {
        key: value for key, value in (obj["metadata"].get("annotations") or {}).items() if key not in _ANNOTATIONS
    }
    others = [_metric_to_v1(metric, "target") for metric in metrics if not _is_cpu(metric)]
    current = [_metric_to_v1(metric, "current") for metric in status.get("currentMetrics") or ()]
    conditions = [_ordered(item, _CONDITION) for item in status.get("conditions") or ()]
    for key, content in ((METRICS, others), (CURRENT, current), (CONDITIONS, conditions)):
        if content:
            annotations[key] = orjson.dumps(content).decode()
    if spec.get("behavior") is not None:
        annotations[BEHAVIOR] = orjson.dumps(_internal_behavior(spec["behavior"])).decode()
    meta = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    if annotations:
        meta["annotations"] = dict(sorted(annotations.items()))
    out = {**obj, "apiVersion": "autoscaling/v1", "metadata": meta, "spec": new_spec}
    return {**out, "status": _status_to_v1(status)}


def _whole(reference: Object | None) -> Object:
    """A reference with the fields that its type never leaves out."""
    return {"kind": "", "name": "", **(reference or {})}


def _ordered(item: Object, names: Sequence[str]) -> Object:
    """The fields in the order of their type."""
    return {name: item[name] for name in names if name in item}


def _cpu_metric(percent: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _is_cpu(metric: Object) -> bool:
    resource = metric.get("resource") or {}
    target = resource.get("target") or {}
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and "averageUtilization" in target


def _loaded(annotations: Object, key: str) -> Any:
    try:
        return orjson.loads(annotations.get(key) or "null")
    except orjson.JSONDecodeError:
        return None


def _decoded(annotations: Object, key: str) -> Sequence[Object]:
    found = _loaded(annotations, key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _status_to_v2(status: Object, annotations: Object) -> Object:
    kept = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
    out = {key: status[key] for key in kept if status.get(key) is not None}
    current = [_metric_to_v2(item, "current") for item in _decoded(annotations, CURRENT)]
    cpu = status.get("currentCPUUtilizationPercentage")
    if not current and cpu is not None:
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": cpu}}}]
    out["currentMetrics"] = current or None
    out["conditions"] = list(_decoded(annotations, CONDITIONS)) or None
    return out


def _status_to_v1(status: Object) -> Object:
    kept = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
    out = {"currentReplicas": 0, "desiredReplicas": 0}
    out |= {key: status[key] for key in kept if status.get(key) is not None}
    for metric in status.get("currentMetrics") or ():
        resource = metric.get("resource") or {}
        utilization = (resource.get("current") or {}).get("averageUtilization")
        if resource.get("name") == "cpu" and utilization is not None:
            out["currentCPUUtilizationPercentage"] = utilization
    return out


def _metric_to_v1(metric: Object, what: str) -> Object:
    """A metric of v2 (`what` is target or current) in v1's types."""
    kind = metric.get("type") or ""
    name = _SOURCES.get(kind)
    source = metric.get(name or "")
    if name is None or source is None:
        return {"type": kind}
    return {"type": kind, name: _TO_V1[name](source, source.get(what) or {}, what)}


def _metric_to_v2(metric: Object, what: str) -> Object:
    kind = metric.get("type") or ""
    name = _SOURCES.get(kind)
    source = metric.get(name or "")
    if name is None or source is None:
        return {"type": kind}
    return {"type": kind, name: _TO_V2[name](source, what)}


def _present(**fields: Any) -> Object:
    return {key: value for key, value in fields.items() if value is not None}


def _resource_to_v1(source: Object, value: Object, what: str) -> Object:
    out = _present(name=source.get("name"), container=source.get("container"))
    for key in ("averageUtilization", "averageValue"):
        if value.get(key) is not None:
            out[f"{what}{key[0].upper()}{key[1:]}"] = value[key]
    return out


def _object_to_v1(source: Object, value: Object, what: str) -> Object:
    metric = source.get("metric") or {}
    return _present(
        target=_ordered(source.get("describedObject") or {}, ("kind", "name", "apiVersion")),
        metricName=metric.get("name"),
        selector=metric.get("selector"),
        averageValue=value.get("averageValue"),
        **{f"{what}Value": value.get("value") or "0"},
    )


def _pods_to_v1(source: Object, value: Object, what: str) -> Object:
    metric = source.get("metric") or {}
    average = {f"{what}AverageValue": value.get("averageValue")}
    return _present(metricName=metric.get("name"), selector=metric.get("selector"), **average)


def _external_to_v1(source: Object, value: Object, what: str) -> Object:
    metric = source.get("metric") or {}
    values = {f"{what}Value": value.get("value"), f"{what}AverageValue": value.get("averageValue")}
    return _present(metricName=metric.get("name"), metricSelector=metric.get("selector"), **values)


def _value(what: str, **given: Any) -> Object:
    """A target, whose type follows from what it has, or a current value."""
    out = _present(**given)
    if what == "current":
        return out
    if "averageUtilization" in out:
        return {"type": "Utilization", **out}
    kind = "AverageValue" if "averageValue" in out else "Value"
    return {"type": kind, **out}


def _resource_to_v2(source: Object, what: str) -> Object:
    utilization, average = source.get(f"{what}AverageUtilization"), source.get(f"{what}AverageValue")
    value = _value(what, averageUtilization=utilization, averageValue=average)
    return _present(name=source.get("name"), container=source.get("container"), **{what: value})


def _object_to_v2(source: Object, what: str) -> Object:
    average = source.get("averageValue")
    value = _value(what, value=None if average is not None else source.get(f"{what}Value"), averageValue=average)
    metric = _present(name=source.get("metricName"), selector=source.get("selector"))
    return _present(describedObject=source.get("target"), metric=metric, **{what: value})


def _pods_to_v2(source: Object, what: str) -> Object:
    metric = _present(name=source.get("metricName"), selector=source.get("selector"))
    return {"metric": metric, what: _value(what, averageValue=source.get(f"{what}AverageValue"))}


def _external_to_v2(source: Object, what: str) -> Object:
    metric = _present(name=source.get("metricName"), selector=source.get("metricSelector"))
    value = _value(what, value=source.get(f"{what}Value"), averageValue=source.get(f"{what}AverageValue"))
    return {"metric": metric, what: value}


_TO_V1: dict[str, Callable[[Object, Object, str], Object]] = {
    "object": _object_to_v1,
    "pods": _pods_to_v1,
    "resource": _resource_to_v1,
    "containerResource": _resource_to_v1,
    "external": _external_to_v1,
}
_TO_V2: dict[str, Callable[[Object, str], Object]] = {
    "object": _object_to_v2,
    "pods": _pods_to_v2,
    "resource": _resource_to_v2,
    "containerResource": _resource_to_v2,
    "external": _external_to_v2,
}


def _internal_behavior(behavior: Object) -> Object:
    """Behavior under the names of the internal type, as its annotation has it."""
    return {key[0].upper() + key[1:]: _internal_rules(behavior.get(key)) for key in ("scaleUp", "scaleDown")}


def _internal_rules(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    policies = rules.get("policies")
    return {
        "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
        "SelectPolicy": rules.get("selectPolicy"),
        "Policies": policies and [_internal_policy(item) for item in policies],
        "Tolerance": rules.get("tolerance"),
    }


def _internal_policy(policy: Object) -> Object:
    return {"Type": policy.get("type"), "Value": policy.get("value"), "PeriodSeconds": policy.get("periodSeconds")}


def _external_behavior(internal: Any) -> Object | None:
    """Behavior from its annotation; None for what is none."""
    if not isinstance(internal, dict):
        return None
    found = {}
    for key in ("ScaleUp", "ScaleDown"):
        rules = internal.get(key)
        if isinstance(rules, dict):
            found[key[0].lower() + key[1:]] = {
                name[0].lower() + name[1:]: _external_policies(value) if name == "Policies" else value
                for name, value in rules.items()
                if value is not None
            }
    return found or None


def _external_policies(policies: Any) -> Any:
    if not isinstance(policies, list):
        return policies
    return [{key[0].lower() + key[1:]: item[key] for key in item} for item in policies if isinstance(item, dict)]
