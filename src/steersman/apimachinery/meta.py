"""Rules for `metadata` that hold for every kind.

Source: apimachinery `pkg/api/validation/objectmeta.go`, `pkg/apis/meta/v1/validation/validation.go`; apiserver
`pkg/registry/rest/{create,update,validate,meta}.go`; kubernetes `pkg/apis/core/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import re2

from steersman._util.gotext import quote
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.apply.names import validate_field_manager
from steersman.apimachinery.field_errors import FieldError

MAX_ANNOTATIONS = 256 * 1024
MAX_SUBRESOURCE = 256
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_http_path = re2.compile(_HTTP_PATH)
STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})

_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_REQUIRED_OWNER_FIELDS = ("kind", "name", "uid")
_IMMUTABLE = {
    "name": "",
    "namespace": "",
    "uid": "",
    "creationTimestamp": None,
    "deletionTimestamp": None,
    "deletionGracePeriodSeconds": None,
}
"""Each with what it is when it is left out."""
_DUPLICATES = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
_DUPLICATES_AFTER_ADMISSION = _DUPLICATES.replace("entries;", "entries after mutating admission happens;", 1)


def validate_object_meta(
    meta: Mapping[str, Any],
    *,
    namespaced: bool,
    name_validator: names.NameValidator,
    field: str = "metadata",
) -> list[FieldError]:
    """What is wrong with an object's metadata, in upstream's order; a generated name must already be there."""
    errors: list[FieldError] = []
    prefix = meta.get("generateName") or ""
    if prefix:
        errors += [fe.invalid(f"{field}.generateName", prefix, text) for text in name_validator(prefix, True)]
    name = meta.get("name") or ""
    if not name:
        errors.append(fe.required(f"{field}.name", "name or generateName is required"))
    else:
        errors += [fe.invalid(f"{field}.name", name, text) for text in name_validator(name, False)]
    errors += _validate_namespace(meta.get("namespace") or "", namespaced, f"{field}.namespace")
    errors += _validate_generation(meta, f"{field}.generation")
    errors += validate_labels(meta.get("labels") or {}, f"{field}.labels")
    errors += validate_annotations(meta.get("annotations") or {}, f"{field}.annotations")
    errors += validate_owner_references(meta.get("ownerReferences") or [], f"{field}.ownerReferences")
    errors += validate_finalizers(meta.get("finalizers") or [], f"{field}.finalizers")
    errors += validate_managed_fields(meta.get("managedFields") or [], f"{field}.managedFields")
    return errors


def validate_object_meta_update(
    new: Mapping[str, Any], old: Mapping[str, Any], *, field: str = "metadata", sound: bool = False
) -> list[FieldError]:
    """What is wrong with a change of metadata: immutable fields, new finalizers on a deleted object, generation.

    `sound`: validate_object_meta has found nothing wrong in `new`, which need not be looked for again.
    """
    errors: list[FieldError] = []
    if old.get("deletionTimestamp") is not None:
        errors += _validate_no_new_finalizers(new, old, f"{field}.finalizers")
    if not new.get("resourceVersion"):
        errors.append(fe.invalid(f"{field}.resourceVersion", "", "must be specified for an update"))
    errors += _validate_generation(new, f"{field}.generation")
    if (new.get("generation") or 0) < (old.get("generation") or 0):
        errors.append(fe.invalid(f"{field}.generation", new.get("generation") or 0, "must not be decremented"))
    for key, default in _IMMUTABLE.items():
        was, now = old.get(key, default), new.get(key, default)
        if was != now:
            errors += validate_immutable(now, was, f"{field}.{key}")
    if sound:
        return errors
    errors += validate_labels(new.get("labels") or {}, f"{field}.labels")
    errors += validate_annotations(new.get("annotations") or {}, f"{field}.annotations")
    errors += validate_owner_references(new.get("ownerReferences") or [], f"{field}.ownerReferences")
    errors += validate_managed_fields(new.get("managedFields") or [], f"{field}.managedFields")
    return errors


def validate_common_create(meta: Mapping[str, Any], *, namespaced: bool) -> list[FieldError]:
    """What the registry demands of every created object once its kind's own rules are satisfied."""
    return validate_object_meta(meta, namespaced=namespaced, name_validator=names.name_is_path_segment)


