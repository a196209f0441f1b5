"""CustomResourceDefinitions in the registry: their defaults, rules and table.

Source: apiextensions-apiserver `pkg/registry/customresourcedefinition/{strategy.go,tableconvertor/tableconvertor.go}`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api.apiextensions.conditions import is_condition_true
from steersman.api.apiextensions.defaults import (
    crd_warnings,
    default_crd,
    prepare_crd_for_create,
    prepare_crd_for_status_update,
    prepare_crd_for_update,
)
from steersman.api.apiextensions.validation import validate_crd, validate_crd_status_update, validate_crd_update
from steersman.api.builtin import BuiltinStrategy, StatusStrategy
from steersman.api.strategy import Object, Strategy, differs
from steersman.apimachinery.field_errors import FieldError


class CustomResourceDefinitionStrategy(BuiltinStrategy):
    """The rules of the CustomResourceDefinition kind."""

    def default(self, obj: Object) -> None:
        default_crd(obj)

    def prepare_for_create(self, obj: Object) -> None:
        prepare_crd_for_create(obj)
        obj["metadata"]["generation"] = 1

    def prepare_for_update(self, new: Object, old: Object) -> None:
        prepare_crd_for_update(new, old)
        if differs(new, old, "spec"):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1

    def validate_create(self, obj: Object) -> list[FieldError]:
        return validate_crd(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return validate_crd_update(new, old)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return crd_warnings(obj, old)

    def subresource(self, name: str) -> Strategy:
        return CustomResourceDefinitionStatusStrategy(self) if name == "status" else super().subresource(name)

    def row(self, obj: Object, now: datetime) -> list[Any]:
        spec, meta = obj.get("spec") or {}, obj["metadata"]
        names = spec.get("names") or {}
        served = [version for version in spec.get("versions") or () if version.get("served")]
        labels = sorted(version["name"] + ("(storage)" if version.get("storage") else "") for version in served)
        return [
            meta.get("name") or "",
            spec.get("scope") or "",
            ",".join(labels),
            meta.get("creationTimestamp"),
            spec.get("group") or "",
            names.get("kind") or "",
            ",".join(names.get("shortNames") or ()),
            is_condition_true(obj, "Established"),
        ]


class CustomResourceDefinitionStatusStrategy(StatusStrategy):
    def prepare_for_update(self, new: Object, old: Object) -> None:
        prepare_crd_for_status_update(new, old)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return validate_crd_status_update(new, old)
