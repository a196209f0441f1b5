"""The published schemas of a custom resource: its kind's and its list's, for OpenAPI v3 and for v2.

Source: apiextensions-apiserver `pkg/controller/openapi/builder/builder.go`, `pkg/controller/openapi/v2/conversion.go`,
`pkg/apiserver/schema/{kubeopenapi,unfold}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steersman.apimachinery.openapi.resources import GVK_EXTENSION, gvk_value, model_name

Schema = dict[str, Any]

V3_PREFIX = "#/components/schemas/"
V2_PREFIX = "#/definitions/"
SELECTABLE_EXTENSION = "x-kubernetes-selectable-fields"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_API_VERSION = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized "
    "schemas to the latest internal value, and may reject unrecognized values. "
    f"More info: {_CONVENTIONS}#resources"
)
_KIND = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the "
    "endpoint the client submits requests to. Cannot be updated. In CamelCase. "
    f"More info: {_CONVENTIONS}#types-kinds"
)
_EMBEDDED_API_VERSION = (
    f"apiVersion defines the versioned schema of this representation of an object. More info: {_CONVENTIONS}#resources"
)
_EMBEDDED_KIND = (
    f"kind is a string value representing the type of this object. In CamelCase. More info: {_CONVENTIONS}#types-kinds"
)
_METADATA = f"Standard object's metadata. More info: {_CONVENTIONS}#metadata"
_LIST_METADATA = f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds"

_WHEN_SET = (
    "type",
    "format",
    "title",
    "description",
    "pattern",
    "nullable",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "uniqueItems",
    "required",
    "externalDocs",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
)
_WHEN_PRESENT = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")
_NUMBERS = ("maximum", "minimum", "multipleOf", "default", "example")
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_EITHER = [{"type": "integer"}, {"type": "string"}]


def kind_schema(
    schema: Mapping[str, Any] | None,
    group: str,
    version: str,
    kind: str,
    *,
    v2: bool = False,
    preserve_unknown_fields: bool = False,
    selectable: Sequence[str] = (),
) -> Schema:
    """The definition of a custom resource's kind.

    `schema` is the version's openAPIV3Schema, structural; None publishes an object with any fields, and so does, in
    v2, one that preserves unknown fields at its root (kubectl would else refuse them). `selectable` are paths of
    selectable fields without the leading dot.
    """
    published: Schema
    if schema is None or (v2 and (preserve_unknown_fields or schema.get("x-kubernetes-preserve-unknown-fields"))):
        published = {"type": "object"}
    else:
        published = convert_to_v2(schema) if v2 else convert(schema)
        properties = published.setdefault("properties", {})
        properties["apiVersion"] = {"description": _API_VERSION, "type": "string"}
        properties["kind"] = {"description": _KIND, "type": "string"}
        properties["metadata"] = _described_reference(f"{_META}ObjectMeta", _METADATA, v2=v2)
        _add_embedded(published, v2=v2)
    published[GVK_EXTENSION] = [gvk_value(group, version, kind)]
    return _with_selectable(published, selectable)


def list_schema(
    group: str,
    version: str,
    kind: str,
    list_kind: str,
    plural: str,
    *,
    v2: bool = False,
    selectable: Sequence[str] = (),
) -> Schema:
    """The definition of a custom resource's list kind."""
    item = {"$ref": (V2_PREFIX if v2 else V3_PREFIX) + model_name(group, version, kind)}
    published: Schema = {
        "description": f"{list_kind} is a list of {kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"description": _API_VERSION, "type": "string"},
            "items": {"description": f"List of {plural}. More info: {_CONVENTIONS}", "type": "array", "items": item},
            "kind": {"description": _KIND, "type": "string"},
            "metadata": _described_reference(f"{_META}ListMeta", _LIST_METADATA, v2=v2),
        },
        GVK_EXTENSION: [gvk_value(group, version, list_kind)],
    }
    return _with_selectable(published, selectable)


def convert(schema: Mapping[str, Any]) -> Schema:
    """A structural schema as OpenAPI v3 shows it: empty keywords dropped, int-or-string spelled out."""
    out = _with_parts(schema, convert)
    additional = schema.get("additionalProperties")
    if additional is not None:
        out["additionalProperties"] = additional if isinstance(additional, bool) else convert(additional)
    _spell_out_int_or_string(out)
    return out


