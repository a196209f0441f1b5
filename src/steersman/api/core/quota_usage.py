"""What objects count for in ResourceQuotas: one evaluator for each resource that is more than counted.

Source: kubernetes `pkg/quota/v1/evaluator/core`, apiserver `pkg/quota/v1/generic/evaluator.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from steersman.api.classes import storage_class
from steersman.api.core import resource_lists as lists
from steersman.api.core.pod import quality_of_service
from steersman.api.core.resource_lists import ONE, ZERO, ResourceList
from steersman.api.core.resources import is_extended, is_huge_page, is_native
from steersman.apimachinery import quantity
from steersman.apimachinery.quantity import Quantity
from steersman.apimachinery.times import parse_time

Object = dict[str, Any]
IGNORED = frozenset(
    {
        ("", "bindings"),
        ("", "componentstatuses"),
        ("", "events"),
        ("events.k8s.io", "events"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
    }
)
"""Resources that no quota counts, by group and name."""
_ALIASES = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_POD_NAMES = frozenset(
    {"count/pods", "pods", *_COMPUTE, *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE)}
)
_REQUIRED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_IMPLICIT = "deviceclass.resource.kubernetes.io/"
_SERVICE_NAMES = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})
_BY_CLASS = ".storageclass.storage.k8s.io/"
_CLAIM_NAMES = ("persistentvolumeclaims", "requests.storage")
_DEVICES = ".deviceclass.resource.k8s.io/devices"
_ALL_DEVICES = 32


def count_name(group: str, resource: str) -> str:
    """What a quota calls the number of objects of a resource."""
    return f"count/{resource}.{group}" if group else f"count/{resource}"


class Evaluator:
    """Counts the objects of a resource; what other resources have besides is in the subclasses."""

    def __init__(self, group: str, resource: str) -> None:
        self._names = {count_name(group, resource)}
        if not group and resource in _ALIASES:
            self._names.add(resource)

    counts_only = True
    """Whether each object counts as one, whatever is in it."""

    def handles(self, operation: str, subresource: str, new: Object, old: Object | None) -> bool:
        """Whether a write may change what is used; `operation` is CREATE or UPDATE."""
        return operation == "CREATE" and not subresource

    def matching(self, names: Iterable[str]) -> set[str]:
        """Those of a quota's resources that this one's objects count for."""
        return {name for name in names if name in self._names}

    def in_scope(self, requirement: Mapping[str, Any], obj: Object) -> bool:
        """Whether an object is in the scope (`scopeName`, `operator`, `values`) of a quota."""
        return False

    def missing(self, required: Iterable[str], obj: Object) -> str:
        """What an object has to say for a quota to count it; "" when it says all."""
        return ""

    def usage(self, obj: Object, now: datetime) -> ResourceList:
        """What an object counts for."""
        return dict.fromkeys(self._names, ONE)

    def frees(self, new: Object, old: Object, now: datetime) -> bool:
        """Whether an update, which was not charged for, may count for less than before."""
        return False


class PodEvaluator(Evaluator):
    counts_only = False

    def handles(self, operation: str, subresource: str, new: Object, old: Object | None) -> bool:
        if subresource:
            return subresource == "resize" and operation == "UPDATE"
        return operation == "CREATE" or (old is not None and _has_deadline(new) != _has_deadline(old))

    def matching(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if name in _POD_NAMES or _is_huge_quota(name) or _is_extended_quota(name)}

    def in_scope(self, requirement: Mapping[str, Any], obj: Object) -> bool:
        scope, spec = requirement["scopeName"], obj.get("spec") or {}
        if scope == "PriorityClass":
            return _selects(requirement, {spec["priorityClassName"]} if spec.get("priorityClassName") else set())
        told = _POD_SCOPES.get(scope)
        return told is not None and told(obj)

    def missing(self, required: Iterable[str], obj: Object) -> str:
        if lists.has_pod_level_resources(obj):
            return ""
        wanted = _REQUIRED.intersection(required)
        lacking: dict[str, set[str]] = {}
        spec = obj.get("spec") or {}
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            resources = container.get("resources") or {}
            given = _compute(lists.parsed(resources.get("requests")), lists.parsed(resources.get("limits")))
            for name in wanted - given.keys():
                lacking.setdefault(name, set()).add(container.get("name") or "")
        texts = [f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking)]
        return f"must specify {'; '.join(texts)}" if texts else ""

    def usage(self, obj: Object, now: datetime) -> ResourceList:
        if not _is_running(obj, now):
            return {"count/pods": ONE}
        return {"count/pods": ONE, **_compute(lists.pod_requests(obj), lists.pod_limits(obj))}

    def frees(self, new: Object, old: Object, now: datetime) -> bool:
        if _has_deadline(new) != _has_deadline(old) or _got(new) != _got(old):
            return True
        return _is_running(old, now) and not _is_running(new, now)


def _compute(requests: ResourceList, limits: ResourceList) -> ResourceList:
    found = {"pods": ONE}
    for name in _COMPUTE:
        if name in requests:
            found[name] = found[f"requests.{name}"] = requests[name]
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if is_huge_page(name):
            found[name] = found[f"requests.{name}"] = amount
        elif is_extended(name) or name.startswith(_IMPLICIT):
            found[f"requests.{name}"] = amount
    return found


def _is_huge_quota(name: str) -> bool:
    return is_huge_page(name) or name.startswith("requests.hugepages-")


def _is_extended_quota(name: str) -> bool:
    return name.startswith("requests.") and (not is_native(name) or name.startswith(f"requests.{_IMPLICIT}"))


def _has_deadline(pod: Object) -> bool:
    seconds = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return seconds is not None and seconds >= 0


def _is_best_effort(pod: Object) -> bool:
    kind = (pod.get("status") or {}).get("qosClass") or quality_of_service(pod.get("spec") or {})
    return kind == "BestEffort"


def _reaches_other_namespaces(pod: Object) -> bool:
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    terms: list[Object] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms += rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        weighted = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [item.get("podAffinityTerm") or {} for item in weighted]
    return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms)


_POD_SCOPES: dict[str, Callable[[Object], bool]] = {
    "Terminating": _has_deadline,
    "NotTerminating": lambda pod: not _has_deadline(pod),
    "BestEffort": _is_best_effort,
    "NotBestEffort": lambda pod: not _is_best_effort(pod),
    "CrossNamespacePodAffinity": _reaches_other_namespaces,
}


def _is_running(pod: Object, now: datetime) -> bool:
    """Whether a Pod uses anything: it has not ended, and its time to end is not over."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return False
    deleted, grace = (pod["metadata"].get(key) for key in ("deletionTimestamp", "deletionGracePeriodSeconds"))
    return not deleted or grace is None or now <= parse_time(deleted) + timedelta(seconds=grace)