def validate_common_update(new: Mapping[str, Any], old: Mapping[str, Any], *, namespaced: bool) -> list[FieldError]:
    """What the registry demands of every updated object before its kind's own rules are asked."""
    errors = validate_object_meta(new, namespaced=namespaced, name_validator=names.name_is_path_segment)
    return errors + validate_object_meta_update(new, old, sound=not errors)


def validate_immutable(new: Any, old: Any, field: str) -> list[FieldError]:
    """`field is immutable` when the values differ."""
    return [] if new == old else [fe.invalid(field, new, "field is immutable")]


def _validate_namespace(namespace: str, namespaced: bool, field: str) -> list[FieldError]:
    if not namespaced:
        return [fe.forbidden(field, "not allowed on this type")] if namespace else []
    if not namespace:
        return [fe.required(field)]
    return [fe.invalid(field, namespace, text) for text in names.dns1123_label(namespace)]


def _validate_generation(meta: Mapping[str, Any], field: str) -> list[FieldError]:
    generation = meta.get("generation") or 0
    return [fe.invalid(field, generation, "must be greater than or equal to 0")] if generation < 0 else []


def validate_label_name(key: str, field: str) -> list[FieldError]:
    """What is wrong with a label's key."""
    return [fe.invalid(field, key, text) for text in names.qualified_name(key)]


def validate_labels(labels: Mapping[str, str], field: str) -> list[FieldError]:
    """What is wrong with the keys and values of labels."""
    errors: list[FieldError] = []
    for key, value in labels.items():
        errors += validate_label_name(key, field)
        errors += [fe.invalid(field, value, text) for text in names.label_value(value)]
    return errors


def validate_annotations(annotations: Mapping[str, str], field: str) -> list[FieldError]:
    """What is wrong with annotations: keys (in any case), and 262144 bytes of keys and values in all."""
    errors: list[FieldError] = []
    total = 0
    for key, value in annotations.items():
        errors += [fe.invalid(field, key, text) for text in names.qualified_name(key.lower())]
        total += len(key.encode()) + len(value.encode())
    if total > MAX_ANNOTATIONS:
        errors.append(fe.too_long(field, MAX_ANNOTATIONS))
    return errors


def validate_owner_references(references: Sequence[Mapping[str, Any]], field: str) -> list[FieldError]:
    """What is wrong with ownerReferences: incomplete ones, Events as owners, more than one controller."""
    errors: list[FieldError] = []
    first_controller = ""
    for index, reference in enumerate(references):
        errors += _validate_owner_reference(reference, f"{field}[{index}]")
        if reference.get("controller"):
            controller = f"{reference.get('kind') or ''}/{reference.get('name') or ''}"
            if first_controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{first_controller} and {controller}"
                )
                errors.append(fe.invalid(field, [_ordered(each) for each in references], detail))
            else:
                first_controller = controller
    return errors


