"""ServiceAccounts: of their references to Secrets only the name is kept.

Source: kubernetes `pkg/registry/core/serviceaccount/strategy.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api.builtin import BuiltinStrategy
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery.field_errors import FieldError

_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"
_SEPARATE_NAMESPACES = (
    f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to "
    "mounted secrets"
)


class ServiceAccountStrategy(BuiltinStrategy):
    def prepare_for_create(self, obj: Object) -> None:
        _keep_names(obj)

    def prepare_for_update(self, new: Object, old: Object) -> None:
        _keep_names(new)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*self.validate_meta_update(new, old), *self.validate_create(new)]

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        given, before = (_MOUNTABLE in (each["metadata"].get("annotations") or {}) for each in (obj, old or obj))
        return [_SEPARATE_NAMESPACES] if given and (old is None or not before) else []

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        return [meta.get("name") or "", age(meta.get("creationTimestamp"), now)]


def _keep_names(obj: Object) -> None:
    if obj.get("secrets"):
        obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in obj["secrets"]]