def convert_to_v2(schema: Mapping[str, Any]) -> Schema:
    """A structural schema as OpenAPI v2 can show it.

    Junctors, defaults and `nullable` go; what is nullable or preserves unknown fields loses its type and its
    properties, so that clients which know only v2 accept every value there.
    """
    out = _keywords(schema)
    out.pop("default", None)
    properties, items = schema.get("properties") or {}, schema.get("items")
    nullable = bool(out.pop("nullable", False))
    preserves = "x-kubernetes-preserve-unknown-fields" in out
    if nullable or preserves:
        properties, items = {}, None
    if nullable or (items is None and out.get("type") == "array") or (preserves and out.get("type") == "object"):
        out.pop("type", None)
    if items is not None:
        out["items"] = convert_to_v2(items)
    if properties:
        out["properties"] = {name: convert_to_v2(item) for name, item in properties.items()}
    additional = schema.get("additionalProperties")
    if additional is not None:
        out["additionalProperties"] = additional if isinstance(additional, bool) else convert_to_v2(additional)
    required = _required_in_v2(schema, properties)
    out.pop("required", None)
    if required:
        out["required"] = required
    return out


def _required_in_v2(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> list[str]:
    """Names of required properties, without those that may be null."""
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping) and additional.get("nullable"):
        return []
    return [name for name in schema.get("required") or () if not (properties.get(name) or {}).get("nullable")]


def _keywords(schema: Mapping[str, Any]) -> Schema:
    """A schema's own keywords, without those that hold other schemas."""
    out: Schema = {name: schema[name] for name in _WHEN_SET if schema.get(name)}
    for name in _WHEN_PRESENT:
        if schema.get(name) is not None:
            out[name] = schema[name]
    for name in _NUMBERS:
        if schema.get(name) is not None:
            out[name] = whole_numbers(schema[name])
    if schema.get("enum"):
        out["enum"] = whole_numbers(schema["enum"])
    return out


def _convert_nested(schema: Mapping[str, Any]) -> Schema:
    """A schema inside a junctor: value validation only; additionalProperties are not published there."""
    return _with_parts(schema, _convert_nested)


def _with_parts(schema: Mapping[str, Any], convert_part: Callable[[Mapping[str, Any]], Schema]) -> Schema:
    """The keywords, what is in junctors, and items and properties by `convert_part`."""
    out = _keywords(schema)
    for name in _JUNCTORS:
        if schema.get(name):
            out[name] = [_convert_nested(item) for item in schema[name]]
    if schema.get("not") is not None:
        out["not"] = _convert_nested(schema["not"])
    if schema.get("items") is not None:
        out["items"] = convert_part(schema["items"])
    if schema.get("properties"):
        out["properties"] = {name: convert_part(item) for name, item in schema["properties"].items()}
    return out


def _spell_out_int_or_string(out: Schema) -> None:
    if "x-kubernetes-int-or-string" not in out or out.get("anyOf") == _EITHER:
        return
    all_of = out.get("allOf") or []
    if all_of and all_of[0] == {"anyOf": _EITHER}:
        return
    if "anyOf" in out:
        out["allOf"] = [{"anyOf": list(_EITHER)}, *all_of]
    else:
        out["anyOf"] = list(_EITHER)


def _add_embedded(schema: Schema, *, v2: bool) -> None:
    """Give every embedded resource the fields that all objects have."""
    for item in (schema.get("properties") or {}).values():
        _add_embedded(item, v2=v2)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            _add_embedded(schema[name], v2=v2)
    if not schema.get("x-kubernetes-embedded-resource") or (v2 and schema.get("x-kubernetes-preserve-unknown-fields")):
        return
    properties = schema.setdefault("properties", {})
    properties["apiVersion"] = {"description": _EMBEDDED_API_VERSION, "type": "string"}
    properties["kind"] = {"description": _EMBEDDED_KIND, "type": "string"}
    properties["metadata"] = _described_reference(f"{_META}ObjectMeta", _METADATA, v2=v2)
    required = schema.get("required") or []
    schema["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]


def _described_reference(model: str, description: str, *, v2: bool) -> Schema:
    if v2:
        return {"description": description, "$ref": V2_PREFIX + model}
    return {"description": description, "allOf": [{"$ref": V3_PREFIX + model}]}


def _with_selectable(schema: Schema, selectable: Sequence[str]) -> Schema:
    if selectable:
        schema[SELECTABLE_EXTENSION] = [{"fieldPath": path} for path in selectable]
    return schema


def whole_numbers(value: Any) -> Any:
    """The value with floats that have no fraction as integers, which is how Go prints them; the given one is kept."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return value