def _validate_owner_reference(reference: Mapping[str, Any], field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    api_version = reference.get("apiVersion") or ""
    if not api_version:
        errors.append(fe.required(f"{field}.apiVersion", "must not be empty"))
    elif api_version.count("/") > 1 or api_version.endswith("/"):
        errors.append(fe.invalid(f"{field}.apiVersion", api_version, "must be <group>/<version> or <version>"))
    errors += [
        fe.required(f"{field}.{key}", "must not be empty") for key in _REQUIRED_OWNER_FIELDS if not reference.get(key)
    ]
    if api_version in ("v1", "/v1") and reference.get("kind") == "Event":
        errors.append(fe.invalid(field, _ordered(reference), "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def _ordered(reference: Mapping[str, Any]) -> fe.Struct:
    """The reference as Go marshals it: its first four fields always, in the type's order."""
    out = fe.Struct((key, reference.get(key) or "") for key in _OWNER_FIELDS[:4])
    out.update((key, reference[key]) for key in _OWNER_FIELDS[4:] if reference.get(key) is not None)
    return out


def validate_finalizer_name(name: str, field: str) -> list[FieldError]:
    """What is wrong with a finalizer as a qualified name."""
    return [fe.invalid(field, name, text) for text in names.qualified_name(name)]


def validate_finalizers(finalizers: Sequence[str], field: str) -> list[FieldError]:
    """What is wrong with finalizers: ill-formed names, and `orphan` beside `foregroundDeletion`."""
    errors = [error for name in finalizers for error in validate_finalizer_name(name, field)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        errors.append(fe.invalid(field, list(finalizers), "finalizer orphan and foregroundDeletion cannot be both set"))
    return errors


def validate_standard_finalizer(name: str, field: str) -> list[FieldError]:
    """Built-in kinds of most groups take only standard or domain-qualified finalizers."""
    if "/" in name or name in STANDARD_FINALIZERS:
        return []
    return [fe.invalid(field, name, "name is neither a standard finalizer name nor is it fully qualified")]


def finalizer_warnings(finalizers: Iterable[str], *, field: str = "metadata.finalizers") -> list[str]:
    """Warnings for a custom resource's finalizers that are ill-formed, or neither standard nor domain-qualified.

    Source: apiextensions-apiserver `pkg/registry/customresource/validator.go`.
    """
    warnings: list[str] = []
    for name in finalizers:
        here = f"{field}: {quote(name)}: "
        warnings += [here + text for text in names.qualified_name(name)]
        if "/" not in name and name not in STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            warnings.append(
                f"{here}prefer a domain-qualified finalizer name{path} to avoid accidental conflicts "
                "with other finalizer writers"
            )
    return warnings


def _validate_no_new_finalizers(new: Mapping[str, Any], old: Mapping[str, Any], field: str) -> list[FieldError]:
    extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if not extra:
        return []
    listed = ", ".join(quote(name) for name in extra)
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [fe.forbidden(field, detail)]


def validate_managed_fields(
    entries: Sequence[Mapping[str, Any]], field: str = "metadata.managedFields"
) -> list[FieldError]:
    """What is wrong with managedFields entries: operation, fieldsType, manager and subresource. Field sets are not
    looked at."""
    errors: list[FieldError] = []
    for index, entry in enumerate(entries):
        here = f"{field}[{index}]"
        operation = entry.get("operation") or ""
        if not operation:
            errors.append(fe.required(f"{here}.operation", "must not be empty"))
        elif operation not in ("Apply", "Update"):
            errors.append(fe.not_supported(f"{here}.operation", operation, ("Apply", "Update")))
        if entry.get("fieldsType") not in (None, "", "FieldsV1"):
            errors.append(fe.invalid(f"{here}.fieldsType", entry["fieldsType"], "must be `FieldsV1`"))
        errors += validate_field_manager(entry.get("manager") or "", f"{here}.manager")
        if len((entry.get("subresource") or "").encode()) > MAX_SUBRESOURCE:
            errors.append(fe.too_long(f"{here}.subresource", MAX_SUBRESOURCE))
    return errors


def dedup_owner_references(meta: dict[str, Any], *, after_mutating_admission: bool = False) -> list[str]:
    """Drop ownerReferences that repeat an earlier one, in place; the warning to answer, if any was dropped.

    Creates and updates do so before and after mutating admission, patches only after it.
    Source: apiserver `pkg/endpoints/handlers/create.go` (dedupOwnerReferencesAndAddWarning).
    """
    references = meta.get("ownerReferences")
    if not references or len(references) < 2:
        return []
    kept: list[Any] = []
    seen: set[tuple[Any, ...]] = set()
    repeated: list[str] = []
    for reference in references:
        identity = tuple(reference.get(key) for key in _OWNER_FIELDS)
        if identity in seen:
            repeated.append(reference.get("uid") or "")
        else:
            seen.add(identity)
            kept.append(reference)
    if not repeated:
        return []
    meta["ownerReferences"] = kept
    template = _DUPLICATES_AFTER_ADMISSION if after_mutating_admission else _DUPLICATES
    return [template + ", ".join(repeated)]


def domain_prefixed_path(text: str, path: str) -> list[FieldError]:
    """What is wrong with a key such as `acme.io/foo` in the field `path`.

    Source: apimachinery `pkg/util/validation/validation.go` (IsDomainPrefixedPath).
    """
    if not text:
        return [fe.required(path)]
    host, _, rest = text.partition("/")
    if not host or not rest:
        return [fe.invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [fe.invalid(path, host, why) for why in names.dns1123_subdomain(host)]
    if not _http_path.fullmatch(rest):
        errors.append(fe.invalid(path, rest, names.regex_message("Invalid path", _HTTP_PATH)))
    return errors
