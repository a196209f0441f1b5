"""Leases: positive durations, and no fields of coordinated leader election, a feature that is off.

Source: kubernetes `pkg/apis/coordination/validation/validation.go`, `pkg/registry/coordination/lease/strategy.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api.builtin import BuiltinStrategy
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

_FEATURE_FIELDS = ("strategy", "preferredHolder")


class LeaseStrategy(BuiltinStrategy):
    def prepare_for_create(self, obj: Object) -> None:
        _drop_disabled(obj, {})

    def prepare_for_update(self, new: Object, old: Object) -> None:
        _drop_disabled(new, old.get("spec") or {})

    def validate_content(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            errors.append(fe.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            errors.append(fe.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        return errors

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        holder = (obj.get("spec") or {}).get("holderIdentity") or ""
        return [meta.get("name") or "", holder, age(meta.get("creationTimestamp"), now)]


def _drop_disabled(obj: Object, old_spec: Object) -> None:
    """Fields of a feature that is off survive only where they were set before."""
    spec = obj.get("spec") or {}
    disabled = {name for name in _FEATURE_FIELDS if name in spec and old_spec.get(name) is None}
    if disabled:
        obj["spec"] = {key: value for key, value in spec.items() if key not in disabled}
