"""StatefulSets: Pods with numbers, one after another, each with its claims.

Source: kubernetes `pkg/controller/statefulset/{stateful_set_control,stateful_set_utils}.go`.
"""

from __future__ import annotations

from contextlib import suppress

from steersman.apimachinery.errors import AlreadyExists
from steersman.controlplane.hollow.base import HollowController, Object, is_ready, pod_from, short_hash

REVISION = "controller-revision-hash"
POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


class StatefulSets(HollowController):
    name = "hollow-statefulsets"
    group, resource, kind = "apps", "statefulsets", "StatefulSet"
    controls = (("", "pods"),)

    async def sync(self, obj: Object) -> None:
        pods = {pod["metadata"]["name"]: pod for pod in self.controlled(obj, "", "pods")}
        revision = f"{obj['metadata']['name']}-{short_hash(obj['spec']['template'])}"
        if "deletionTimestamp" not in obj["metadata"]:
            await self._step(obj, pods, revision)
        await self._report(obj, revision)

    async def _step(self, obj: Object, pods: dict[str, Object], revision: str) -> None:
        """Make, wait for, or take away Pods, as many at a time as the policy allows."""
        spec = obj["spec"]
        at_once = spec.get("podManagementPolicy") == "Parallel"
        names = _names(obj)
        for index, name in names.items():
            pod = pods.get(name)
            if pod is None:
                await self._create(obj, index, name, revision)
            if not at_once and (pod is None or "deletionTimestamp" in pod["metadata"] or not is_ready(pod)):
                return
        surplus = sorted((pods[name] for name in pods if name not in names.values()), key=_index, reverse=True)
        for pod in surplus:
            if "deletionTimestamp" not in pod["metadata"]:
                await self.delete("", "pods", pod)
            if not at_once:
                return
        await self._update(obj, [pods[name] for name in names.values() if name in pods], revision)

    async def _update(self, obj: Object, pods: list[Object], revision: str) -> None:
        """Take the last Pod of an old template away; it comes back with the new one."""
        strategy = obj["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        first = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        for pod in sorted(pods, key=_index, reverse=True):
            if _index(pod) < first:
                return
            if pod["metadata"]["labels"].get(REVISION) != revision and "deletionTimestamp" not in pod["metadata"]:
                await self.delete("", "pods", pod)
                return

    async def _create(self, obj: Object, index: int, name: str, revision: str) -> None:
        spec, namespace = obj["spec"], obj["metadata"]["namespace"]
        template = spec["template"]
        volumes = []
        for claim in spec.get("volumeClaimTemplates") or ():
            claim_name = f"{claim['metadata']['name']}-{name}"
            labels = (spec["selector"].get("matchLabels") or {}) | (claim["metadata"].get("labels") or {})
            meta = {"name": claim_name, "namespace": namespace, "labels": labels}
            body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim["spec"]}
            with suppress(AlreadyExists):  # a claim outlives its Pod
                await self.create("", "persistentvolumeclaims", body)
            volumes.append({"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim_name}})
        pod = pod_from(obj, template, {"name": name}, {REVISION: revision, POD_NAME: name, POD_INDEX: str(index)})
        kept = [each for each in pod["spec"].get("volumes") or () if each["name"] not in {v["name"] for v in volumes}]
        pod["spec"] = {
            **pod["spec"],
            "hostname": name,
            "subdomain": spec.get("serviceName") or "",
            **({"volumes": [*kept, *volumes]} if kept or volumes else {}),
        }
        await self.create("", "pods", pod)

    async def _report(self, obj: Object, revision: str) -> None:
        status = obj.get("status") or {}
        pods = self.pods_of(obj)
        updated = [pod for pod in pods if pod["metadata"]["labels"].get(REVISION) == revision]
        ready = sum(map(is_ready, pods))
        whole = len(updated) == len(pods) == obj["spec"]["replicas"] == ready
        current = revision if whole else status.get("currentRevision") or revision
        await self.set_status(
            obj,
            {
                "observedGeneration": obj["metadata"]["generation"],
                "replicas": len(pods),
                "readyReplicas": ready or None,
                "availableReplicas": ready,
                "updatedReplicas": len(updated) or None,
                "currentReplicas": len(updated if current == revision else pods) or None,
                "currentRevision": current,
                "updateRevision": revision,
            },
        )


def _names(obj: Object) -> dict[int, str]:
    spec = obj["spec"]
    first = (spec.get("ordinals") or {}).get("start") or 0
    return {index: f"{obj['metadata']['name']}-{index}" for index in range(first, first + spec["replicas"])}


def _index(pod: Object) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])
