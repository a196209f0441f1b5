"""Evictions: which Pods a budget guards, and what one more disruption makes of it.

Source: kubernetes `pkg/registry/core/pod/storage/eviction.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from steersman.api.kinds import BuiltinKind
from steersman.api.strategy import Object
from steersman.apimachinery import selectors
from steersman.apimachinery.errors import TooManyRequests, forbidden

_MAX_DISRUPTED = 2000
_PROCESSING_SECONDS = 10
_EVICTED = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}


@cache
def eviction_kind() -> BuiltinKind:
    """The kind: it has no resource of its own, only `pods/eviction`."""
    return BuiltinKind(
        "policy", "v1", "Eviction", "evictions", "eviction", True, ("create",), type="api/policy/v1.Eviction"
    )


def guards_nothing(pod: Object) -> bool:
    """Whether a Pod serves nobody, so that no budget counts it."""
    return is_over(pod) or (pod.get("status") or {}).get("phase") == "Pending"


def is_over(pod: Object) -> bool:
    """Whether a Pod has ended or is ending."""
    return "deletionTimestamp" in pod["metadata"] or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def budgets_of(pod: Object, budgets: Iterable[Object]) -> list[Object]:
    """Those of a namespace's budgets that select a Pod."""
    labels = pod["metadata"].get("labels")
    return [one for one in budgets if selectors.from_object((one.get("spec") or {}).get("selector")).matches(labels)]


def may_go_unready(pod: Object, budget: Object) -> bool:
    """Whether a Pod that is not ready may go without asking its budget."""
    if any(item.get("type") == "Ready" and item.get("status") == "True" for item in _conditions(pod)):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy") or 0
    return desired > 0 and (status.get("currentHealthy") or 0) >= desired


def disrupt(budget: Object, pod_name: str, now: str) -> Object:
    """The budget after one more disruption, which its status allows. Raises TooManyRequests, Forbidden."""
    meta, status = budget["metadata"], dict(budget.get("status") or {})
    name = meta["name"]
    if (status.get("observedGeneration") or 0) < (meta.get("generation") or 0):
        raise still_processed(name)
    allowed, disrupted = status.get("disruptionsAllowed") or 0, status.get("disruptedPods") or {}
    if allowed < 0:
        raise forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
    if len(disrupted) > _MAX_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("policy", "poddisruptionbudget", name, why)
    if not allowed:
        desired, current = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
        raise _refused(f"The disruption budget {name} needs {desired} healthy pods and has {current} currently")
    status |= {"disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod_name: now}}
    if allowed == 1:
        observed = {"observedGeneration": status["observedGeneration"]} if status.get("observedGeneration") else {}
        facts = {"status": "False", **observed, "reason": "InsufficientPods", "message": ""}
        status["conditions"] = _with(_conditions(budget), "DisruptionAllowed", facts, now)
    return {**budget, "metadata": dict(meta), "status": status}


def still_processed(budget: str) -> TooManyRequests:
    text = f"The disruption budget {budget} is still being processed by the server."
    return _refused(text, _PROCESSING_SECONDS)


def mark_evicted(pod: Object, now: str) -> Object:
    """The Pod with the condition that tells why it goes."""
    facts = {"status": "True", "lastProbeTime": None, **_EVICTED}
    status = {**(pod.get("status") or {}), "conditions": _with(_conditions(pod), "DisruptionTarget", facts, now)}
    return {**pod, "metadata": dict(pod["metadata"]), "status": status}


def _conditions(obj: Object) -> list[Object]:
    return (obj.get("status") or {}).get("conditions") or []


def _with(conditions: list[Object], kind: str, facts: Object, now: str) -> list[Object]:
    """The conditions with one set; its time changes with its status only."""
    fresh: Object = {"type": kind, **facts, "lastTransitionTime": now}
    for index, old in enumerate(conditions):
        if old.get("type") == kind:
            if old.get("status") == fresh["status"]:
                fresh["lastTransitionTime"] = old.get("lastTransitionTime")
            return [*conditions[:index], fresh, *conditions[index + 1 :]]
    return [*conditions, fresh]


def _refused(cause: str, seconds: int = 0) -> TooManyRequests:
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    headers = [("Retry-After", str(seconds))] if seconds else []
    if seconds:
        details["retryAfterSeconds"] = seconds
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    return TooManyRequests(text, details=details, headers=headers)
