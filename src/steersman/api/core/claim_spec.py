"""The rules of PersistentVolumeClaim specs, which pods and StatefulSets hold too.

Source: kubernetes `pkg/apis/core/validation/validation.go` (ValidatePersistentVolumeClaimSpec).
"""

from __future__ import annotations

from typing import Any

from steersman.api import checks
from steersman.api.core.resources import quantity_errors
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names, quantity, selectors
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_annotations, validate_labels

Object = dict[str, Any]
ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_META_FIELDS = {
    key: key
    for key in (
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
        "finalizers",
        "managedFields",
    )
} | {"uid": "uID"}
VOLUME_MODES = ("Block", "Filesystem")


def claim_spec_errors(spec: Object, place: str) -> list[FieldError]:
    """Access modes, the storage requested, class and source."""
    modes = spec.get("accessModes") or []
    errors = access_mode_errors(modes, f"{place}.accessModes", "at least 1 access mode is required")
    selector = selectors.validate_object(spec.get("selector"), f"{place}.selector")
    errors = [*errors[:1], *selector] if not modes else [*selector, *errors]
    errors += _storage_errors(spec, f"{place}.resources[storage]")
    if name := spec.get("storageClassName"):
        texts = names.name_is_dns_subdomain(name, False)
        errors += [fe.invalid(f"{place}.storageClassName", name, text) for text in texts]
    mode = spec.get("volumeMode")
    if mode is not None:
        errors += checks.supported(mode, VOLUME_MODES, f"{place}.volumeMode")
    errors += _sources_errors(spec, place)
    if name := spec.get("volumeAttributesClassName"):
        texts = names.name_is_dns_subdomain(name, False)
        errors += [fe.invalid(f"{place}.volumeAttributesClassName", name, text) for text in texts]
    return errors


def _sources_errors(spec: Object, place: str) -> list[FieldError]:
    """The two fields for the source of the data say the same, unless it is in another namespace."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    errors: list[FieldError] = []
    for key, given in (("dataSource", source), ("dataSourceRef", reference)):
        if given is not None:
            errors += _source_errors(given, f"{place}.{key}")
    if reference is None:
        return errors
    if namespace := reference.get("namespace"):
        texts = names.name_is_dns_label(namespace, False)
        errors += [fe.invalid(f"{place}.dataSourceRef.namespace", namespace, text) for text in texts]
        if source is not None:
            errors.append(fe.invalid(place, {}, "may not be specified when dataSourceRef.namespace is specified"))
    elif source is not None and any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        errors.append(fe.invalid(place, {}, "must match dataSourceRef"))
    return errors


def claim_template_errors(template: Object, place: str) -> list[FieldError]:
    """A template of claims, in the volume of a pod: of its metadata only labels and annotations count."""
    meta, field = template.get("metadata") or {}, f"{place}.metadata"
    errors = validate_annotations(meta.get("annotations") or {}, f"{field}.annotations")
    errors += validate_labels(meta.get("labels") or {}, f"{field}.labels")
    for key, name in _META_FIELDS.items():
        if meta.get(key):
            errors.append(fe.forbidden(f"{field}.{name}", "cannot be set"))
    return errors + claim_spec_errors(template.get("spec") or {}, f"{place}.spec")


def access_mode_errors(modes: list[str], field: str, missing: str) -> list[FieldError]:
    """At least one mode, each supported; ReadWriteOncePod stands alone."""
    if not modes:
        return [fe.required(field, missing)]
    errors = [fe.not_supported(field, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES[:3] for mode in modes):
        errors.append(fe.forbidden(field, "may not use ReadWriteOncePod with other access modes"))
    return errors


def _storage_errors(spec: Object, field: str) -> list[FieldError]:
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        return [fe.required(field)]
    return positive_errors(storage, field) or quantity_errors("storage", storage, field)


def positive_errors(text: str, field: str) -> list[FieldError]:
    """A quantity above zero."""
    return [] if quantity.parse("0") < quantity.parse(text) else [fe.invalid(field, text, "must be greater than zero")]


def _source_errors(source: Object, place: str) -> list[FieldError]:
    errors = [fe.required(f"{place}.{key}") for key in ("name", "kind") if not source.get(key)]
    group = source.get("apiGroup") or ""
    if not group and source.get("kind") != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(fe.invalid(place, source.get("kind") or "", text))
    if group:
        errors += checks.dns_subdomain(group, f"{place}.apiGroup")
    return errors
