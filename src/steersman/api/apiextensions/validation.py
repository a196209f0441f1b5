"""What a CustomResourceDefinition must be like, on create and on update.

Objects are JSON (apiextensions.k8s.io/v1), defaulted by `default_crd` before.

Source: apiextensions `pkg/apis/apiextensions/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steersman.api.apiextensions.approval import Approval, approval_state, is_protected_group
from steersman.api.apiextensions.conversion_rules import (
    ca_bundle_error,
    conversion_errors,
    enum_errors,
    knows_review_version,
)
from steersman.api.apiextensions.default_rules import has_unpruned_defaults
from steersman.api.apiextensions.hoisting import InternalSpec, internal_spec
from steersman.api.apiextensions.list_rules import map_list_errors, non_atomic_set_item
from steersman.api.apiextensions.quoting import quote_versions
from steersman.api.apiextensions.schema_rules import TYPES, SchemaOptions, validation_errors, walk_schemas
from steersman.api.apiextensions.structural_rules import structural_errors, unsupported_keyword
from steersman.api.apiextensions.version_rules import (
    column_errors,
    deprecation_errors,
    selectable_field_errors,
    subresource_errors,
)
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_immutable, validate_object_meta, validate_object_meta_update

Crd = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Options:
    schemas: SchemaOptions
    require_known_review: bool = True
    allow_bad_ca: bool = True
    kept_field_lists: frozenset[str] = frozenset()
    unchanged_schemas: frozenset[str] = frozenset()

    def schemas_of(self, version: str) -> SchemaOptions:
        return replace(self.schemas, unchanged=version in self.unchanged_schemas)


def validate_crd(crd: Crd) -> list[FieldError]:
    """All that is wrong with a new CRD."""
    spec = internal_spec(crd)
    required_name = f"{spec.names.get('plural') or ''}.{spec.raw.get('group') or ''}"

    def judge_name(name: str, prefix: bool) -> list[str]:
        found = names.name_is_dns_subdomain(name, prefix)
        return found if name == required_name else [*found, 'must be spec.names.plural+"."+spec.group']

    errors = validate_object_meta(crd.get("metadata") or {}, namespaced=False, name_validator=judge_name)
    errors += _spec_errors(spec, _Options(SchemaOptions()))
    errors += _status_errors(crd, spec)
    errors += _approval_errors(crd, None)
    return errors + _preserve_errors(crd, None)


def validate_crd_update(new: Crd, old: Crd) -> list[FieldError]:
    """All that is wrong with a CRD that replaces `old`; rules that `old` breaks already are not enforced."""
    spec, before = internal_spec(new), internal_spec(old)
    options = _Options(
        schemas=_tolerate(before),
        require_known_review=_knows_review(old),
        allow_bad_ca=_allows_bad_ca(old),
        kept_field_lists=_unchanged_field_lists(spec, before),
        unchanged_schemas=_unchanged_schemas(spec, before),
    )
    errors = validate_object_meta_update(new.get("metadata") or {}, old.get("metadata") or {})
    errors += _spec_errors(spec, options)
    if _is_true(old, "Established"):
        errors += validate_immutable(spec.raw.get("scope") or "", before.raw.get("scope") or "", "spec.scope")
        errors += validate_immutable(spec.names.get("kind") or "", before.names.get("kind") or "", "spec.names.kind")
    errors += validate_immutable(spec.raw.get("group") or "", before.raw.get("group") or "", "spec.group")
    plural, plural_before = spec.names.get("plural") or "", before.names.get("plural") or ""
    errors += validate_immutable(plural, plural_before, "spec.names.plural")
    errors += _status_errors(new, spec)
    errors += _approval_errors(new, old)
    return errors + _preserve_errors(new, old)


def validate_crd_status_update(new: Crd, old: Crd) -> list[FieldError]:
    """All that is wrong with a CRD written through /status."""
    errors = validate_object_meta_update(new.get("metadata") or {}, old.get("metadata") or {})
    return errors + _name_errors((new.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames")


def _spec_errors(spec: InternalSpec, options: _Options) -> list[FieldError]:
    group = spec.raw.get("group") or ""
    errors = _group_errors(group)
    errors += enum_errors(spec.raw.get("scope") or "", ("Cluster", "Namespaced"), "spec.scope")
    if not spec.preserve_unknown_fields:
        options = replace(options, schemas=replace(options.schemas, require_structural=True))
    errors += _presence_errors(spec, options.schemas)
    every = [schema for root in spec.schemas() for schema in walk_schemas(root)]
    if any(schema.get("default") is not None for schema in every) and spec.preserve_unknown_fields:
        detail = "must be false in order to use defaults in the schema"
        errors.append(fe.invalid("spec.preserveUnknownFields", True, detail))
        options = replace(options, schemas=replace(options.schemas, require_structural=True))
    if any(key.startswith("x-kubernetes-") for schema in every for key in schema):
        options = replace(options, schemas=replace(options.schemas, require_structural=True))
    errors += _version_errors(spec, options)
    for name in ("plural", "singular", "kind", "listKind"):
        if not spec.names.get(name):
            errors.append(fe.required(f"spec.names.{name}"))
    errors += _name_errors(spec.names, "spec.names")
    any_status = _has_status(spec.subresources) or any(_has_status(each.get("subresources")) for each in spec.versions)
    shared = options.schemas_of(spec.versions[0].get("name") or "" if spec.versions else "")
    errors += validation_errors(spec.validation, "spec.validation", status_enabled=any_status, options=shared)
    errors += subresource_errors(spec.subresources, "spec.subresources")
    for index, column in enumerate(spec.columns or ()):
        errors += column_errors(column, f"spec.additionalPrinterColumns[{index}]")
    if spec.selectable:
        kept = "" in options.kept_field_lists
        errors += _selectable_errors(spec.selectable, spec.validation, "spec", kept)
    return errors + _conversion_errors(spec, options)


def _conversion_errors(spec: InternalSpec, options: _Options) -> list[FieldError]:
    conversion = spec.raw.get("conversion")
    errors = []
    if conversion is not None and conversion.get("strategy") != "None" and spec.preserve_unknown_fields:
        detail = "must be None if spec.preserveUnknownFields is true"
        errors.append(fe.invalid("spec.conversion.strategy", conversion.get("strategy") or "", detail))
    return errors + conversion_errors(
        conversion,
        "spec.conversion",
        require_known_review=options.require_known_review,
        allow_bad_ca=options.allow_bad_ca,
    )


def _group_errors(group: str) -> list[FieldError]:
    if not group:
        return [fe.required("spec.group")]
    wrong = names.dns1123_subdomain(group)
    if wrong:
        return [fe.invalid("spec.group", group, ",".join(wrong))]
    if "." not in group:
        return [fe.invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _presence_errors(spec: InternalSpec, options: SchemaOptions) -> list[FieldError]:
    """Every version needs a schema."""
    if spec.has_shared_schema():
        return []
    if not options.require_schema and spec.preserve_unknown_fields:
        return []
    detail = "" if options.require_schema else "because otherwise all fields are pruned"
    return [
        fe.required(f"spec.versions[{index}].schema.openAPIV3Schema", detail)
        for index, version in enumerate(spec.versions)
        if (version.get("schema") or {}).get("openAPIV3Schema") is None
        and (options.require_schema or version.get("served"))
    ]


def _version_errors(spec: InternalSpec, options: _Options) -> list[FieldError]:
    errors: list[FieldError] = []
    per_version = any(version.get("subresources") is not None for version in spec.versions)
    for index, version in enumerate(spec.versions):
        path = f"spec.versions[{index}]"
        wrong = names.dns1035_label(version.get("name") or "")
        if wrong:
            errors.append(fe.invalid(f"{path}.name", version.get("name") or "", ",".join(wrong)))
        subresources = version.get("subresources") if per_version else spec.subresources
        errors += _one_version_errors(version, path, _has_status(subresources), options)
    listed = [version.get("name") or "" for version in spec.versions]
    if len(set(listed)) != len(listed):
        detail = "must contain unique version names"
        errors.append(fe.invalid("spec.versions", quote_versions(spec.versions), detail))
    if sum(bool(version.get("storage")) for version in spec.versions) != 1:
        detail = "must have exactly one version marked as storage version"
        quoted = quote_versions(spec.versions) if spec.versions else spec.raw.get("versions")
        errors.append(fe.invalid("spec.versions", quoted, detail))
    if listed and listed[0]:
        # upstream keeps the first version's name in a field of its own, and judges it there again
        wrong = names.dns1035_label(listed[0])
        errors += [fe.invalid("spec.version", listed[0], ",".join(wrong))] if wrong else []
    return errors


def _one_version_errors(
    version: Mapping[str, Any], path: str, status_enabled: bool, options: _Options
) -> list[FieldError]:
    errors = deprecation_errors(version, path)
    schema = version.get("schema")
    own = options.schemas_of(version.get("name") or "")
    errors += validation_errors(schema, f"{path}.schema", status_enabled=status_enabled, options=own)
    errors += subresource_errors(version.get("subresources"), f"{path}.subresources")
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        errors += column_errors(column, f"{path}.additionalPrinterColumns[{index}]")
    fields = version.get("selectableFields")
    if fields:
        kept = version.get("name") in options.kept_field_lists
        errors += _selectable_errors(fields, schema, path, kept)
    return errors


def _selectable_errors(
    fields: Sequence[Mapping[str, Any]], validation: Mapping[str, Any] | None, path: str, kept: bool
) -> list[FieldError]:
    schema = (validation or {}).get("openAPIV3Schema")
    if schema is None:
        top = path == "spec"
        detail = (
            "may only be set when validations.schema is included"
            if top
            else "may only be set when `version.schema.openAPIV3Schema` is not included"
        )
        return [fe.invalid(f"{path}.selectableFields", "", detail)]
    errors = []
    unsupported = unsupported_keyword(schema)
    if unsupported:
        errors.append(fe.invalid(f"{path}.schema.openAPIV3Schema", "", unsupported))
    return errors + selectable_field_errors(fields, schema, f"{path}.selectableFields", allow_too_many=kept)


def _has_status(subresources: Mapping[str, Any] | None) -> bool:
    return subresources is not None and subresources.get("status") is not None


def _name_errors(given: Mapping[str, Any], path: str) -> list[FieldError]:
    """The syntax of the names that are given."""
    errors = []
    for key, mixed_case in (("plural", False), ("singular", False), ("kind", True), ("listKind", True)):
        name = given.get(key) or ""
        wrong = names.dns1035_label(name.lower() if mixed_case else name) if name else []
        if wrong:
            hint = "may have mixed case, but should otherwise match: " if mixed_case else ""
            errors.append(fe.invalid(f"{path}.{key}", name, hint + ",".join(wrong)))
    errors += _label_errors(given.get("shortNames") or (), f"{path}.shortNames")
    if given.get("kind") and given.get("kind") == given.get("listKind"):
        detail = "kind and listKind may not be the same"
        errors.append(fe.invalid(f"{path}.listKind", given["listKind"], detail))
    return errors + _label_errors(given.get("categories") or (), f"{path}.categories")


def _label_errors(labels: Sequence[str], path: str) -> list[FieldError]:
    found = [(index, label, names.dns1035_label(label)) for index, label in enumerate(labels)]
    return [fe.invalid(f"{path}[{index}]", label, ",".join(wrong)) for index, label, wrong in found if wrong]


def _status_errors(crd: Crd, spec: InternalSpec) -> list[FieldError]:
    status = crd.get("status") or {}
    errors = _name_errors(status.get("acceptedNames") or {}, "status.acceptedNames")
    stored = status.get("storedVersions") or []
    path = "status.storedVersions"
    if not stored:
        return [*errors, fe.invalid(path, None, "must have at least one stored version")]
    listed = [version.get("name") or "" for version in spec.versions]
    for version in spec.versions:
        if version.get("storage") and version.get("name") not in stored:
            detail = f"must have the storage version {version.get('name') or ''}"
            errors.append(fe.invalid(path, list(stored), detail))
    for index, name in enumerate(stored):
        if name not in listed and name not in stored[index + 1 :]:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{name} and removes {name} from status.storedVersions"
            )
            errors.append(fe.invalid(f"{path}[{index}]", name, detail))
    return errors


def _approval_errors(new: Crd, old: Crd | None) -> list[FieldError]:
    if not is_protected_group((new.get("spec") or {}).get("group") or ""):
        return []
    state, reason = approval_state(new)
    if old is not None and approval_state(old)[0] is state:
        return []
    field = "metadata.annotations[api-approved.kubernetes.io]"
    if state is Approval.MISSING:
        return [fe.required(field, reason)]
    if state is Approval.INVALID:
        annotation = new["metadata"]["annotations"]["api-approved.kubernetes.io"]
        return [fe.invalid(field, annotation, reason)]
    return []


def _preserve_errors(new: Crd, old: Crd | None) -> list[FieldError]:
    if old is not None and internal_spec(old).preserve_unknown_fields:
        return []
    if not internal_spec(new).preserve_unknown_fields:
        return []
    detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [fe.invalid("spec.preserveUnknownFields", True, detail)]


def _tolerate(old: InternalSpec) -> SchemaOptions:
    """Which rules the old schemas follow, and so must be kept."""
    roots = list(old.schemas())
    every = [schema for root in roots for schema in walk_schemas(root)]
    structural = [not unsupported_keyword(root) and not structural_errors(root, "") for root in roots]
    unpruned = [fine and has_unpruned_defaults(root) for root, fine in zip(roots, structural, strict=True)]
    per_version = all((each.get("schema") or {}).get("openAPIV3Schema") is not None for each in old.versions)
    return SchemaOptions(
        require_schema=old.has_shared_schema() or per_version,
        require_types=all(schema.get("type") in (None, "", *TYPES) for schema in every),
        require_structural=all(structural),
        require_pruned_defaults=not any(unpruned),
        require_atomic_sets=not any(non_atomic_set_item(schema) for schema in every),
        require_map_keys=not any(map_list_errors(schema, "") for schema in every),
    )


def _webhook(crd: Crd) -> Mapping[str, Any]:
    conversion: Mapping[str, Any] = (crd.get("spec") or {}).get("conversion") or {}
    return conversion.get("webhook") or {}


def _knows_review(old: Crd) -> bool:
    return knows_review_version(_webhook(old).get("conversionReviewVersions") or ())


def _allows_bad_ca(old: Crd) -> bool:
    if not _is_true(old, "Established"):
        return True
    bundle: str = (_webhook(old).get("clientConfig") or {}).get("caBundle") or ""
    return bool(bundle and ca_bundle_error(bundle))


def _is_true(crd: Crd, condition: str) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == condition and each.get("status") == "True" for each in conditions)


def _unchanged_field_lists(new: InternalSpec, old: InternalSpec) -> frozenset[str]:
    """Versions ("" for all) whose selectable fields were too many before and stay as they are."""
    pairs = {"": (new.selectable, old.selectable)}
    before = {version.get("name"): version.get("selectableFields") for version in old.versions}
    for version in new.versions:
        name = version.get("name") or ""
        pairs[name] = (version.get("selectableFields"), before.get(name))
    return frozenset(name for name, (now, then) in pairs.items() if then and len(then) > 8 and now == then)


def _unchanged_schemas(new: InternalSpec, old: InternalSpec) -> frozenset[str]:
    """Versions whose schema stays as it is."""

    def schemas(spec: InternalSpec) -> dict[str, Any]:
        return {version.get("name") or "": version.get("schema") or spec.validation for version in spec.versions}

    before = schemas(old)
    return frozenset(name for name, schema in schemas(new).items() if name in before and before[name] == schema)
