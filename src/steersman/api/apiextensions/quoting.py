"""How errors quote parts of a CRD: as JSON of upstream's internal structs, every field in its order.

Source: apiextensions `pkg/apis/apiextensions/{types,types_jsonschema}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steersman.apimachinery.field_errors import Struct

_Quote = Callable[[Any], Any]


def _plain(value: Any) -> Any:
    return value


def _text(value: Any) -> Any:
    return value or ""


def _flag(value: Any) -> Any:
    return bool(value)


def _schemas(value: Any) -> Any:
    return [quote_schema(schema) for schema in value] if value is not None else None


def _schema_map(value: Any) -> Any:
    return {name: quote_schema(schema) for name, schema in value.items()} if value is not None else None


def _optional_schema(value: Any) -> Any:
    return quote_schema(value) if value is not None else None


def _schema_or_bool(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, bool):
        return Struct(Allows=value, Schema=None)
    return Struct(Allows=True, Schema=quote_schema(value))


def quote_items(value: Any) -> Any:
    """`items`: one schema, or a list of schemas."""
    if value is None:
        return None
    if isinstance(value, list):
        return Struct(Schema=None, JSONSchemas=_schemas(value))
    return Struct(Schema=quote_schema(value), JSONSchemas=None)


def _dependencies(value: Any) -> Any:
    if value is None:
        return None
    return {
        name: Struct(Schema=None, Property=item)
        if isinstance(item, list)
        else Struct(Schema=quote_schema(item), Property=None)
        for name, item in value.items()
    }


def _docs(value: Any) -> Any:
    if value is None:
        return None
    return Struct(Description=value.get("description") or "", URL=value.get("url") or "")


def quote_rule(rule: Mapping[str, Any]) -> Struct:
    """One of `x-kubernetes-validations`."""
    return Struct(
        Rule=rule.get("rule") or "",
        Message=rule.get("message") or "",
        MessageExpression=rule.get("messageExpression") or "",
        Reason=rule.get("reason"),
        FieldPath=rule.get("fieldPath") or "",
        OptionalOldSelf=rule.get("optionalOldSelf"),
    )


def _rules(value: Any) -> Any:
    return [quote_rule(rule) for rule in value] if value is not None else None


# (field of the internal struct, JSON keyword, how its value is quoted)
SCHEMA_FIELDS: tuple[tuple[str, str, _Quote], ...] = (
    ("ID", "id", _text),
    ("Schema", "$schema", _text),
    ("Ref", "$ref", _plain),
    ("Description", "description", _text),
    ("Type", "type", _text),
    ("Nullable", "nullable", _flag),
    ("Format", "format", _text),
    ("Title", "title", _text),
    ("Default", "default", _plain),
    ("Maximum", "maximum", _plain),
    ("ExclusiveMaximum", "exclusiveMaximum", _flag),
    ("Minimum", "minimum", _plain),
    ("ExclusiveMinimum", "exclusiveMinimum", _flag),
    ("MaxLength", "maxLength", _plain),
    ("MinLength", "minLength", _plain),
    ("Pattern", "pattern", _text),
    ("MaxItems", "maxItems", _plain),
    ("MinItems", "minItems", _plain),
    ("UniqueItems", "uniqueItems", _flag),
    ("MultipleOf", "multipleOf", _plain),
    ("Enum", "enum", _plain),
    ("MaxProperties", "maxProperties", _plain),
    ("MinProperties", "minProperties", _plain),
    ("Required", "required", _plain),
    ("Items", "items", quote_items),
    ("AllOf", "allOf", _schemas),
    ("OneOf", "oneOf", _schemas),
    ("AnyOf", "anyOf", _schemas),
    ("Not", "not", _optional_schema),
    ("Properties", "properties", _schema_map),
    ("AdditionalProperties", "additionalProperties", _schema_or_bool),
    ("PatternProperties", "patternProperties", _schema_map),
    ("Dependencies", "dependencies", _dependencies),
    ("AdditionalItems", "additionalItems", _schema_or_bool),
    ("Definitions", "definitions", _schema_map),
    ("ExternalDocs", "externalDocs", _docs),
    ("Example", "example", _plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", _plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", _flag),
    ("XIntOrString", "x-kubernetes-int-or-string", _flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", _plain),
    ("XListType", "x-kubernetes-list-type", _plain),
    ("XMapType", "x-kubernetes-map-type", _plain),
    ("XValidations", "x-kubernetes-validations", _rules),
)


def quote_schema(schema: Mapping[str, Any]) -> Struct:
    """A schema (JSONSchemaProps)."""
    return Struct({name: convert(schema.get(keyword)) for name, keyword, convert in SCHEMA_FIELDS})


def _quote_subresources(value: Any) -> Any:
    if value is None:
        return None
    scale = value.get("scale")
    quoted = None
    if scale is not None:
        quoted = Struct(
            SpecReplicasPath=scale.get("specReplicasPath") or "",
            StatusReplicasPath=scale.get("statusReplicasPath") or "",
            LabelSelectorPath=scale.get("labelSelectorPath"),
        )
    return Struct(Status=Struct() if value.get("status") is not None else None, Scale=quoted)


def _quote_column(column: Mapping[str, Any]) -> Struct:
    return Struct(
        Name=column.get("name") or "",
        Type=column.get("type") or "",
        Format=column.get("format") or "",
        Description=column.get("description") or "",
        Priority=column.get("priority") or 0,
        JSONPath=column.get("jsonPath") or "",
    )


def quote_versions(versions: list[dict[str, Any]]) -> list[Struct] | None:
    """`spec.versions`, as `internal_spec` leaves them."""
    out = []
    for version in versions:
        schema = version.get("schema")
        columns = version.get("additionalPrinterColumns")
        fields = version.get("selectableFields")
        quoted = Struct(
            Name=version.get("name") or "",
            Served=bool(version.get("served")),
            Storage=bool(version.get("storage")),
            Deprecated=bool(version.get("deprecated")),
            DeprecationWarning=version.get("deprecationWarning"),
            Schema=None if schema is None else Struct(OpenAPIV3Schema=_optional_schema(schema.get("openAPIV3Schema"))),
            Subresources=_quote_subresources(version.get("subresources")),
            AdditionalPrinterColumns=[_quote_column(column) for column in columns] if columns else None,
            SelectableFields=[Struct(JSONPath=each.get("jsonPath") or "") for each in fields] if fields else None,
        )
        out.append(quoted)
    return out or None