def _got(pod: Object) -> list[Any]:
    status = pod.get("status") or {}
    return [
        (item.get("name"), item.get("resources"))
        for key in ("containerStatuses", "initContainerStatuses")
        for item in status.get(key) or ()
    ]


def _selects(requirement: Mapping[str, Any], values: set[str]) -> bool:
    """A requirement of a scopeSelector against the values that an object has of its scope."""
    wanted = set(requirement.get("values") or ())
    match requirement.get("operator"):
        case "Exists":
            return bool(values)
        case "DoesNotExist":
            return not values
        case "In":
            return bool(values & wanted)
        case "NotIn":
            return not values or bool(values - wanted)
    return False


class ServiceEvaluator(Evaluator):
    counts_only = False

    def handles(self, operation: str, subresource: str, new: Object, old: Object | None) -> bool:
        return not subresource

    def matching(self, names: Iterable[str]) -> set[str]:
        return set(_SERVICE_NAMES.intersection(names))

    def usage(self, obj: Object, now: datetime) -> ResourceList:
        spec = obj.get("spec") or {}
        kind, ports = spec.get("type"), spec.get("ports") or ()
        balances = kind == "LoadBalancer"
        if balances and spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]
        return {
            "count/services": ONE,
            "services": ONE,
            "services.loadbalancers": ONE if balances else ZERO,
            "services.nodeports": lists.whole(len(ports)) if balances or kind == "NodePort" else ZERO,
        }

    def frees(self, new: Object, old: Object, now: datetime) -> bool:
        return self.usage(new, now) != self.usage(old, now)


