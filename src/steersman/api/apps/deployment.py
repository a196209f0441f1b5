"""Deployments: their table.

Source: kubernetes `pkg/printers/internalversion/printers.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api.builtin import BuiltinStrategy
from steersman.api.strategy import Object
from steersman.api.tables import age, container_cells
from steersman.apimachinery import selectors
from steersman.apimachinery.selectors import SelectorError


class DeploymentStrategy(BuiltinStrategy):
    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        wanted = spec.get("replicas")
        ready = f"{status.get('readyReplicas') or 0}/{1 if wanted is None else wanted}"
        template = (spec.get("template") or {}).get("spec") or {}
        try:
            selector = str(selectors.from_object(spec.get("selector")))
        except SelectorError:
            selector = "<invalid>"
        return [
            meta.get("name") or "",
            ready,
            status.get("updatedReplicas") or 0,
            status.get("availableReplicas") or 0,
            age(meta.get("creationTimestamp"), now),
            *container_cells(template.get("containers") or []),
            selector,
        ]
