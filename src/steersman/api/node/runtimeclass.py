"""RuntimeClasses.

Source: kubernetes `pkg/registry/node/runtimeclass/strategy.go`, `pkg/apis/node/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from steersman.api.builtin import BuiltinStrategy
from steersman.api.core.affinity import tolerations_errors
from steersman.api.core.resources import requirement_errors
from steersman.api.node_labels import deprecation
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_labels


class RuntimeClassStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        if (overhead := obj.get("overhead")) is not None:
            errors += requirement_errors({"limits": overhead.get("podFixed")}, "overhead")
        if (scheduling := obj.get("scheduling")) is not None:
            errors += validate_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
            errors += _tolerations_errors(scheduling.get("tolerations") or (), "scheduling.tolerations")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*self.validate_create(new), *self.validate_meta_update(new, old)]

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        labels = (obj.get("scheduling") or {}).get("nodeSelector") or ()
        return [f"scheduling.nodeSelector: {text}" for label in sorted(labels) if (text := deprecation(label))]

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        handler = new.get("handler") or ""
        if old is not None and handler != (old.get("handler") or ""):
            return [fe.invalid("handler", None, "field is immutable")]
        if not handler:
            return [fe.required("handler")]
        return [fe.invalid("handler", handler, text) for text in names.name_is_dns_label(handler, False)]

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        return [meta.get("name") or "", obj.get("handler") or "", age(meta.get("creationTimestamp"), now)]


def _tolerations_errors(tolerations: Sequence[Object], place: str) -> list[FieldError]:
    """Those of pods, and each once."""
    errors, seen = tolerations_errors(tolerations, place), set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(name) or "" for name in ("key", "operator", "value", "effect"))
        if key in seen:
            shown = dict(zip(("Key", "Operator", "Value", "Effect"), key, strict=True))
            shown = fe.Struct({**shown, "TolerationSeconds": toleration.get("tolerationSeconds")})
            errors.append(fe.duplicate(f"{place}[{index}]", shown))
        seen.add(key)
    return errors