class ClaimEvaluator(Evaluator):
    """PersistentVolumeClaims: their number and their storage, also for each storage class."""

    counts_only = False

    def handles(self, operation: str, subresource: str, new: Object, old: Object | None) -> bool:
        if subresource == "status":
            return old is not None and self.frees(new, old, datetime.min)
        return not subresource

    def matching(self, names: Iterable[str]) -> set[str]:
        ends = tuple(f"{_BY_CLASS}{name}" for name in _CLAIM_NAMES)
        plain = ("count/persistentvolumeclaims", *_CLAIM_NAMES)
        return {name for name in names if name in plain or name.endswith(ends)}

    def in_scope(self, requirement: Mapping[str, Any], obj: Object) -> bool:
        return requirement["scopeName"] == "VolumeAttributesClass" and _selects(requirement, _attribute_classes(obj))

    def usage(self, obj: Object, now: datetime) -> ResourceList:
        found = {"persistentvolumeclaims": ONE, "count/persistentvolumeclaims": ONE}
        if (amount := _storage(obj)) is not None:
            found["requests.storage"] = amount
        if kind := storage_class(obj["metadata"], obj.get("spec") or {}):
            found |= {f"{kind}{_BY_CLASS}{name}": found[name] for name in _CLAIM_NAMES if name in found}
        return found

    def frees(self, new: Object, old: Object, now: datetime) -> bool:
        allocated = [(item.get("status") or {}).get("allocatedResources") for item in (new, old)]
        return allocated[0] != allocated[1] or _attribute_classes(new) != _attribute_classes(old)


def _storage(claim: Object) -> Quantity | None:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    if "storage" not in requests:
        return None
    asked = quantity.parse(requests["storage"])
    allocated = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
    most = max(asked, quantity.parse(allocated)) if allocated else asked
    return most if most.scale >= 0 else Quantity(most.rounded_up(0), 0, most.format)


def _attribute_classes(claim: Object) -> set[str]:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    names = (spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target)
    return {name for name in names if name}


class DeviceClaimEvaluator(Evaluator):
    """ResourceClaims: their number, and the devices of each class that they ask for."""

    counts_only = False

    def handles(self, operation: str, subresource: str, new: Object, old: Object | None) -> bool:
        return not subresource

    def matching(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if name in self._names or name.endswith(_DEVICES)}

    def usage(self, obj: Object, now: datetime) -> ResourceList:
        found = super().usage(obj, now)
        for request in ((obj.get("spec") or {}).get("devices") or {}).get("requests") or ():
            choices = request.get("firstAvailable") or [request.get("exactly") or {}]
            asked = lists.largest({}, *(_devices(choice) for choice in choices))
            found = lists.added(found, asked)
        return found


def _devices(request: Object) -> ResourceList:
    if not request:
        return {}
    number = _ALL_DEVICES if request.get("allocationMode") == "All" else request.get("count") or 0
    return {f"{request.get('deviceClassName') or ''}{_DEVICES}": lists.whole(number)}


_SPECIAL: dict[tuple[str, str], type[Evaluator]] = {
    ("", "pods"): PodEvaluator,
    ("", "services"): ServiceEvaluator,
    ("", "persistentvolumeclaims"): ClaimEvaluator,
    ("resource.k8s.io", "resourceclaims"): DeviceClaimEvaluator,
}


def evaluator(group: str, resource: str) -> Evaluator | None:
    """Who tells what objects of a resource count for; None for resources that no quota counts."""
    if (group, resource) in IGNORED:
        return None
    return _SPECIAL.get((group, resource), Evaluator)(group, resource)
