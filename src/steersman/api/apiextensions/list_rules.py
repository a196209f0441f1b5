"""Rules for `x-kubernetes-list-type`, `-list-map-keys` and `-map-type`.

Source: apiextensions `pkg/apis/apiextensions/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.apiextensions.quoting import quote_items
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

Schema = Mapping[str, Any]
LIST_TYPE, MAP_TYPE, MAP_KEYS = "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-list-map-keys"


def list_type_errors(schema: Schema, path: str, *, require_atomic_sets: bool) -> list[FieldError]:
    """What is wrong with a schema's list type, map type and list keys."""
    map_type, list_type = schema.get(MAP_TYPE), schema.get(LIST_TYPE)
    errors: list[FieldError] = []
    if map_type is not None:
        errors += _type_errors(schema, "object", MAP_TYPE, path)
        if map_type not in ("atomic", "granular"):
            errors.append(fe.not_supported(f"{path}.{MAP_TYPE}", map_type, ("atomic", "granular")))
    if list_type is not None:
        mistyped = _type_errors(schema, "array", LIST_TYPE, path)
        errors += mistyped
        if not mistyped and require_atomic_sets:
            errors += _set_errors(schema, path)
        if list_type not in ("atomic", "set", "map"):
            errors.append(fe.not_supported(f"{path}.{LIST_TYPE}", list_type, ("atomic", "set", "map")))
    if schema.get(MAP_KEYS) and list_type != "map":
        detail = f"must be map if {MAP_KEYS} is non-empty"
        field = f"{path}.{LIST_TYPE}"
        errors.append(fe.required(field, detail) if list_type is None else fe.invalid(field, list_type, detail))
    if list_type == "map":
        errors += _map_errors(schema, path)
    return errors


def _type_errors(schema: Schema, wanted: str, keyword: str, path: str) -> list[FieldError]:
    kind = schema.get("type") or ""
    if kind == wanted:
        return []
    detail = f"must be {wanted} if {keyword} is specified"
    return [fe.invalid(f"{path}.type", kind, detail) if kind else fe.required(f"{path}.type", detail)]


def non_atomic_set_item(schema: Schema) -> str:
    """The keyword of a set's item schema that is not atomic; "" when nothing is wrong."""
    items = schema.get("items")
    if schema.get(LIST_TYPE) != "set" or not isinstance(items, Mapping):
        return ""
    if items.get("type") == "array":
        return "" if items.get(LIST_TYPE) in (None, "atomic") else LIST_TYPE
    return MAP_TYPE if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic" else ""


def _set_errors(schema: Schema, path: str) -> list[FieldError]:
    keyword = non_atomic_set_item(schema)
    if not keyword:
        return []
    # for both keywords upstream quotes the item's list type
    quoted = schema["items"].get(LIST_TYPE)
    return [fe.invalid(f"{path}.items.{keyword}", quoted, f"must be atomic as item of a list with {LIST_TYPE}=set")]


def _map_errors(schema: Schema, path: str) -> list[FieldError]:
    errors = []
    keys = schema.get(MAP_KEYS) or []
    items = schema.get("items")
    if not keys:
        errors.append(fe.required(f"{path}.{MAP_KEYS}", f"must not be empty if {LIST_TYPE} is map"))
    if items is None:
        errors.append(fe.required(f"{path}.items", f"must have a schema if {LIST_TYPE} is map"))
    elif not isinstance(items, Mapping):
        detail = f"must only have a single schema if {LIST_TYPE} is map"
        errors.append(fe.invalid(f"{path}.items", quote_items(items), detail))
    elif items.get("type") != "object":
        detail = f"must be object if parent array's {LIST_TYPE} is map"
        errors.append(fe.invalid(f"{path}.items.type", items.get("type") or "", detail))
    else:
        errors += _key_errors(keys, items, path)
    return errors


def _key_errors(keys: list[str], items: Schema, path: str) -> list[FieldError]:
    errors = []
    properties = items.get("properties") or {}
    seen: set[str] = set()
    for key in keys:
        if key not in properties:
            errors.append(fe.invalid(f"{path}.{MAP_KEYS}", keys, "entries must all be names of item properties"))
        elif properties[key].get("type") in ("array", "object"):
            detail = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            # upstream quotes the item's type, not the key's
            errors.append(fe.invalid(f"{path}.items.properties[{key}].type", items.get("type"), detail))
        if key in seen:
            errors.append(fe.invalid(f"{path}.{MAP_KEYS}", keys, "must not contain duplicate entries"))
        seen.add(key)
    return errors


def map_list_errors(schema: Schema, path: str) -> list[FieldError]:
    """Items of sets and maps may not be null, and a map's keys must be required or have defaults."""
    items, list_type = schema.get("items"), schema.get(LIST_TYPE)
    if not isinstance(items, Mapping) or list_type not in ("set", "map"):
        return []
    errors = []
    if items.get("nullable"):
        detail = f"cannot be nullable when {LIST_TYPE} is {list_type}"
        errors.append(fe.forbidden(f"{path}.items.nullable", detail))
    required = items.get("required") or ()
    for key in (schema.get(MAP_KEYS) or ()) if list_type == "map" else ():
        child = (items.get("properties") or {}).get(key)
        if child is None:
            continue
        field = f"{path}.items.properties[{key}]"
        why = f"this property is in {MAP_KEYS}, so it"
        if key not in required and child.get("default") is None:
            errors.append(fe.required(f"{field}.default", f"{why} must have a default or be a required property"))
        if child.get("nullable"):
            errors.append(fe.forbidden(f"{field}.nullable", f"{why} cannot be nullable"))
    return errors
