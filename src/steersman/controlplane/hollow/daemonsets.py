"""DaemonSets: one Pod on the only node.

Source: kubernetes `pkg/controller/daemon/{daemon_controller,update}.go`.
"""

from __future__ import annotations

from steersman.controlplane.hollow.base import HollowController, Object, is_ready, pod_from, short_hash

REVISION = "controller-revision-hash"


class DaemonSets(HollowController):
    name = "hollow-daemonsets"
    group, resource, kind = "apps", "daemonsets", "DaemonSet"
    controls = (("", "pods"),)

    async def sync(self, obj: Object) -> None:
        meta, spec = obj["metadata"], obj["spec"]
        revision = short_hash(spec["template"])
        pods = self.pods_of(obj)
        if "deletionTimestamp" not in meta:
            if not self.controlled(obj, "", "pods"):
                generated = {"generateName": f"{meta['name']}-"}
                await self.create("", "pods", pod_from(obj, spec["template"], generated, {REVISION: revision}))
            rolls = (spec.get("updateStrategy") or {}).get("type") != "OnDelete"
            for pod in pods:
                if rolls and pod["metadata"]["labels"].get(REVISION) != revision:
                    await self.delete("", "pods", pod)
        pods = self.pods_of(obj)
        ready = sum(map(is_ready, pods))
        updated = sum(pod["metadata"]["labels"].get(REVISION) == revision for pod in pods)
        await self.set_status(
            obj,
            {
                "observedGeneration": meta["generation"],
                "desiredNumberScheduled": 1,
                "currentNumberScheduled": min(len(pods), 1),
                "updatedNumberScheduled": updated or None,
                "numberReady": ready,
                "numberAvailable": ready or None,
                "numberUnavailable": max(1 - ready, 0) or None,
                "numberMisscheduled": 0,
            },
        )
