"""ResourceLists: amounts by resource name, and what the containers of a Pod ask for together.

Source: apiserver `pkg/quota/v1/resources.go`, component-helpers `resource/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from steersman.api.core.resources import is_huge_page
from steersman.apimachinery import quantity
from steersman.apimachinery.quantity import Quantity

Object = dict[str, Any]
ResourceList = dict[str, Quantity]
ZERO = quantity.parse("0")
ONE = quantity.parse("1")
_POD_LEVEL = ("cpu", "memory")


def whole(number: int) -> Quantity:
    return Quantity(number, 0, quantity.DECIMAL_SI)


def parsed(texts: Mapping[str, Any] | None) -> ResourceList:
    """What an object has as texts; amounts may also be JSON numbers."""
    return {name: quantity.parse(str(text)) for name, text in (texts or {}).items()}


def written(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    """The other way round, in the order of names."""
    return {name: str(amounts[name]) for name in sorted(amounts)}


def shown(amounts: Mapping[str, Quantity]) -> str:
    """As messages show a list: `cpu=1,pods=2`."""
    return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))


def added(first: Mapping[str, Quantity], second: Mapping[str, Quantity]) -> ResourceList:
    """The sums; what only one has is kept."""
    return {**first, **{name: first[name] + amount if name in first else amount for name, amount in second.items()}}


def increase(new: Mapping[str, Quantity], old: Mapping[str, Quantity]) -> ResourceList:
    """By how much each amount grew; zero for what did not."""
    grown = {name: amount - old[name] if name in old else amount for name, amount in new.items()}
    return {name: max(grown.get(name, ZERO), ZERO) for name in (*new, *old)}


def masked(amounts: Mapping[str, Quantity], names: Collection[str]) -> ResourceList:
    return {name: amount for name, amount in amounts.items() if name in names}


def largest(first: Mapping[str, Quantity], *others: Mapping[str, Quantity]) -> ResourceList:
    """The greatest amount of each resource in any of the lists."""
    found = dict(first)
    for other in others:
        for name, amount in other.items():
            if name not in found or amount > found[name]:
                found[name] = amount
    return found


def pod_requests(pod: Object) -> ResourceList:
    """What a Pod asks for: the most of its specification, of what it was allocated and of what it has got."""
    found = _in_use(pod, "requests", (_allocated, _got_requests))
    spec = pod.get("spec") or {}
    found |= _pod_level(spec, "requests")
    return added(found, parsed(spec.get("overhead")))


def pod_limits(pod: Object) -> ResourceList:
    """What a Pod is limited to; overhead counts where there is a limit."""
    found = _in_use(pod, "limits", (_got_limits,))
    spec = pod.get("spec") or {}
    found |= _pod_level(spec, "limits")
    overhead = parsed(spec.get("overhead"))
    for name in overhead.keys() & found.keys():
        if found[name].unscaled:
            found[name] += overhead[name]
    return found


def has_pod_level_resources(pod: Object) -> bool:
    """Whether the Pod itself, not only its containers, has requests or limits."""
    spec = pod.get("spec") or {}
    return bool(_pod_level(spec, "requests") or _pod_level(spec, "limits"))


def specified(pod: Object, key: str) -> ResourceList:
    """The requests or limits (`key`) of a Pod's specification alone, without overhead."""
    level = _pod_level(pod.get("spec") or {}, key)
    return _together(pod, lambda container, _: _resources(container, key)) | masked(level, _POD_LEVEL)


Part = Callable[[Object, Object], ResourceList]
"""What a container counts for, by its specification and its status ({} when there is none)."""


def _in_use(pod: Object, key: str, parts: Iterable[Callable[[bool], Part]]) -> ResourceList:
    infeasible = _cannot_be_resized(pod)
    lists = [_together(pod, part(infeasible)) for part in parts]
    if not infeasible:
        lists.append(_together(pod, lambda container, _: _resources(container, key)))
    return largest({}, *lists)


def _allocated(infeasible: bool) -> Part:
    def part(container: Object, status: Object) -> ResourceList:
        if status.get("allocatedResources") is not None:
            return parsed(status["allocatedResources"])
        return {} if infeasible else _resources(container, "requests")

    return part


def _got_requests(infeasible: bool) -> Part:
    def part(container: Object, status: Object) -> ResourceList:
        got = (status.get("resources") or {}).get("requests")
        return parsed(got) if got is not None else _allocated(infeasible)(container, status)

    return part


def _got_limits(infeasible: bool) -> Part:
    def part(container: Object, status: Object) -> ResourceList:
        got = (status.get("resources") or {}).get("limits")
        if got is not None:
            return parsed(got)
        return {} if infeasible else _resources(container, "limits")

    return part


def _cannot_be_resized(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    pending = next((item for item in conditions if item.get("type") == "PodResizePending"), None)
    return pending is not None and pending.get("reason") == "Infeasible"


def _together(pod: Object, part: Part) -> ResourceList:
    """All containers: those that run together are added up; init containers run before them, one after the other."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    statuses = {
        item.get("name"): item
        for key in ("initContainerStatuses", "containerStatuses")
        for item in status.get(key) or ()
    }
    total: ResourceList = {}
    for container in spec.get("containers") or ():
        total = added(total, part(container, statuses.get(container.get("name"), {})))
    sidecars: ResourceList = {}
    starting: ResourceList = {}
    for container in spec.get("initContainers") or ():
        own = part(container, statuses.get(container.get("name"), {}))
        if container.get("restartPolicy") == "Always":
            total, sidecars = added(total, own), added(sidecars, own)
            starting = largest(starting, sidecars)
        else:
            starting = largest(starting, added(own, sidecars))
    return largest(total, starting)


def _resources(container: Object, key: str) -> ResourceList:
    return parsed((container.get("resources") or {}).get(key))


def _pod_level(spec: Object, key: str) -> ResourceList:
    resources = _resources(spec, key)
    return {name: amount for name, amount in resources.items() if name in _POD_LEVEL or is_huge_page(name)}
