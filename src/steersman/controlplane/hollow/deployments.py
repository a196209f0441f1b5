"""Deployments: a ReplicaSet for each template, and the way from one to the next.

Source: kubernetes `pkg/controller/deployment/{sync,rolling,recreate,progress}.go`, `.../util/deployment_util.go`.
"""

from __future__ import annotations

import math

from steersman.controlplane.hollow.base import (
    HollowController,
    Object,
    condition,
    reference_to,
    short_hash,
    with_conditions,
)
from steersman.controlplane.hollow.replicasets import FAILURE

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_NOT_COPIED = frozenset({REVISION, "kubectl.kubernetes.io/last-applied-configuration"})


class Deployments(HollowController):
    name = "hollow-deployments"
    group, resource, kind = "apps", "deployments", "Deployment"
    controls = (("apps", "replicasets"),)

    async def sync(self, obj: Object) -> None:
        if "deletionTimestamp" in obj["metadata"]:
            return
        sets = self.controlled(obj, "apps", "replicasets")
        template_hash = short_hash(obj["spec"]["template"])
        new = next((each for each in sets if each["metadata"]["labels"].get(HASH) == template_hash), None)
        if new is None:
            if not obj["spec"].get("paused"):
                await self._create(obj, template_hash, sets)
            else:
                await self._report(obj, None, sets)
            return
        old = [each for each in sets if each is not new]
        if await self._number(obj, new, old):
            return
        if not await self._scale(obj, new, old):
            await self._clean_up(obj, old)
        await self._report(obj, new, sets)

    async def _create(self, obj: Object, template_hash: str, sets: list[Object]) -> None:
        spec, meta = obj["spec"], obj["metadata"]
        template = spec["template"]
        labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: template_hash}
        matched = {**(spec["selector"].get("matchLabels") or {}), HASH: template_hash}
        annotations = {key: item for key, item in (meta.get("annotations") or {}).items() if key not in _NOT_COPIED}
        await self.create(
            "apps",
            "replicasets",
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": f"{meta['name']}-{template_hash}",
                    "namespace": meta["namespace"],
                    "labels": labels,
                    "annotations": {**annotations, REVISION: str(_revision(sets) + 1)},
                    "ownerReferences": [reference_to(obj)],
                },
                "spec": {
                    "replicas": 0,
                    "selector": {**spec["selector"], "matchLabels": matched},
                    "minReadySeconds": spec.get("minReadySeconds") or 0,
                    "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
                },
            },
        )

    async def _number(self, obj: Object, new: Object, old: list[Object]) -> bool:
        """Let the newest set, and the Deployment, carry the highest revision; whether something was written."""
        number = max(_revision([new]), _revision(old) + 1)
        annotated = {"metadata": {"annotations": {REVISION: str(number)}}}
        written = False
        for resource, each in (("replicasets", new), ("deployments", obj)):
            if (each["metadata"].get("annotations") or {}).get(REVISION) != str(number):
                await self.patch("apps", resource, each, annotated)
                written = True
        return written

    async def _scale(self, obj: Object, new: Object, old: list[Object]) -> bool:
        """One step of the way; whether there was one to take."""
        spec = obj["spec"]
        wanted, strategy = spec["replicas"], spec.get("strategy") or {}
        if spec.get("paused"):
            return False
        if strategy.get("type") == "Recreate":
            for each in old:
                if each["spec"]["replicas"]:
                    return await self._resize(each, 0)
            if any((each.get("status") or {}).get("replicas") for each in old):
                return True
            return await self._resize(new, wanted)
        surge, unavailable = _room(strategy.get("rollingUpdate") or {}, wanted)
        total = sum(each["spec"]["replicas"] for each in (new, *old))
        have = new["spec"]["replicas"]
        if have > wanted:
            return await self._resize(new, wanted)
        if have < wanted and total < wanted + surge:
            return await self._resize(new, min(wanted, have + wanted + surge - total))
        ready = sum((each.get("status") or {}).get("availableReplicas", 0) for each in (new, *old))
        spare = ready - (wanted - unavailable)
        for each in sorted(old, key=lambda item: item["metadata"]["creationTimestamp"]):
            unready = each["spec"]["replicas"] - (each.get("status") or {}).get("availableReplicas", 0)
            fewer = min(each["spec"]["replicas"], max(spare, 0) + max(unready, 0))
            if fewer > 0:
                return await self._resize(each, each["spec"]["replicas"] - fewer)
        return any(each["spec"]["replicas"] for each in old)

    async def _resize(self, replica_set: Object, replicas: int) -> bool:
        if replica_set["spec"]["replicas"] == replicas:
            return False
        await self.patch("apps", "replicasets", replica_set, {"spec": {"replicas": replicas}})
        return True

    async def _clean_up(self, obj: Object, old: list[Object]) -> None:
        """Old sets are kept for rollbacks, so many of them."""
        limit = obj["spec"].get("revisionHistoryLimit", 10)
        done = [each for each in old if not each["spec"]["replicas"] and not (each.get("status") or {}).get("replicas")]
        for each in sorted(done, key=lambda item: _revision([item]))[: max(len(done) - limit, 0)]:
            await self.delete("apps", "replicasets", each)

    async def _report(self, obj: Object, new: Object | None, sets: list[Object]) -> None:
        spec, status = obj["spec"], obj.get("status") or {}

        def count(field: str, of: list[Object]) -> int:
            return sum((each.get("status") or {}).get(field, 0) for each in of)

        wanted = spec["replicas"]
        unavailable = _room((spec.get("strategy") or {}).get("rollingUpdate") or {}, wanted)[1]
        total, available = count("replicas", sets), count("availableReplicas", sets)
        updated = count("replicas", [new]) if new is not None else 0
        conditions = [_availability(available >= wanted - unavailable)]
        if new is not None:
            complete = updated == wanted == total == available
            conditions.append(_progress(obj, new, complete=complete))
        failures = _failures(new, sets)
        shown = with_conditions(obj, *conditions, *failures, now=self.now(), updates=True)
        await self.set_status(
            obj,
            {
                "observedGeneration": obj["metadata"]["generation"],
                "replicas": total or None,
                "updatedReplicas": updated or None,
                "readyReplicas": count("readyReplicas", sets) or None,
                "availableReplicas": available or None,
                "unavailableReplicas": max(max(total, wanted) - available, 0) or None,
                "conditions": [each for each in shown if each["type"] != FAILURE or failures],
                "collisionCount": status.get("collisionCount"),
            },
        )


