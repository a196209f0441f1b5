"""Namespaces: their phase, spec.finalizers, the label that carries their name, and the finalize subresource.

Source: kubernetes `pkg/registry/core/namespace/strategy.go`, `pkg/apis/core/v1/defaults.go`,
`pkg/apis/core/validation/validation.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api.builtin import BuiltinStrategy, StatusStrategy
from steersman.api.strategy import Object, Strategy, restore
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_finalizer_name, validate_standard_finalizer

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"
ACTIVE, TERMINATING = "Active", "Terminating"


class NamespaceStrategy(BuiltinStrategy):
    def default(self, obj: Object) -> None:
        name = obj["metadata"].get("name")
        if name:
            _label(obj, name)
        status = obj.get("status") or {}
        if not status.get("phase"):
            obj["status"] = {"phase": ACTIVE, **status}

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"phase": ACTIVE}
        spec = obj.get("spec") or {}
        finalizers = spec.get("finalizers") or []
        if FINALIZER not in finalizers:
            obj["spec"] = {**spec, "finalizers": [*finalizers, FINALIZER]}

    def prepare_for_update(self, new: Object, old: Object) -> None:
        spec = dict(new.get("spec") or {})
        restore(spec, old.get("spec") or {}, "finalizers")
        new["spec"] = spec
        restore(new, old, "status")

    def validate_content(self, obj: Object) -> list[FieldError]:
        return _finalizer_errors(obj, indexed=False)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*self.validate_create(new), *self.validate_meta_update(new, old)]

    def canonicalize(self, obj: Object) -> None:
        _label(obj, obj["metadata"].get("name") or "")

    def subresource(self, name: str) -> Strategy:
        """The rules for `status` and for `finalize`, which alone changes spec.finalizers."""
        if name == "finalize":
            return FinalizeStrategy(self)
        return NamespaceStatusStrategy(self) if name == "status" else super().subresource(name)

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        phase = (obj.get("status") or {}).get("phase") or ""
        return [meta.get("name") or "", phase, age(meta.get("creationTimestamp"), now)]


class NamespaceStatusStrategy(StatusStrategy):
    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = super().validate_update(new, old)
        phase = (new.get("status") or {}).get("phase") or ""
        deleted = new["metadata"].get("deletionTimestamp") is not None
        wanted = TERMINATING if deleted else ACTIVE
        if phase != wanted:
            state = "is not empty" if deleted else "is empty"
            errors.append(fe.invalid("status.Phase", phase, f"may only be '{wanted}' if `deletionTimestamp` {state}"))
        return errors


class FinalizeStrategy(StatusStrategy):
    def __init__(self, main: BuiltinStrategy) -> None:
        super().__init__(main)
        self.reset_fields = (("status",),)

    def prepare_for_update(self, new: Object, old: Object) -> None:
        restore(new, old, "status")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*super().validate_update(new, old), *_finalizer_errors(new, indexed=True)]


def _label(obj: Object, name: str) -> None:
    meta = obj["metadata"]
    if (meta.get("labels") or {}).get(NAME_LABEL) != name:
        meta["labels"] = dict(sorted({**(meta.get("labels") or {}), NAME_LABEL: name}.items()))


def _finalizer_errors(obj: Object, *, indexed: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, name in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
        field = f"spec.finalizers[{index}]" if indexed else "spec.finalizers"
        errors += [*validate_finalizer_name(name, field), *validate_standard_finalizer(name, field)]
    return errors
