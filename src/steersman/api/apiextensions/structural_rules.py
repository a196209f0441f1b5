"""The rules that make a schema structural.

Source: apiextensions `pkg/apiserver/schema/{convert,validation,complete}.go` (KEP-1089, vanilla OpenAPI subset).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.schema.patterns import PatternError, compile_pattern

Schema = Mapping[str, Any]
Level = Literal["root", "item", "field"]

_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_UNSUPPORTED = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)
_JUNCTORS = ("anyOf", "allOf", "oneOf")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_FORBIDDEN_INSIDE = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
_DEFINED = frozenset({"default", "x-kubernetes-list-type", "x-kubernetes-map-type"})


def unsupported_keyword(schema: Schema) -> str:
    """Why a schema cannot be read as a structural one at all, "" when it can."""
    for keyword, shown in _UNSUPPORTED:
        value = schema.get(keyword)
        if value or (keyword == "additionalItems" and value is not None):
            return f"OpenAPIV3Schema '{shown}' is not supported"
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(schema.get("items"), list) and schema["items"]:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    for child in _all_children(schema):
        reason = unsupported_keyword(child)
        if reason:
            return reason
    return ""


def _all_children(schema: Schema) -> list[Schema]:
    children = [child for name in _JUNCTORS for child in schema.get(name) or ()]
    children += (schema.get("properties") or {}).values()
    for name in ("not", "items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            children.append(schema[name])
    return children


def structural_errors(schema: Schema, path: str) -> list[FieldError]:
    """What keeps a schema from being structural, sorted by text."""
    errors = _invariants(schema, "root", path) + _completeness(schema, schema, path, path)
    return sorted(errors, key=str)


def _invariants(schema: Schema, level: Level, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    items = schema.get("items")
    if schema.get("type") == "array" and items is None:
        errors.append(fe.required(f"{path}.items", "must be specified"))
    if isinstance(items, Mapping):
        errors += _invariants(items, "item", f"{path}.items")
    properties = schema.get("properties") or {}
    for name, child in properties.items():
        errors += _invariants(child, "field", f"{path}.properties[{name}]")
    additional = schema.get("additionalProperties")
    if additional is not None and level == "root":
        errors.append(fe.forbidden(f"{path}.additionalProperties", "must not be used at the root"))
    if isinstance(additional, Mapping):
        errors += _invariants(additional, "field", f"{path}.additionalProperties")
    errors += _extension_errors(schema, path)
    errors += _value_validation(
        schema, path, skip_any_of=_is_int_or_string(schema), skip_first_all_of=_starts_int_or_string(schema)
    )
    errors += _type_errors(schema, level, path)
    return errors + _metadata_errors(schema, properties, level, path)


def _extension_errors(schema: Schema, path: str) -> list[FieldError]:
    if not schema.get("x-kubernetes-int-or-string"):
        return []
    return [
        fe.invalid(f"{path}.{keyword}", True, "must be false if x-kubernetes-int-or-string is true")
        for keyword in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
        if schema.get(keyword)
    ]


def _type_errors(schema: Schema, level: Level, path: str) -> list[FieldError]:
    errors = []
    kind = schema.get("type") or ""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(fe.invalid(f"{path}.type", kind, detail) if kind else fe.required(f"{path}.type", detail))
    elif not kind and not free:
        errors.append(fe.required(f"{path}.type", _EMPTY_TYPE[level]))
    if embedded and schema.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(fe.forbidden(f"{path}.additionalProperties", detail))
    if level == "root" and kind and kind != "object":
        errors.append(fe.invalid(f"{path}.type", kind, "must be object at the root"))
    return errors


def _metadata_errors(schema: Schema, properties: Mapping[str, Schema], level: Level, path: str) -> list[FieldError]:
    errors = []
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    if level == "root" or embedded:
        for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
            if name in properties and (properties[name].get("type") or "") != wanted:
                found = properties[name].get("type") or ""
                errors.append(fe.invalid(f"{path}.properties[{name}].type", found, f"must be {wanted}"))
    if level == "root" and "metadata" in properties and not _restricts_names_only(properties["metadata"]):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        errors.append(fe.forbidden(f"{path}.properties[metadata]", detail))
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not properties:
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(fe.required(f"{path}.properties", detail))
    return errors


_SAYS_MUCH_EMPTY = frozenset({"additionalProperties", "items", "not"})


def _restricts_names_only(metadata: Schema) -> bool:
    named = set(metadata.get("properties") or ()) <= {"name", "generateName"}
    allowed = {"type", "default"} | ({"properties"} if named else set())
    said = {key for key, value in metadata.items() if value or (key in _SAYS_MUCH_EMPTY and value is not None)}
    bounds = {key for key, value in metadata.items() if value == 0 and value is not False}
    return not (said | bounds) - allowed


def _is_int_or_string(schema: Schema) -> bool:
    return [_said(branch) for branch in schema.get("anyOf") or ()] == _INT_OR_STRING


def _starts_int_or_string(schema: Schema) -> bool:
    return bool(schema.get("allOf")) and _is_int_or_string(schema["allOf"][0])


def _said(schema: Schema) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if value not in (None, False, "", [], {})}


def _value_validation(
    schema: Schema, path: str, *, skip_any_of: bool = False, skip_first_all_of: bool = False
) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in _JUNCTORS:
        if name == "anyOf" and skip_any_of:
            continue
        for index, branch in enumerate(schema.get(name) or ()):
            exempt = name == "allOf" and index == 0 and skip_first_all_of
            errors += _nested(branch, f"{path}.{name}[{index}]", skip_any_of=exempt)
    if schema.get("not") is not None:
        errors += _nested(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            errors.append(fe.invalid(f"{path}.pattern", pattern, detail))
    return errors


def _nested(schema: Schema, path: str, *, skip_any_of: bool = False) -> list[FieldError]:
    """The rules inside a junctor, where only values may be judged and nothing new specified."""
    errors = _value_validation(schema, path, skip_any_of=skip_any_of)
    if isinstance(schema.get("items"), Mapping):
        errors += _nested(schema["items"], f"{path}.items")
    properties = schema.get("properties") or {}
    for name, child in properties.items():
        errors += _nested(child, f"{path}.properties[{name}]")
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping) or additional is True:
        errors.append(fe.forbidden(f"{path}.additionalProperties", "must be undefined to be structural"))
    for keyword, detail in _FORBIDDEN_INSIDE:
        value = schema.get(keyword)
        if value or (keyword in _DEFINED and value is not None):
            errors.append(fe.forbidden(f"{path}.{keyword}", detail))
    if "metadata" in properties:
        errors.append(fe.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))
    return errors


def _completeness(judged: Schema, specified: Schema | None, path: str, judged_path: str) -> list[FieldError]:
    """Everything that a junctor judges must be specified outside of junctors too."""
    if specified is None:
        return [fe.required(path, f"because it is defined in {judged_path}")]
    errors: list[FieldError] = []
    if judged.get("not") is not None:
        errors += _nested_completeness(judged["not"], specified, path, f"{judged_path}.not")
    for name in _JUNCTORS:
        for index, branch in enumerate(judged.get(name) or ()):
            errors += _nested_completeness(branch, specified, path, f"{judged_path}.{name}[{index}]")
    return errors


def _nested_completeness(judged: Schema, specified: Schema | None, path: str, judged_path: str) -> list[FieldError]:
    if specified is None:
        return [fe.required(path, f"because it is defined in {judged_path}")]
    errors = _completeness(judged, specified, path, judged_path)
    if isinstance(judged.get("items"), Mapping):
        errors += _nested_completeness(judged["items"], specified.get("items"), f"{path}.items", f"{judged_path}.items")
    properties = specified.get("properties") or {}
    for name, child in (judged.get("properties") or {}).items():
        here, there = f"{path}.properties[{name}]", f"{judged_path}.properties[{name}]"
        errors += _nested_completeness(child, properties.get(name), here, there)
    return errors
