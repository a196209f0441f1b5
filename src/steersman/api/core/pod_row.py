"""The row of a Pod's table: its state in the words of kubectl.

Source: kubernetes `pkg/printers/internalversion/printers.go` (printPod).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman._util.dataclass import dataclass
from steersman.api.tables import age

Object = dict[str, Any]


@dataclass(slots=True)
class _State:
    """What has been seen of the containers so far."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""
    initializing: bool = False

    def count(self, status: Object) -> None:
        self.restarts += status.get("restartCount") or 0
        ended = ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        self.last_restart = max(self.last_restart, ended)


def pod_row(pod: Object, now: datetime) -> list[Any]:
    """The cells of a Pod's row."""
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {item["name"] for item in spec.get("initContainers") or () if item.get("restartPolicy") == "Always"}
    state = _State(status.get("reason") or status.get("phase") or "")
    conditions = {item.get("type"): item for item in status.get("conditions") or ()}
    if (conditions.get("PodScheduled") or {}).get("reason") == "SchedulingGated":
        state.reason = "SchedulingGated"
    _initial(state, spec, status, sidecars)
    if not state.initializing or (conditions.get("Initialized") or {}).get("status") == "True":
        _regular(state, status, sidecars, (conditions.get("Ready") or {}).get("status") == "True")
    if meta.get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            state.reason = "Unknown"
        elif status.get("phase") not in ("Failed", "Succeeded"):
            state.reason = "Terminating"
    restarts = str(state.restarts)
    if state.restarts and state.last_restart:
        restarts = f"{restarts} ({age(state.last_restart, now)} ago)"
    total = len(spec.get("containers") or ()) + len(sidecars)
    return [
        meta.get("name") or "",
        f"{state.ready}/{total}",
        state.reason,
        restarts,
        age(meta.get("creationTimestamp"), now),
        next((item["ip"] for item in status.get("podIPs") or ()), "") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _gates(spec, conditions),
    ]


def _initial(state: _State, spec: Object, status: Object, sidecars: set[str]) -> None:
    """What the first init container that is not through says."""
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        state.count(container)
        current = container.get("state") or {}
        ended, waiting = current.get("terminated"), current.get("waiting") or {}
        if ended is not None and not ended.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            state.ready += bool(container.get("ready"))
            continue
        state.initializing = True
        if ended is not None:
            state.reason = f"Init:{_ended(ended)}"
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            state.reason = f"Init:{waiting['reason']}"
        else:
            state.reason = f"Init:{index}/{len(spec.get('initContainers') or ())}"
        return


def _regular(state: _State, status: Object, sidecars: set[str], ready: bool) -> None:
    """What the regular containers say; restarts of init containers that are through no longer count."""
    state.restarts, state.last_restart = 0, ""
    for container in status.get("initContainerStatuses") or ():
        if container.get("name") in sidecars:
            state.count(container)
    running, failed = False, ""
    for container in reversed(status.get("containerStatuses") or ()):
        state.count(container)
        current = container.get("state") or {}
        ended, waiting = current.get("terminated"), current.get("waiting") or {}
        if waiting.get("reason"):
            state.reason = waiting["reason"]
        elif ended is not None:
            state.reason = _ended(ended)
            failed = state.reason if ended.get("exitCode") else failed
        elif container.get("ready") and current.get("running") is not None:
            running = True
            state.ready += 1
    if state.reason == "Completed":
        if running and ready:
            state.reason = "Running"
        elif failed or running:
            state.reason = failed or "NotReady"


def _ended(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _gates(spec: Object, conditions: Object) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return "<none>"
    passed = sum((conditions.get(gate.get("conditionType")) or {}).get("status") == "True" for gate in gates)
    return f"{passed}/{len(gates)}"
