"""Rules for the schemas in a CRD beyond their being structural.

Source: apiextensions `pkg/apis/apiextensions/validation/validation.go` (ValidateCustomResourceDefinitionOpenAPISchema,
validateCustomResourceDefinitionValidation).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from steersman.api.apiextensions.default_rules import default_errors
from steersman.api.apiextensions.field_paths import resolve_field_path
from steersman.api.apiextensions.list_rules import list_type_errors, map_list_errors
from steersman.api.apiextensions.quoting import SCHEMA_FIELDS, quote_schema
from steersman.api.apiextensions.structural_rules import structural_errors, unsupported_keyword
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.schema.pruning import META_FIELDS

Schema = Mapping[str, Any]

TYPES = ("array", "boolean", "integer", "number", "object", "string")
RULE_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_ALLOWED_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_BREAK = re.compile(r"[\n\r]")


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """How strict to be; updates of a CRD that already broke a rule may go on breaking it.

    The expressions of an `unchanged` schema may cost more than the limit.
    """

    require_schema: bool = True
    require_types: bool = True
    require_structural: bool = True
    require_pruned_defaults: bool = True
    require_atomic_sets: bool = True
    require_map_keys: bool = True
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class _Context:
    """`faulty` collects the paths of schemas that have errors of their own."""

    options: SchemaOptions
    allow_defaults: bool = True
    no_defaults_reason: str = ""
    in_meta: bool = False
    faulty: list[str] = field(default_factory=list)

    def without_defaults(self, reason: str) -> _Context:
        return replace(self, allow_defaults=False, no_defaults_reason=reason)


def validation_errors(
    validation: Mapping[str, Any] | None, path: str, *, status_enabled: bool, options: SchemaOptions
) -> list[FieldError]:
    """What is wrong with a `CustomResourceValidation`; `status_enabled`: its version has the status subresource."""
    schema = (validation or {}).get("openAPIV3Schema")
    if schema is None:
        return []
    path = f"{path}.openAPIV3Schema"
    errors = _root_errors(schema, path) if status_enabled else []
    if schema.get("nullable"):
        errors.append(fe.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    unsupported = unsupported_keyword(schema) if options.require_structural else ""
    structural: list[FieldError] = []
    if options.require_structural and not unsupported:
        structural = structural_errors(schema, path) or default_errors(
            schema, path, require_pruned=options.require_pruned_defaults
        )
    context = _Context(options)
    errors += structural + _schema_errors(schema, path, context, is_root=True)
    if not errors and unsupported:
        errors.append(fe.invalid(path, "", unsupported))
    if options.require_structural and not unsupported and not structural:
        errors += _expression_errors(schema, path, context)
    return errors


def _expression_errors(schema: Schema, path: str, context: _Context) -> list[FieldError]:
    if not _has_rules(schema):
        return []
    # loaded when a schema has rules: CEL takes a while to load
    from steersman.api.apiextensions.cel_rules import rule_errors

    return rule_errors(schema, path, faulty=context.faulty, unchanged=context.options.unchanged)


def _has_rules(value: Any) -> bool:
    """Whether `x-kubernetes-validations` is a key anywhere in a value."""
    if isinstance(value, Mapping):
        return "x-kubernetes-validations" in value or any(map(_has_rules, value.values()))
    return isinstance(value, list) and any(map(_has_rules, value))


def _root_errors(schema: Schema, path: str) -> list[FieldError]:
    """With the status subresource, status is judged by itself: the root may say nothing that would then be lost."""
    enabled = "if the status subresource is enabled"
    for name, keyword, convert in SCHEMA_FIELDS:
        value = schema.get(keyword)
        if value is None or (not value and convert(None) is not None):
            continue
        if keyword == "type":
            if value != "object":
                detail = f'only "object" is allowed as the type at the root of the schema {enabled}'
                return [fe.invalid(f"{path}.type", value, detail)]
        elif name not in _ALLOWED_AT_ROOT.split():
            detail = f"only [{_ALLOWED_AT_ROOT}] fields are allowed at the root of the schema {enabled}"
            return [fe.invalid(path, quote_schema(schema), detail)]
    return []


def walk_schemas(schema: Schema) -> Iterator[Schema]:
    """A schema and every schema inside it."""
    yield schema
    for name in ("allOf", "anyOf", "oneOf"):
        for child in schema.get(name) or ():
            yield from walk_schemas(child)
    for name in ("properties", "patternProperties", "definitions", "dependencies"):
        for child in (schema.get(name) or {}).values():
            if isinstance(child, Mapping):
                yield from walk_schemas(child)
    items = schema.get("items")
    children = items if isinstance(items, list) else [items]
    for child in [*children, schema.get("not"), schema.get("additionalProperties"), schema.get("additionalItems")]:
        if isinstance(child, Mapping):
            yield from walk_schemas(child)


def _schema_errors(schema: Schema, path: str, context: _Context, *, is_root: bool = False) -> list[FieldError]:
    first = _keyword_errors(schema, path, context)
    below = _children_errors(schema, path, context, is_root=is_root)
    last = []
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        last.append(fe.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    last += list_type_errors(schema, path, require_atomic_sets=context.options.require_atomic_sets)
    if context.options.require_map_keys:
        last += map_list_errors(schema, path)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        last += _rule_errors(rule, schema, f"{path}.x-kubernetes-validations[{index}]")
    if first or last:
        context.faulty.append(path)
    return first + below + last


def _keyword_errors(schema: Schema, path: str, context: _Context) -> list[FieldError]:
    errors = []
    kind = schema.get("type")
    if context.options.require_types and kind and kind not in TYPES:
        errors.append(fe.not_supported(f"{path}.type", kind, TYPES))
    if schema.get("default") is not None and not context.allow_defaults:
        errors.append(fe.forbidden(f"{path}.default", f"must not be set {context.no_defaults_reason}".rstrip()))
    for keyword in _UNSUPPORTED:
        value = schema.get(keyword)
        if value or (value is not None and keyword in ("additionalItems", "dependencies", "$ref")):
            errors.append(fe.forbidden(f"{path}.{keyword}", f"{keyword} is not supported"))
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        errors.append(fe.forbidden(f"{path}.type", detail))
    if isinstance(schema.get("items"), list) and schema["items"]:
        errors.append(fe.forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if context.in_meta and schema.get("x-kubernetes-embedded-resource"):
        detail = "must not be used inside of resource meta"
        errors.append(fe.forbidden(f"{path}.x-kubernetes-embedded-resource", detail))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(fe.forbidden(f"{path}.uniqueItems", detail))
    if schema.get("properties") and schema.get("additionalProperties", True) not in (None, True):
        detail = "additionalProperties and properties are mutual exclusive"
        errors.append(fe.forbidden(f"{path}.additionalProperties", detail))
    return errors


def _children_errors(schema: Schema, path: str, context: _Context, *, is_root: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        below = context
        if context.in_meta:
            below = context.without_defaults("inside additionalProperties applying to object metadata")
        errors += _schema_errors(additional, f"{path}.additionalProperties", below)
    for name, child in properties.items():
        below = context
        if (is_root or schema.get("x-kubernetes-embedded-resource")) and name in META_FIELDS:
            below = replace(below, in_meta=True)
            if is_root:
                below = below.without_defaults(f"in top-level {name}")
        errors += _schema_errors(child, f"{path}.properties[{name}]", below)
    for place, child in _other_children(schema):
        errors += _schema_errors(child, f"{path}.{place}", context)
    return errors


def _other_children(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Schemas inside a schema, apart from properties and additionalProperties, with their place."""
    if schema.get("not") is not None:
        yield "not", schema["not"]
    for name in ("allOf", "oneOf", "anyOf"):
        for index, branch in enumerate(schema.get(name) or ()):
            yield f"{name}[{index}]", branch
    for name, child in (schema.get("definitions") or {}).items():
        yield f"definitions[{name}]", child
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield "items", items
    for index, child in enumerate(items if isinstance(items, list) else ()):
        yield f"items[{index}]", child
    for name, child in (schema.get("dependencies") or {}).items():
        if isinstance(child, Mapping):
            yield f"dependencies[{name}]", child


