"""StorageClasses.

Source: kubernetes `pkg/registry/storage/storageclass/strategy.go`, `pkg/apis/storage/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.builtin import BuiltinStrategy
from steersman.api.classes import is_default_storage_class
from steersman.api.node_labels import deprecation
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_label_name

_FIXED = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
_MAX_PARAMETERS, _MAX_SIZE = 512, 256 * 1024


class StorageClassStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        provisioner = obj.get("provisioner") or ""
        errors = checks.qualified_name(provisioner.lower(), "provisioner") if provisioner else []
        parameters = obj.get("parameters") or {}
        if len(parameters) > _MAX_PARAMETERS:
            errors.append(fe.too_long("parameters", _MAX_PARAMETERS))
        if "" in parameters:
            errors.append(fe.invalid("parameters", "", "field can not be empty."))
        if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > _MAX_SIZE:
            errors.append(fe.too_long("parameters", _MAX_SIZE))
        errors += checks.supported(obj.get("reclaimPolicy"), ("Delete", "Retain"), "reclaimPolicy")
        modes = ("Immediate", "WaitForFirstConsumer")
        errors += checks.one_of(obj.get("volumeBindingMode"), modes, "volumeBindingMode")
        return errors + _topologies_errors(obj.get("allowedTopologies") or (), "allowedTopologies")

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return [
            f"allowedTopologies[{index}].matchLabelExpressions[{number}].key: {text}"
            for index, topology in enumerate(obj.get("allowedTopologies") or ())
            for number, expression in enumerate(topology.get("matchLabelExpressions") or ())
            if (text := deprecation(expression.get("key") or ""))
        ]

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        if not new.get("provisioner"):
            return [fe.required("provisioner")]
        if old is None:
            return []
        changed = (key for key in _FIXED if (new.get(key) or None) != (old.get(key) or None))
        return [fe.invalid(key, None, "field is immutable") for key in changed]

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        annotations = meta.get("annotations") or {}
        name = meta.get("name") or ""
        if is_default_storage_class(annotations):
            name += " (default)"
        return [
            name,
            obj.get("provisioner") or "",
            obj.get("reclaimPolicy") or "",
            obj.get("volumeBindingMode") or "",
            bool(obj.get("allowVolumeExpansion")),
            age(meta.get("creationTimestamp"), now),
        ]


def _topologies_errors(topologies: Sequence[Object], place: str) -> list[FieldError]:
    """Terms over the labels of nodes: a key once in a term, a value once, a term once."""
    errors: list[FieldError] = []
    terms: list[dict[str, set[str]]] = [{} for _ in topologies]  # so an empty term is a duplicate, as upstream has it
    for index, topology in enumerate(topologies):
        here, term = f"{place}[{index}].matchLabelExpressions", dict[str, set[str]]()
        for number, expression in enumerate(topology.get("matchLabelExpressions") or ()):
            at, key, values = f"{here}[{number}]", expression.get("key") or "", expression.get("values") or []
            errors += [] if values else [fe.required(f"{at}.values")]
            for position, value in enumerate(values):
                if value in values[:position]:
                    errors.append(fe.duplicate(f"{at}.values[{position}]", value))
            errors += validate_label_name(key, f"{at}.key")
            if key in term:
                errors.append(fe.duplicate(f"{at}.key", key))
            term[key] = set(values)
        errors += [fe.duplicate(here, "") for other in terms if other == term]
        terms.append(term)
    return errors
