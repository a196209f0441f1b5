"""The stored objects that a server comes with, and what schemas say of their levels.

Source: kubernetes `pkg/registry/flowcontrol/{rest,ensurer}`, apiserver `pkg/util/flowcontrol/apf_controller.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from steersman._util.gotext import quote
from steersman.api.flowcontrol.fixed import LEVELS, MANDATORY, SCHEMAS, fixed
from steersman.apimachinery.apply.managers import APPLY, Writer
from steersman.apimachinery.errors import AlreadyExists, NotFound
from steersman.apiserver.bootstrap import SYSTEM_USER
from steersman.apiserver.core import Core
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import Change
from steersman.apiserver.writing import WriteContext

GROUP = "flowcontrol.apiserver.k8s.io"
RESOURCES = {LEVELS: "prioritylevelconfigurations", SCHEMAS: "flowschemas"}
_PRODUCER = "api-priority-and-fairness-config-producer-v1"
_CONSUMER = "api-priority-and-fairness-config-consumer-v1"
_AUTOMATIC = "apf.kubernetes.io/autoupdate-spec"
_TRUE = ("1", "t", "T", "TRUE", "true", "True")


def scope_of(core: Core, kind: str) -> ResourceScope:
    scope = core.catalog.look_up(GROUP, "v1", RESOURCES[kind])
    assert scope is not None
    return scope


class Upkeep:
    """Creates what is missing, restores what must not differ, and tells of schemas without a level."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Do it once, and again whenever something changes."""
        await self._once()
        for kind in RESOURCES:
            scope_of(self._core, kind).cache.watchers.append(self._changed)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _changed(self, change: Change) -> None:
        self._wanted.set()

    async def _run(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self._once()

    async def _once(self) -> None:
        for kind in RESOURCES:
            await asyncio.gather(*(self._ensure(kind, name, spec) for name, spec in fixed(kind).items()))
        entries = tuple(scope_of(self._core, SCHEMAS).cache.entries.values())
        await asyncio.gather(*(self._judge(entry.decode()) for entry in entries))

    def _context(self, manager: str, operation: str = "Update", subresource: str = "") -> WriteContext:
        writer = Writer(manager, operation, subresource)
        return WriteContext(SYSTEM_USER, writer, self._core.now(), subresource=subresource)

    async def _ensure(self, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        scope, registry = scope_of(self._core, kind), self._core.registry
        entry = scope.cache.get(name)
        ctx = self._context(_PRODUCER)
        if entry is None:
            meta: Object = {"name": name, "annotations": {_AUTOMATIC: "true"}}
            new = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta, "spec": dict(spec)}
            obj, _ = scope.strategy.decode(new)
            try:
                await registry.create(scope, "", obj, ctx)
            except AlreadyExists:
                return
            return
        if not _is_ours(name, entry.decode(), spec):
            return

        def restored(old: Object | None) -> Object:
            if old is None:
                raise NotFound(name)
            meta = {**old["metadata"], "resourceVersion": ""}
            return {**old, "metadata": meta, "spec": dict(spec)}

        try:
            await registry.update(scope, scope.strategy, "", name, restored, ctx)
        except NotFound:
            return

    async def _judge(self, schema: Object) -> None:
        """Set a schema's condition that says whether its level is there."""
        level = schema["spec"]["priorityLevelConfiguration"]["name"]
        wanted = _condition(level, scope_of(self._core, LEVELS).cache.get(level) is not None)
        conditions = (schema.get("status") or {}).get("conditions") or ()
        current: Mapping[str, Any] = next((item for item in conditions if item.get("type") == wanted["type"]), {})
        if all(current.get(key) == value for key, value in wanted.items()):
            return
        changed = current.get("status") != wanted["status"]
        wanted["lastTransitionTime"] = self._core.now() if changed else current.get("lastTransitionTime")
        scope, name = scope_of(self._core, SCHEMAS), schema["metadata"]["name"]
        config = {
            "apiVersion": f"{GROUP}/v1",
            "kind": SCHEMAS,
            "metadata": {"name": name},
            "status": {"conditions": [wanted]},
        }
        strategy = scope.subresource_strategies["status"]
        ctx = self._context(_CONSUMER, APPLY, "status")

        def applied(old: Object | None) -> Object:
            if old is None:
                raise NotFound(name)
            return strategy.apply(old, config, ctx.writer, ctx.now, force=True)

        try:
            await self._core.registry.update(scope, strategy, "", name, applied, ctx)
        except NotFound:
            return


def _is_ours(name: str, obj: Object, spec: Mapping[str, Any]) -> bool:
    """Whether a stored spec is to be brought back to what the server comes with."""
    found = obj["spec"]
    if name == "exempt":
        found = {**found, "exempt": spec.get("exempt")} if "exempt" in spec else found
    if found == spec:
        return False
    if name in MANDATORY:
        return True
    said = (obj["metadata"].get("annotations") or {}).get(_AUTOMATIC)
    return obj["metadata"].get("generation") == 1 if said is None else said in _TRUE


def _condition(level: str, exists: bool) -> dict[str, Any]:
    what = f"This FlowSchema references the PriorityLevelConfiguration object named {quote(level)}"
    if exists:
        return {"type": "Dangling", "status": "False", "reason": "Found", "message": f"{what} and it exists"}
    return {
        "type": "Dangling",
        "status": "True",
        "reason": "NotFound",
        "message": f"{what} but there is no such object",
    }