def _rule_errors(rule: Mapping[str, Any], schema: Schema, path: str) -> list[FieldError]:
    """What is wrong with a rule apart from its expression."""
    text, message = rule.get("rule") or "", rule.get("message") or ""
    errors = []
    if not text.strip():
        errors.append(fe.required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        errors.append(fe.invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif _BREAK.search(message.strip()):
        errors.append(fe.invalid(f"{path}.message", message, "must not contain line breaks"))
    elif _BREAK.search(text.strip()) and not message.strip():
        detail = "message must be specified if rule contains line breaks"
        errors.append(fe.required(f"{path}.message", detail))
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        detail = "messageExpression must be non-empty if specified"
        errors.append(fe.required(f"{path}.messageExpression", detail))
    reason = rule.get("reason")
    if reason is not None and reason not in RULE_REASONS:
        errors.append(fe.not_supported(f"{path}.reason", reason, RULE_REASONS))
    return errors + _field_path_errors(rule.get("fieldPath") or "", schema, f"{path}.fieldPath")


def _field_path_errors(field_path: str, schema: Schema, path: str) -> list[FieldError]:
    errors = []
    if field_path and not field_path.strip():
        errors.append(fe.invalid(path, field_path, "must be non-empty if specified"))
    if _BREAK.search(field_path):
        errors.append(fe.invalid(path, field_path, "must not contain line breaks"))
    if field_path and not unsupported_keyword(schema):
        try:
            resolve_field_path(field_path, schema)
        except ValueError:
            errors.append(fe.invalid(path, field_path, "must be a valid path"))
    return errors
