"""What LimitRanges give to containers, and what they ask of Pods and PersistentVolumeClaims.

Source: kubernetes `plugin/pkg/admission/limitranger/admission.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steersman.api.core import resource_lists as lists
from steersman.api.core.resource_lists import ZERO, ResourceList
from steersman.apimachinery.quantity import Quantity

Object = dict[str, Any]
ANNOTATION = "kubernetes.io/limit-ranger"
_MOST_IN_THOUSANDTHS = ((1 << 63) - 1) // 1000


def complete(pod: Object, limit_range: Object) -> None:
    """Give the containers what they do not say, and tell so in an annotation. The Pod's top level is the caller's."""
    requests, limits = _container_defaults(limit_range)
    spec, told = dict(pod.get("spec") or {}), []
    for key, kind in (("containers", "container"), ("initContainers", "init container")):
        if not spec.get(key):
            continue
        completed = []
        for container in spec[key]:
            resources = dict(container.get("resources") or {})
            for part, defaults, word in (("requests", requests, "request"), ("limits", limits, "limit")):
                given = resources.get(part) or {}
                added = {name: str(amount) for name, amount in defaults.items() if name not in given}
                if added:
                    resources[part] = {**given, **added}
                    told.append(f"{', '.join(sorted(added))} {word} for {kind} {container.get('name') or ''}")
            completed.append({**container, "resources": resources})
        spec[key] = completed
    if told:
        pod["spec"] = spec
        text = f"LimitRanger plugin set: {'; '.join(told)}"
        pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), ANNOTATION: text}


def _container_defaults(limit_range: Object) -> tuple[ResourceList, ResourceList]:
    requests: ResourceList = {}
    limits: ResourceList = {}
    for item in _items(limit_range, "Container"):
        requests |= lists.parsed(item.get("defaultRequest"))
        limits |= lists.parsed(item.get("default"))
    return requests, limits


def pod_problems(pod: Object, limit_range: Object) -> list[str]:
    """What a Pod has too little or too much of, in upstream's words."""
    spec, problems = pod.get("spec") or {}, []
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                resources = container.get("resources") or {}
                requests, limits = (lists.parsed(resources.get(key)) for key in ("requests", "limits"))
                problems += _problems(item, requests, limits)
        elif item.get("type") == "Pod":
            problems += _problems(item, lists.specified(pod, "requests"), lists.specified(pod, "limits"))
    return problems


def claim_problems(claim: Object, limit_range: Object) -> list[str]:
    """The same for a PersistentVolumeClaim, which has only requests."""
    requests = lists.parsed(((claim.get("spec") or {}).get("resources") or {}).get("requests"))
    problems = []
    for item in _items(limit_range, "PersistentVolumeClaim"):
        problems += _below(item, requests, {})
        problems += _above(item, requests, None)
    return problems


def _items(limit_range: Object, kind: str) -> Iterator[Object]:
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == kind:
            yield item


def _problems(item: Object, requests: ResourceList, limits: ResourceList) -> list[str]:
    return [*_below(item, requests, limits), *_above(item, requests, limits), *_ratios(item, requests, limits)]


def _below(item: Object, requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> list[str]:
    problems = []
    for name, least in sorted(lists.parsed(item.get("min")).items()):
        text = f"minimum {name} usage per {item['type']} is {least}"
        request, limit, enforced = _comparable(requests.get(name), limits.get(name), least)
        if name not in requests:
            problems.append(f"{text}.  No request is specified")
        elif request < enforced:
            problems.append(f"{text}, but request is {requests[name]}")
        elif name in limits and limit < enforced:
            problems.append(f"{text}, but limit is {limits[name]}")
    return problems


def _above(item: Object, requests: Mapping[str, Quantity], limits: Mapping[str, Quantity] | None) -> list[str]:
    """`limits` None: only requests count, and have to be there."""
    problems = []
    word, counted = ("limit", limits) if limits is not None else ("request", requests)
    for name, most in sorted(lists.parsed(item.get("max")).items()):
        text = f"maximum {name} usage per {item['type']} is {most}"
        request, amount, enforced = _comparable(requests.get(name), counted.get(name), most)
        if name not in counted:
            problems.append(f"{text}.  No {word} is specified")
        elif amount > enforced:
            problems.append(f"{text}, but {word} is {counted[name]}")
        elif name in requests and request > enforced:
            problems.append(f"{text}, but request is {requests[name]}")
    return problems


def _ratios(item: Object, requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> list[str]:
    problems = []
    for name, most in sorted(lists.parsed(item.get("maxLimitRequestRatio")).items()):
        text = f"{name} max limit to request ratio per {item['type']} is {most}"
        request, limit, _ = _comparable(requests.get(name), limits.get(name), most)
        if not request:
            problems.append(f"{text}, but no request is specified or request is 0")
        elif not limit:
            problems.append(f"{text}, but no limit is specified or limit is 0")
        elif limit / request * 1000 > most.rounded_up(-3):
            problems.append(f"{text}, but provided ratio is {limit / request:f}")
    return problems


def _comparable(request: Quantity | None, limit: Quantity | None, enforced: Quantity) -> tuple[int, int, int]:
    """The amounts in thousandths, rounded up, or in whole ones when one is too large for that."""
    amounts = (request or ZERO, limit or ZERO, enforced)
    scale = -3 if all(amount.rounded_up(0) <= _MOST_IN_THOUSANDTHS for amount in amounts) else 0
    request_, limit_, enforced_ = (amount.rounded_up(scale) for amount in amounts)
    return request_, limit_, enforced_
