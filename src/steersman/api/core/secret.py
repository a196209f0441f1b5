"""Secrets: stringData, types and the keys that they demand, immutability.

Source: kubernetes `pkg/apis/core/{validation/validation.go,v1/conversion.go,v1/defaults.go}`,
`pkg/registry/core/secret/strategy.go`, `pkg/printers/internalversion/printers.go`.
"""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import Any

from steersman._util.gojson import syntax_error
from steersman.api.builtin import BuiltinStrategy
from steersman.api.core.key_pair import key_pair_problem
from steersman.api.core.keyed_data import decoded_size, immutable_errors, key_errors, size_error
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.go_values import json_kind
from steersman.apimachinery.meta import validate_immutable

OPAQUE = "Opaque"
SERVICE_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105
SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"
TLS = "kubernetes.io/tls"

_DOCKER_KEYS = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


class SecretStrategy(BuiltinStrategy):
    fixed_if_empty = ("data",)

    def default(self, obj: Object) -> None:
        _merge_string_data(obj)
        super().default(obj)

    def prepare_for_update(self, new: Object, old: Object) -> None:
        if not new.get("type"):
            new["type"] = old.get("type") or OPAQUE

    def validate_content(self, obj: Object) -> list[FieldError]:
        data = obj.get("data") or {}
        errors = [error for key in data for error in key_errors("data", key)]
        errors += size_error("data", sum(map(decoded_size, data.values())))
        return errors + _type_errors(obj.get("type") or "", data, obj["metadata"].get("annotations") or {})

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        changed = validate_immutable(new.get("type"), old.get("type"), "type") + immutable_errors(
            new, old, (), self.fixed_if_empty
        )
        return [*self.validate_meta_update(new, old), *changed, *self.validate_create(new)]

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        if obj.get("type") != TLS:
            return []
        data = obj.get("data") or {}
        certificate, key = (base64.b64decode(data.get(name) or "") for name in ("tls.crt", "tls.key"))
        problem = key_pair_problem(certificate, key)
        return [problem] if problem else []

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        created = age(meta.get("creationTimestamp"), now)
        return [meta.get("name") or "", obj.get("type") or "", len(obj.get("data") or ()), created]


def _merge_string_data(obj: Object) -> None:
    """stringData is write-only: it goes into data, over what is there under the same keys."""
    given = obj.pop("stringData", None)
    if not given:
        return
    data = dict(obj.get("data") or {})
    data.update((key, base64.b64encode(value.encode()).decode()) for key, value in given.items())
    obj["data"] = dict(sorted(data.items()))


def _type_errors(kind: str, data: Object, annotations: Object) -> list[FieldError]:
    """The keys that a Secret of a well-known type must have."""
    if kind in _DOCKER_KEYS:
        return _docker_errors(_DOCKER_KEYS[kind], data)
    match kind:
        case "kubernetes.io/service-account-token" if not annotations.get(SERVICE_ACCOUNT_NAME):
            return [fe.required(f"metadata.annotations[{SERVICE_ACCOUNT_NAME}]")]
        case "kubernetes.io/basic-auth" if "username" not in data and "password" not in data:
            return [fe.required("data[username]"), fe.required("data[password]")]
        case "kubernetes.io/ssh-auth" if not data.get("ssh-privatekey"):
            return [fe.required("data[ssh-privatekey]")]
        case "kubernetes.io/tls":
            return [fe.required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _docker_errors(key: str, data: Object) -> list[FieldError]:
    if key not in data:
        return [fe.required(f"data[{key}]")]
    problem = _not_a_json_object(base64.b64decode(data[key] or ""))
    return [fe.invalid(f"data[{key}]", "<secret contents redacted>", problem)] if problem else []


def _not_a_json_object(raw: bytes) -> str:
    if problem := syntax_error(raw):
        return problem
    content = json.loads(raw)
    if content is None or isinstance(content, dict):
        return ""
    return f"json: cannot unmarshal {json_kind(content)} into Go value of type map[string]interface {{}}"
