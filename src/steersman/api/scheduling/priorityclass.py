"""PriorityClasses.

Source: kubernetes `pkg/registry/scheduling/priorityclass/strategy.go`, `pkg/apis/scheduling/validation/validation.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.builtin import BuiltinStrategy
from steersman.api.classes import SYSTEM_PRIORITIES
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

HIGHEST = 1000000000
"""The greatest value that users may give."""

_RESERVED = "priority class names with 'system-' prefix are reserved for system use only. error: "


class PriorityClassStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        name, value = obj["metadata"].get("name") or "", obj.get("value") or 0
        errors: list[FieldError] = []
        if name.startswith("system-"):
            if problem := _system_problem(name, value, bool(obj.get("globalDefault"))):
                errors.append(fe.forbidden("metadata.name", _RESERVED + problem))
        elif value > HIGHEST:
            text = f"maximum allowed value of a user defined priority is {HIGHEST}"
            errors.append(fe.forbidden("value", text))
        policy = obj.get("preemptionPolicy")
        if policy is not None:
            errors += checks.one_of(policy, ("PreemptLowerPriority", "Never"), "preemptionPolicy")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = self.validate_meta_update(new, old)
        if (new.get("value") or 0) != (old.get("value") or 0):
            errors.append(fe.forbidden("value", "may not be changed in an update."))
        return errors + checks.immutable(new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        return [
            meta.get("name") or "",
            obj.get("value") or 0,
            bool(obj.get("globalDefault")),
            age(meta.get("creationTimestamp"), now),
            obj.get("preemptionPolicy") or "",
        ]


def _system_problem(name: str, value: int, default: bool) -> str:
    if name not in SYSTEM_PRIORITIES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_PRIORITIES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
    return "globalDefault of " + name + " PriorityClass must be false" if default else ""
