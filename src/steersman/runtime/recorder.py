"""Events about objects (`kubectl describe` shows them), aggregated into series.

Source: client-go `tools/events/{event_recorder,event_broadcaster}.go`; KEP-383.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from steersman._util import clock
from steersman._util.tasks import end
from steersman.apimachinery.errors import NotFound
from steersman.client.client import Client
from steersman.client.models import KubernetesObject
from steersman.client.options import wire
from steersman.client.resources import Object, Resource

logger = logging.getLogger("steersman.runtime")

EVENT = Resource("events.k8s.io/v1", "Event", "events", True)
SERIES_SECONDS = 360.0
"""Seconds after which the same happening begins a new Event (client-go: 6 min)."""
MAX_PENDING = 1000
MAX_NOTE = 1024
EventType = Literal["Normal", "Warning"]

_Same = tuple[str, ...]


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int
    last: float


class EventRecorder:
    """Records what happens to objects, in the background: a reconcile neither waits for that nor fails by it.

    What happens again within six minutes is counted in the first Event (`series`). When more than a thousand wait to be
    sent, further ones are dropped.
    """

    def __init__(self, client: Client, controller: str) -> None:
        self._client = client
        self._controller = controller
        self._instance = f"{controller}-{socket.gethostname()}"[:128]
        self._pending: asyncio.Queue[tuple[_Same, Object]] = asyncio.Queue(MAX_PENDING)
        self._series: OrderedDict[_Same, _Series] = OrderedDict()  # the one that is silent for longest first
        self._task: asyncio.Task[None] | None = None
        self._serial = 0

    def event(
        self,
        regarding: KubernetesObject | Mapping[str, Any],
        reason: str,
        note: str,
        *,
        type: EventType = "Normal",  # noqa: A002 -- the API's name
        action: str = "Reconcile",
        related: KubernetesObject | Mapping[str, Any] | None = None,
    ) -> None:
        """Record that something happened to `regarding`.

        `reason` is a short word in CamelCase, `note` a sentence (cut to 1 KiB), `action` what was being done.
        """
        reference, note = _reference(regarding), note[:MAX_NOTE]
        same = (*map(str, reference.values()), type, reason, action, note)
        body: Object = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "type": type,
            "reason": reason,
            "action": action,
            "note": note,
            "regarding": reference,
            "reportingController": self._controller,
            "reportingInstance": self._instance,
        }
        if related is not None:
            body["related"] = _reference(related)
        try:
            self._pending.put_nowait((same, body))
        except asyncio.QueueFull:
            logger.warning("an Event is dropped, too many wait to be sent: %s: %s", reason, note)
            return
        if self._task is None:
            self._task = asyncio.create_task(self._send_all(), name=f"events of {self._controller}")

    async def stop(self, timeout: float = 2.0) -> None:
        """Send what waits, for at most `timeout` seconds."""
        if self._task is None:
            return
        try:
            async with asyncio.timeout(timeout):
                await self._pending.join()
        except TimeoutError:
            logger.warning("%d Events were not sent", self._pending.qsize())
        await end([self._task])
        self._task = None

    async def _send_all(self) -> None:
        while True:
            same, body = await self._pending.get()
            try:
                await self._send(same, body)
            except Exception as error:
                logger.warning("an Event could not be recorded: %s: %s: %s", body["reason"], body["note"], error)
            finally:
                self._pending.task_done()

    async def _send(self, same: _Same, body: Object) -> None:
        now, series = asyncio.get_running_loop().time(), self._series.get(same)
        if series is not None and now - series.last < SERIES_SECONDS:
            series.count, series.last = series.count + 1, now
            self._series.move_to_end(same)
            patch = {"series": {"count": series.count, "lastObservedTime": _micro_now()}}
            try:
                await self._client.patch(EVENT, series.name, patch, namespace=series.namespace)
            except NotFound:
                self._series.pop(same)  # it has expired: this is the first of a new series
            else:
                return
        while self._series and now - next(iter(self._series.values())).last >= SERIES_SECONDS:
            self._series.popitem(last=False)
        regarding = body["regarding"]
        namespace = regarding.get("namespace") or "default"
        self._serial += 1
        name = f"{regarding['name'][:200]}.{_stamp()}{self._serial:x}"
        metadata = {"name": name, "namespace": namespace}
        await self._client.create({**body, "metadata": metadata, "eventTime": _micro_now()})
        self._series[same] = _Series(name, namespace, 1, now)
        self._series.move_to_end(same)


def _reference(obj: KubernetesObject | Mapping[str, Any]) -> Object:
    """`corev1.ObjectReference`."""
    body = wire(obj)
    metadata = body.get("metadata") or {}
    reference = {"apiVersion": body.get("apiVersion"), "kind": body.get("kind")}
    for key in ("name", "namespace", "uid", "resourceVersion"):
        if metadata.get(key) and key != "resourceVersion":
            reference[key] = metadata[key]
    return reference


def _micro_now() -> str:
    return clock.utc_now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _stamp() -> str:
    return f"{int(clock.utc_now().timestamp() * 1e6):x}"
