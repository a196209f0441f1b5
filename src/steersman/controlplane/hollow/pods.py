"""Pods that report what nobody does: placed, started, ready, ended, gone.

Source: kubernetes `pkg/kubelet/status`, `pkg/kubelet/kubelet_pods.go` (what a kubelet writes).
"""

from __future__ import annotations

import ipaddress
from typing import Any

from steersman.apimachinery.errors import AlreadyExists
from steersman.controlplane.hollow.base import BEHAVIOUR, NODE, HollowController, Object, controller_of, with_conditions

_ADDRESSES = ipaddress.ip_network("10.244.0.0/16")
_PLACED = {"type": "PodScheduled", "status": "True"}
_STARTED = ("PodReadyToStartContainers", "Initialized")
_RUNNING = ("Ready", "ContainersReady")


class Pods(HollowController):
    name = "hollow-pods"
    group, resource, kind = "", "pods", "Pod"

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._next = 1

    async def prepare(self) -> None:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}},
        }
        try:
            await self.create("", "nodes", node)
        except AlreadyExists:
            return
        scope = self.scope_of("", "nodes")
        entry = scope.cache.get(NODE)
        assert entry is not None
        made = scope.view.tree(entry)
        ready = {"type": "Ready", "status": "True", "reason": "HollowNode", "message": "nothing runs here"}
        await self.patch("", "nodes", made, {"spec": {"taints": None}})
        entry = scope.cache.get(NODE)
        assert entry is not None
        made = scope.view.tree(entry)
        resources = {"cpu": "1000", "memory": "1000Gi", "pods": "10000"}
        status = {"conditions": with_conditions(made, ready, now=self.now()), "capacity": resources}
        await self.patch("", "nodes", made, {"status": {**status, "allocatable": resources}}, "status")

    async def sync(self, obj: Object) -> None:
        meta = obj["metadata"]
        placed = (obj.get("spec") or {}).get("nodeName")
        if "deletionTimestamp" in meta:
            if placed in (None, NODE) and not meta.get("finalizers"):
                await self.delete("", "pods", obj, gracePeriodSeconds=0)
            return
        behaviour = (meta.get("annotations") or {}).get(BEHAVIOUR) or _usual(obj)
        if behaviour == "Pending" or (placed is None and (obj["spec"].get("schedulingGates") or ())):
            return
        if placed is None:
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, "target": target}
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding"
            await self._client.rest.json("POST", path, body=binding)
        elif placed == NODE and (obj.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            await self.set_status(obj, self._status(obj, behaviour))

    def _status(self, pod: Object, behaviour: str) -> Object:
        now, status = self.now(), pod.get("status") or {}
        running = behaviour not in ("Succeeded", "Failed")
        ready = str(behaviour == "Running")
        wanted = [_PLACED, *({"type": each, "status": "True"} for each in _STARTED)]
        gone = {} if running else {"reason": "PodCompleted" if behaviour == "Succeeded" else "PodFailed"}
        wanted += [{"type": each, "status": ready, **gone} for each in _RUNNING]
        containers = [self._container(each, status, behaviour) for each in pod["spec"].get("containers") or ()]
        address = status.get("podIP") or self._address()
        return {
            "phase": "Running" if running else behaviour,
            "conditions": with_conditions(pod, *wanted, now=now),
            "containerStatuses": containers,
            "startTime": status.get("startTime") or now,
            "hostIP": "127.0.0.1",
            "hostIPs": [{"ip": "127.0.0.1"}],
            "podIP": address,
            "podIPs": [{"ip": address}],
        }

    def _container(self, container: Object, status: Object, behaviour: str) -> Object:
        known = {each["name"]: each for each in status.get("containerStatuses") or ()}.get(container["name"], {})
        now = self.now()
        state: Object
        if behaviour in ("Running", "NotReady"):
            started = ((known.get("state") or {}).get("running") or {}).get("startedAt") or now
            state = {"running": {"startedAt": started}}
        else:
            code, reason = (0, "Completed") if behaviour == "Succeeded" else (1, "Error")
            state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}}
        return {
            "name": container["name"],
            "image": container.get("image") or "",
            "imageID": "",
            "containerID": f"hollow://{container['name']}",
            "ready": behaviour == "Running",
            "started": behaviour == "Running",
            "restartCount": 0,
            "state": state,
            "lastState": {},
        }

    def _address(self) -> str:
        self._next = self._next % (_ADDRESSES.num_addresses - 2) + 1
        return str(_ADDRESSES[self._next])


def _usual(pod: Object) -> str:
    """What a Pod does that says nothing: one of a Job ends well, any other runs."""
    owner = controller_of(pod)
    return "Succeeded" if owner is not None and owner["kind"] == "Job" else "Running"
