"""CustomResourceDefinitions in v1beta1, which is not served any more, but is how kube-apiserver stores them.

What all versions have in common stands at the top there.
Source: apiextensions-apiserver `pkg/apis/apiextensions/{v1beta1/defaults.go,v1/conversion.go}`.
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
API_VERSION = "apiextensions.k8s.io/v1beta1"
_SHARED = {"validation": "schema", "subresources": "subresources", "selectableFields": "selectableFields"}


def to_v1(definition: Object) -> Object:
    """A definition in v1; a new tree where it differs."""
    spec: Object = dict(definition.get("spec") or {})
    shared = {name: value for old, name in _SHARED.items() if (value := spec.pop(old, None)) is not None}
    columns = spec.pop("additionalPrinterColumns", None)
    name = spec.pop("version", "")
    versions = spec.get("versions") or ([{"name": name, "served": True, "storage": True}] if name else [])
    spec["versions"] = [_version(version, shared, columns) for version in versions]
    spec["conversion"] = _conversion(spec.get("conversion") or {"strategy": "None"})
    if not spec.setdefault("preserveUnknownFields", True):
        del spec["preserveUnknownFields"]
    return {**definition, "apiVersion": "apiextensions.k8s.io/v1", "spec": spec}


def _version(version: Object, shared: Object, columns: list[Object] | None) -> Object:
    found = {**version, **shared}
    own = columns if columns is not None else version.get("additionalPrinterColumns")
    if own is not None:
        found["additionalPrinterColumns"] = [_column(column) for column in own]
    return found


def _column(column: Object) -> Object:
    found = dict(column)
    if "JSONPath" in found:
        found["jsonPath"] = found.pop("JSONPath")
    return found


def _conversion(conversion: Object) -> Object:
    found = dict(conversion)
    client, versions = found.pop("webhookClientConfig", None), found.pop("conversionReviewVersions", None)
    if found.get("strategy") == "Webhook" and not versions:
        versions = ["v1beta1"]
    if client is not None or versions is not None:
        found["webhook"] = {"conversionReviewVersions": versions or []}
        if client is not None:
            found["webhook"]["clientConfig"] = client
    return found
