"""PodDisruptionBudgets tell how many of their Pods are healthy, and how many may be evicted.

Source: kubernetes `pkg/controller/disruption/disruption.go`.
"""

from __future__ import annotations

import math

from steersman.apiserver.watchcache import Change
from steersman.controlplane.hollow.base import (
    HollowController,
    Object,
    age,
    controller_of,
    is_finished,
    is_ready,
    selects,
    with_conditions,
)

_DISRUPTED_SECONDS = 120.0
_SCALED = {"ReplicaSet": "replicasets", "Deployment": "deployments", "StatefulSet": "statefulsets"}


class DisruptionBudgets(HollowController):
    name = "hollow-disruption-budgets"
    group, resource, kind = "policy", "poddisruptionbudgets", "PodDisruptionBudget"
    controls = (("", "pods"), *(("apps", resource) for resource in _SCALED.values()))

    def _on_controlled(self, change: Change) -> None:
        for key in self.scope.cache.select(change.last.key.rpartition("/")[0]):
            self._queue.add(key)

    async def sync(self, obj: Object) -> None:
        spec, status = obj["spec"], obj.get("status") or {}
        pods = [pod for pod in self._pods(obj) if not is_finished(pod)]
        expected, desired, problem = self._wanted(spec, pods)
        disrupted = {
            name: time
            for name, time in (status.get("disruptedPods") or {}).items()
            if age(time) < _DISRUPTED_SECONDS
            and any(pod["metadata"]["name"] == name and "deletionTimestamp" not in pod["metadata"] for pod in pods)
        }
        counted = (pod for pod in pods if pod["metadata"]["name"] not in disrupted)
        healthy = sum(is_ready(pod) and "deletionTimestamp" not in pod["metadata"] for pod in counted)
        allowed = max(healthy - desired, 0) if expected > 0 and not problem else 0
        gone = dict.fromkeys((status.get("disruptedPods") or {}).keys() - disrupted.keys())
        shown = _condition(allowed, problem, obj["metadata"]["generation"])
        await self.set_status(
            obj,
            {
                "currentHealthy": healthy,
                "desiredHealthy": desired,
                "expectedPods": expected,
                "disruptionsAllowed": allowed,
                "disruptedPods": {**disrupted, **gone} if disrupted else None,
                "observedGeneration": obj["metadata"]["generation"],
                "conditions": with_conditions(obj, shown, now=self.now()),
            },
        )

    def _pods(self, obj: Object) -> list[Object]:
        scope = self.scope_of("", "pods")
        found = [scope.view.tree(scope.cache.entries[key]) for key in scope.cache.select(obj["metadata"]["namespace"])]
        return [pod for pod in found if selects(obj["spec"].get("selector"), pod["metadata"].get("labels"))]

    def _wanted(self, spec: Object, pods: list[Object]) -> tuple[int, int, str]:
        """How many Pods there should be, how many of them healthy, and why that cannot be told."""
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if isinstance(least, int):
            return len(pods), least, ""
        scales: dict[str, int] = {}
        for pod in pods:
            owner = self._scaled_owner(pod)
            if owner is None and most is not None:
                return 0, 0, f'found no controller ref for pod "{pod["metadata"]["name"]}"'
            if owner is not None:
                scales[owner["metadata"]["uid"]] = owner["spec"].get("replicas") or 0
        expected = sum(scales.values())
        if most is not None:
            return expected, max(expected - _share(most, expected), 0), ""
        return expected, _share(least, expected) if least is not None else 0, ""

    def _scaled_owner(self, obj: Object) -> Object | None:
        """What says how many Pods there are: a Deployment, above its ReplicaSets, or what controls the Pod."""
        reference = controller_of(obj)
        if reference is None or reference["kind"] not in _SCALED:
            return None
        scope = self.scope_of("apps", _SCALED[reference["kind"]])
        entry = scope.cache.get(f"{obj['metadata']['namespace']}/{reference['name']}")
        if entry is None:
            return None
        owner = scope.view.tree(entry)
        return self._scaled_owner(owner) or owner


def _share(value: int | str, of: int) -> int:
    return value if isinstance(value, int) else math.ceil(of * int(value.rstrip("%")) / 100)


def _condition(allowed: int, problem: str, generation: int) -> Object:
    reason = "SyncFailed" if problem else "SufficientPods" if allowed else "InsufficientPods"
    return {
        "type": "DisruptionAllowed",
        "status": str(allowed > 0),
        "reason": reason,
        "message": problem,
        "observedGeneration": generation,
    }
