"""RuntimeClasses.

Source: kubernetes `pkg/registry/node/runtimeclass/strategy.go`, `pkg/apis/node/validation/validation.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.builtin import BuiltinStrategy
from steersman.api.core.affinity import tolerations_errors
from steersman.api.core.resources import requirement_errors
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_labels


class RuntimeClassStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        handler = obj.get("handler") or ""
        if handler:
            errors = [fe.invalid("handler", handler, text) for text in names.name_is_dns_label(handler, False)]
        else:
            errors = [fe.required("handler")]
        if (overhead := obj.get("overhead")) is not None:
            errors += requirement_errors({"limits": overhead.get("podFixed")}, "overhead")
        if (scheduling := obj.get("scheduling")) is not None:
            errors += validate_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
            errors += tolerations_errors(scheduling.get("tolerations") or (), "scheduling.tolerations")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = self.validate_meta_update(new, old)
        return errors + checks.immutable(new.get("handler"), old.get("handler"), "handler")

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        return [meta.get("name") or "", obj.get("handler") or "", age(meta.get("creationTimestamp"), now)]