def _revision(sets: list[Object]) -> int:
    numbers = [(each["metadata"].get("annotations") or {}).get(REVISION, "") for each in sets]
    return max((int(each) for each in numbers if each.isdigit()), default=0)


def _room(rolling: Object, replicas: int) -> tuple[int, int]:
    """How many Pods more, and how many ready ones less, there may be during an update."""
    surge = _share(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _share(value: int | str, of: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    part = of * int(value.rstrip("%")) / 100
    return math.ceil(part) if up else math.floor(part)


def _availability(enough: bool) -> Object:
    if enough:
        reason, message = "MinimumReplicasAvailable", "Deployment has minimum availability."
    else:
        reason, message = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    return {"type": "Available", "status": str(enough), "reason": reason, "message": message}


def _failures(new: Object | None, sets: list[Object]) -> list[Object]:
    """Why Pods could not be made: what the newest set says, or any other."""
    for each in ([new] if new is not None else []) + sets:
        if found := condition(each, FAILURE):
            return [{key: found[key] for key in ("type", "status", "reason", "message")}]
    return []


def _progress(obj: Object, new: Object, *, complete: bool) -> Object:
    name = new["metadata"]["name"]
    done = f'ReplicaSet "{name}" has successfully progressed.'
    if complete or condition(obj, "Progressing").get("message") == done:
        reason, message = "NewReplicaSetAvailable", done
    else:
        reason, message = "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'
    return {"type": "Progressing", "status": "True", "reason": reason, "message": message}
