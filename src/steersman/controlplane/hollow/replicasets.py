"""ReplicaSets keep as many Pods as they say.

Source: kubernetes `pkg/controller/replicaset/{replica_set,replica_set_utils}.go`.
"""

from __future__ import annotations

from steersman.apimachinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.controlplane.hollow.base import (
    HollowController,
    Object,
    is_finished,
    is_ready,
    pod_from,
    with_conditions,
)

FAILURE = "ReplicaFailure"


class ReplicaSets(HollowController):
    name = "hollow-replicasets"
    group, resource, kind = "apps", "replicasets", "ReplicaSet"
    controls = (("", "pods"),)

    async def sync(self, obj: Object) -> None:
        refusal: ApiError | None = None
        if "deletionTimestamp" not in obj["metadata"]:
            try:
                await self._manage(obj)
            except (NotFound, AlreadyExists, Conflict):
                raise
            except ApiError as error:
                refusal = error
        await self._report(obj, refusal)
        if refusal is not None:
            raise refusal

    async def _manage(self, obj: Object) -> None:
        """Make what is missing, take away what is too much."""
        spec, name = obj["spec"], obj["metadata"]["name"]
        pods = [pod for pod in self.pods_of(obj) if not is_finished(pod)]
        missing = spec["replicas"] - len(pods)
        for _ in range(missing):
            await self.create("", "pods", pod_from(obj, spec["template"], {"generateName": f"{name}-"}))
        for pod in sorted(pods, key=is_ready)[: max(-missing, 0)]:
            await self.delete("", "pods", pod)

    async def _report(self, obj: Object, refusal: ApiError | None) -> None:
        labels = (obj["spec"]["template"].get("metadata") or {}).get("labels") or {}
        pods = [pod for pod in self.pods_of(obj) if not is_finished(pod)]
        ready = sum(map(is_ready, pods))
        labelled = sum(labels.items() <= (pod["metadata"].get("labels") or {}).items() for pod in pods)
        failed = [] if refusal is None else [_failure(refusal)]
        conditions = with_conditions(obj, *failed, now=self.now())
        if refusal is None:
            conditions = [each for each in conditions if each["type"] != FAILURE]
        await self.set_status(
            obj,
            {
                "replicas": len(pods),
                "fullyLabeledReplicas": labelled or None,
                "readyReplicas": ready or None,
                "availableReplicas": ready or None,
                "observedGeneration": obj["metadata"]["generation"],
                "conditions": conditions or None,
            },
        )


def _failure(refusal: ApiError) -> Object:
    return {"type": FAILURE, "status": "True", "reason": "FailedCreate", "message": refusal.message}
