"""CSIDrivers.

Source: kubernetes `pkg/registry/storage/csidriver/strategy.go`, `pkg/apis/storage/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.builtin import BuiltinStrategy
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

_SHORTEST_TOKEN = 600
_FS_GROUP = ("File", "None", "ReadWriteOnceWithFSType")
_TOKENS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)
_MODES = ("Persistent", "Ephemeral")


class CSIDriverStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors = checks.supported(spec.get("fsGroupPolicy"), _FS_GROUP, "spec.fsGroupPolicy")
        errors += _tokens_errors(spec.get("tokenRequests") or (), "spec.tokenRequests")
        for mode in spec.get("volumeLifecycleModes") or ():
            errors += checks.supported(mode, _MODES, "spec.volumeLifecycleModes")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        errors = super().validate_update(new, old)
        if spec.get("attachRequired") != before.get("attachRequired"):
            errors.append(fe.invalid("spec.attachedRequired", spec.get("attachRequired"), "field is immutable"))
        return errors

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        spec = obj.get("spec") or {}
        return [_TOKENS] if spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None else []

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        spec, before = new.get("spec") or {}, (old or new).get("spec") or {}
        if spec.get("volumeLifecycleModes") == before.get("volumeLifecycleModes"):
            return []
        return [fe.invalid("spec.volumeLifecycleModes", None, "field is immutable")]

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec = obj["metadata"], obj.get("spec") or {}
        requests = spec.get("tokenRequests")
        return [
            meta.get("name") or "",
            spec.get("attachRequired") is not False,
            bool(spec.get("podInfoOnMount")),
            bool(spec.get("storageCapacity")),
            "<unset>" if requests is None else ",".join(request.get("audience") or "" for request in requests),
            bool(spec.get("requiresRepublish")),
            ",".join(spec.get("volumeLifecycleModes") or ()) or "<none>",
            age(meta.get("creationTimestamp"), now),
        ]


def _tokens_errors(requests: Sequence[Object], place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, request in enumerate(requests):
        audience, seconds = request.get("audience") or "", request.get("expirationSeconds")
        field = f"{place}[{index}].expirationSeconds"
        if audience in seen:
            errors.append(fe.duplicate(f"{place}[{index}].audience", audience))
        elif seconds is not None and seconds < _SHORTEST_TOKEN:
            errors.append(fe.invalid(field, seconds, "may not specify a duration less than 10 minutes"))
        elif seconds is not None and seconds > 1 << 32:
            errors.append(fe.invalid(field, seconds, "may not specify a duration larger than 2^32 seconds"))
        seen.add(audience)
    return errors
