"""ControllerRevisions: history that never changes.

Source: kubernetes `pkg/registry/apps/controllerrevision/strategy.go`, `pkg/apis/apps/validation/validation.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.builtin import BuiltinStrategy
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError


class ControllerRevisionStrategy(BuiltinStrategy):
    def validate_create(self, obj: Object) -> list[FieldError]:
        errors = [*self.validate_meta(obj), *checks.nonnegative(obj.get("revision"), "revision")]
        data = obj.get("data")
        if not isinstance(data, dict):
            text = "data is mandatory" if data is None else "data must be a valid JSON object"
            errors.append(fe.required("data", text))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = [*self.validate_meta_update(new, old), *checks.nonnegative(new.get("revision"), "revision")]
        return errors + checks.immutable(new.get("data"), old.get("data"), "data")

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        owners = (owner for owner in meta.get("ownerReferences") or () if owner.get("controller"))
        owner = next(owners, None)
        return [
            meta.get("name") or "",
            _owner_text(owner) if owner else "<none>",
            obj.get("revision") or 0,
            age(meta.get("creationTimestamp"), now),
        ]


def _owner_text(owner: Object) -> str:
    group = (owner.get("apiVersion") or "").rpartition("/")[0]
    kind = (owner.get("kind") or "").lower()
    return f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
