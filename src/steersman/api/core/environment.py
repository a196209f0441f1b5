"""Environment variables of containers.

Source: kubernetes `pkg/apis/core/validation/validation.go` (ValidateEnv, ValidateEnvFrom).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from steersman.api import checks
from steersman.api.core.paths import without_backsteps
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError

Object = dict[str, Any]
_NAME = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_SOURCES = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_ONE = "may not have more than one field specified at a time"
ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN_FIELDS = frozenset(
    (*ENV_FIELDS, *VOLUME_FIELDS, "spec.host", "spec.restartPolicy", "spec.schedulerName", "status.phase")
)
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)


def env_name_errors(name: str, field: str) -> list[FieldError]:
    if all(" " <= char <= "~" and char != "=" for char in name):
        return []
    return [fe.invalid(field, name, _NAME)]


def env_errors(variables: Sequence[Object], place: str) -> list[FieldError]:
    errors = []
    for index, variable in enumerate(variables):
        name = variable.get("name") or ""
        here = f"{place}[{index}]"
        errors += env_name_errors(name, f"{here}.name") if name else [fe.required(f"{here}.name")]
        if variable.get("valueFrom") is not None:
            errors += _source_errors(variable["valueFrom"], variable.get("value") or "", f"{here}.valueFrom")
    return errors


def _source_errors(source: Object, value: str, place: str) -> list[FieldError]:
    errors, given = [], 0
    for key in ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"):
        reference = source.get(key)
        if reference is None:
            continue
        given += 1
        here = f"{place}.{key}"
        if key == "fieldRef":
            errors += field_ref_errors(reference, here, ENV_FIELDS)
        elif key == "resourceFieldRef":
            errors += resource_ref_errors(reference, here, volume=False)
        else:
            errors += _key_errors(reference, here)
    if not given:
        errors.append(fe.invalid(place, "", _SOURCES))
    elif value:
        errors.append(fe.invalid(place, "", "may not be specified when `value` is not empty"))
    elif given > 1:
        errors.append(fe.invalid(place, "", _ONE))
    return errors


def _key_errors(reference: Object, place: str) -> list[FieldError]:
    if place.endswith("fileKeyRef"):
        return _file_key_errors(reference, place)
    name = reference.get("name") or ""
    errors = [fe.invalid(f"{place}.name", name, text) for text in names.name_is_dns_subdomain(name, False)]
    key = reference.get("key") or ""
    if not key:
        return [*errors, fe.required(f"{place}.key")]
    return errors + [fe.invalid(f"{place}.key", key, text) for text in names.config_map_key(key)]


def _file_key_errors(reference: Object, place: str) -> list[FieldError]:
    key, volume, path = (reference.get(name) or "" for name in ("key", "volumeName", "path"))
    errors = env_name_errors(key, f"{place}.key") if key else [fe.required(f"{place}.key")]
    errors += checks.dns_label(volume, f"{place}.volumeName") if volume else [fe.required(f"{place}.volumeName")]
    return errors + (without_backsteps(path, f"{place}.path") if path else [fe.required(f"{place}.path")])


def field_ref_errors(reference: Object, place: str, allowed: Collection[str]) -> list[FieldError]:
    """A reference to a field of the pod, or to one label or annotation."""
    if not reference.get("apiVersion"):
        return [fe.required(f"{place}.apiVersion")]
    path = reference.get("fieldPath") or ""
    if not path:
        return [fe.required(f"{place}.fieldPath")]
    base, bracket, rest = path.partition("['")
    subscripted = bracket and rest.endswith("']")
    if why := _unknown_field(reference["apiVersion"], path, base if subscripted else ""):
        return [fe.invalid(f"{place}.fieldPath", path, f"error converting fieldPath: {why}")]
    if subscripted:
        subscript = rest[:-2]
        return checks.qualified_name(subscript.lower() if base == "metadata.annotations" else subscript, place)
    path = "spec.nodeName" if path == "spec.host" else path
    return [] if path in allowed else [fe.not_supported(f"{place}.fieldPath", path, sorted(allowed))]


def _unknown_field(version: str, path: str, subscripted: str) -> str:
    """Why there is no such field of a pod; `subscripted` is the map that the path takes one item of."""
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscripted:
        known = subscripted in ("metadata.annotations", "metadata.labels")
        return "" if known else f"field label does not support subscript: {path}"
    return "" if path in _KNOWN_FIELDS else f"field label not supported: {path}"


def resource_ref_errors(reference: Object, place: str, *, volume: bool) -> list[FieldError]:
    """A reference to a resource of a container."""
    resource = reference.get("resource") or ""
    if volume and not reference.get("containerName"):
        return [fe.required(f"{place}.containerName")]
    if not resource:
        return [fe.required(f"{place}.resource")]
    if resource in _RESOURCES or resource.startswith(("requests.hugepages-", "limits.hugepages-")):
        return []
    return [fe.not_supported(f"{place}.resource", resource, _RESOURCES)]


def env_from_errors(sources: Sequence[Object], place: str) -> list[FieldError]:
    errors = []
    for index, source in enumerate(sources):
        here = f"{place}[{index}]"
        if source.get("prefix"):
            errors += env_name_errors(source["prefix"], f"{here}.prefix")
        given = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in given:
            name = source[key].get("name") or ""
            if not name:
                errors.append(fe.required(f"{here}.{key}.name"))
            else:
                texts = names.name_is_dns_subdomain(name, True)
                errors += [fe.invalid(f"{here}.{key}.name", name, text) for text in texts]
        if not given:
            errors.append(fe.invalid(place, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(fe.invalid(place, "", _ONE))
    return errors
