"""PodDisruptionBudgets.

Source: kubernetes `pkg/registry/policy/poddisruptionbudget/strategy.go`, `pkg/apis/policy/validation/validation.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.builtin import BuiltinStrategy, StatusStrategy
from steersman.api.strategy import Object, Strategy
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import selectors
from steersman.apimachinery.field_errors import FieldError

_EVICTION = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


class PodDisruptionBudgetStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            text = "minAvailable and maxUnavailable cannot be both set"
            errors.append(fe.invalid("spec", _internal(spec), text))
        for key in ("minAvailable", "maxUnavailable"):
            if spec.get(key) is not None:
                errors += checks.int_or_percent(spec[key], f"spec.{key}")
                errors += checks.at_most_100_percent(spec[key], f"spec.{key}")
        errors += selectors.validate_object(spec.get("selector"), "spec.selector")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None:
            errors += checks.supported(policy, _EVICTION, "spec.unhealthyPodEvictionPolicy")
        return errors

    def subresource(self, name: str) -> Strategy:
        return _BudgetStatus(self) if name == "status" else super().subresource(name)

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        shown = ["N/A" if spec.get(key) is None else str(spec[key]) for key in ("minAvailable", "maxUnavailable")]
        allowed = status.get("disruptionsAllowed") or 0
        return [meta.get("name") or "", *shown, allowed, age(meta.get("creationTimestamp"), now)]


class _BudgetStatus(StatusStrategy):
    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = super().validate_update(new, old)
        status = new.get("status") or {}
        for key in _COUNTS:
            errors += checks.nonnegative(status.get(key) or 0, f"status.{key}")
        return errors


def _internal(spec: Object) -> fe.Struct:
    """A spec as errors show it: under its Go names."""
    names = ("MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy")
    return fe.Struct({name: spec.get(name[0].lower() + name[1:]) for name in names})
