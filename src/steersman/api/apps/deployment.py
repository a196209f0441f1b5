"""Deployments and ReplicaSets.

Source: kubernetes `pkg/registry/apps/{deployment,replicaset}/strategy.go`, `pkg/apis/apps/validation/validation.go`,
`pkg/printers/internalversion/printers.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.apps.pod_sets import PodSetStatusStrategy, PodSetStrategy, replica_errors, replica_row, selector_text
from steersman.api.strategy import Object, Strategy, restore
from steersman.api.tables import age, container_cells
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError


class DeploymentStrategy(PodSetStrategy):
    noun = "deployment"
    pods_of = "ReplicaSet"
    counts = (
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
    )

    def spec_errors(self, spec: Object) -> list[FieldError]:
        errors = checks.nonnegative(spec.get("replicas"), "spec.replicas") + super().spec_errors(spec)
        errors += strategy_errors(spec.get("strategy") or {})
        ready, deadline = spec.get("minReadySeconds") or 0, spec.get("progressDeadlineSeconds")
        errors += checks.nonnegative(ready, "spec.minReadySeconds")
        errors += checks.nonnegative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")
        if deadline is not None:
            errors += checks.nonnegative(deadline, "spec.progressDeadlineSeconds")
            if deadline <= ready:
                text = "must be greater than minReadySeconds"
                errors.append(fe.invalid("spec.progressDeadlineSeconds", deadline, text))
        return errors

    def subresource(self, name: str) -> Strategy:
        return DeploymentStatusStrategy(self) if name == "status" else super().subresource(name)

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        template = (spec.get("template") or {}).get("spec") or {}
        return [
            meta.get("name") or "",
            f"{status.get('readyReplicas') or 0}/{spec.get('replicas') or 0}",
            status.get("updatedReplicas") or 0,
            status.get("availableReplicas") or 0,
            age(meta.get("creationTimestamp"), now),
            *container_cells(template.get("containers") or []),
            selector_text(spec.get("selector")),
        ]


class DeploymentStatusStrategy(PodSetStatusStrategy):
    def __init__(self, main: PodSetStrategy) -> None:
        super().__init__(main)
        self.reset_fields = (("spec",), ("metadata", "labels"))

    def prepare_for_update(self, new: Object, old: Object) -> None:
        super().prepare_for_update(new, old)
        restore(new["metadata"], old["metadata"], "labels")


class ReplicaSetStrategy(PodSetStrategy):
    noun = "deployment"  # as upstream words it
    counts = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas")

    def spec_errors(self, spec: Object) -> list[FieldError]:
        return replica_errors(spec) + super().spec_errors(spec)

    def row(self, obj: Object, now: datetime) -> list[Any]:
        return replica_row(obj, now, selector_text)


def strategy_errors(strategy: Object) -> list[FieldError]:
    """How a Deployment replaces its pods."""
    place, rolling = "spec.strategy", strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [fe.forbidden(f"{place}.rollingUpdate", text)] if rolling is not None else []
    if strategy.get("type") != "RollingUpdate":
        return [fe.not_supported(place, internal_strategy(strategy), ("Recreate", "RollingUpdate"))]
    unavailable, surge = (rolling or {}).get("maxUnavailable"), (rolling or {}).get("maxSurge")
    field = f"{place}.rollingUpdate.maxUnavailable"
    errors = checks.int_or_percent(unavailable, field)
    errors += checks.int_or_percent(surge, f"{place}.rollingUpdate.maxSurge")
    if checks.amount(unavailable) == 0 and checks.amount(surge) == 0:
        errors.append(fe.invalid(field, unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + checks.at_most_100_percent(unavailable, field)


def internal_strategy(strategy: Object) -> fe.Struct:
    """A strategy as errors show it: under its Go names."""
    rolling = strategy.get("rollingUpdate")
    return fe.Struct({"Type": strategy.get("type") or "", "RollingUpdate": rolling and internal_rolling(rolling)})


def internal_rolling(rolling: Object) -> fe.Struct:
    """Settings of a rolling update under their Go names."""
    names = {key: key[0].upper() + key[1:] for key in ("partition", "maxUnavailable", "maxSurge")}
    return fe.Struct({name: rolling.get(key) for key, name in names.items() if key != "maxSurge" or key in rolling})
