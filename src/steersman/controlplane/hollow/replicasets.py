"""ReplicaSets keep as many Pods as they say.

Source: kubernetes `pkg/controller/replicaset/{replica_set,replica_set_utils}.go`.
"""

from __future__ import annotations

from steersman.controlplane.hollow.base import HollowController, Object, is_finished, is_ready, pod_from


class ReplicaSets(HollowController):
    name = "hollow-replicasets"
    group, resource, kind = "apps", "replicasets", "ReplicaSet"
    controls = (("", "pods"),)

    async def sync(self, obj: Object) -> None:
        meta, spec = obj["metadata"], obj["spec"]
        pods = [pod for pod in self.pods_of(obj) if not is_finished(pod)]
        if "deletionTimestamp" not in meta:
            missing = spec["replicas"] - len(pods)
            for _ in range(missing):
                await self.create("", "pods", pod_from(obj, spec["template"], {"generateName": f"{meta['name']}-"}))
            for pod in sorted(pods, key=is_ready)[: max(-missing, 0)]:
                await self.delete("", "pods", pod)
        labels = (spec["template"].get("metadata") or {}).get("labels") or {}
        pods = [pod for pod in self.pods_of(obj) if not is_finished(pod)]
        ready = sum(map(is_ready, pods))
        labelled = sum(labels.items() <= (pod["metadata"].get("labels") or {}).items() for pod in pods)
        await self.set_status(
            obj,
            {
                "replicas": len(pods),
                "fullyLabeledReplicas": labelled or None,
                "readyReplicas": ready or None,
                "availableReplicas": ready or None,
                "observedGeneration": meta["generation"],
            },
        )
