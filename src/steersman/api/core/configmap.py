"""ConfigMaps: keys, no key in both maps, a megabyte in all, and immutability.

Source: kubernetes `pkg/apis/core/validation/validation.go`, `pkg/printers/internalversion/printers.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api.builtin import BuiltinStrategy
from steersman.api.core.keyed_data import decoded_size, immutable_errors, key_errors, size_error
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError


class ConfigMapStrategy(BuiltinStrategy):
    fixed_if_empty = ("binaryData",)

    def validate_content(self, obj: Object) -> list[FieldError]:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        errors: list[FieldError] = []
        for key in data:
            errors += key_errors("data", key)
            if key in binary:
                errors.append(fe.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        for key in binary:
            errors += key_errors("binaryData", key)
        total = sum(len(value.encode()) for value in data.values()) + sum(map(decoded_size, binary.values()))
        return errors + size_error("[]", total)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        immutable = immutable_errors(new, old, ("data",), self.fixed_if_empty)
        return [*self.validate_meta_update(new, old), *immutable, *self.validate_create(new)]

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        count = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
        return [meta.get("name") or "", count, age(meta.get("creationTimestamp"), now)]
