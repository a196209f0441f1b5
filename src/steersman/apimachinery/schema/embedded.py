"""Objects inside objects: `x-kubernetes-embedded-resource` implies apiVersion, kind and metadata.

Source: apiextensions `pkg/apiserver/schema/objectmeta/{algorithm,validation}.go`.
"""

from __future__ import annotations

from typing import Any

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.go_values import DecodeError
from steersman.apimachinery.gvk import split_api_version
from steersman.apimachinery.meta import validate_object_meta
from steersman.apimachinery.object_meta import coerce_object_meta
from steersman.apimachinery.schema.structural import Node


class SchemaDecodeError(ValueError):
    """An embedded object's apiVersion, kind or metadata has a wrong type: the request body cannot be decoded (400)."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def has_embedded(node: Node) -> bool:
    """Whether an embedded resource stands anywhere in the schema."""
    below = [*node.properties.values(), node.additional_schema, node.items]
    return node.embedded or any(child is not None and has_embedded(child) for child in below)


def coerce(value: Any, node: Node, path: str, unknown: list[str], *, lenient: bool, root: bool = False) -> None:
    """Bring the metadata of embedded resources into ObjectMeta's form, in place; append unknown fields' paths.

    `root` treats the value itself as a whole object. `lenient` drops what has a wrong type; otherwise it raises
    SchemaDecodeError.
    """
    if isinstance(value, dict):
        if root or node.embedded:
            _coerce_object(value, path, unknown, lenient=lenient)
        for key, item in value.items():
            if key in node.properties:
                coerce(item, node.properties[key], fe.child(path, key), unknown, lenient=lenient)
            elif node.additional_schema is not None:
                coerce(item, node.additional_schema, f"{path}[{key}]", unknown, lenient=lenient)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            coerce(item, node.items, f"{path}[{index}]", unknown, lenient=lenient)


def _coerce_object(value: dict[str, Any], path: str, unknown: list[str], *, lenient: bool) -> None:
    dot = f"{path}." if path else ""
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            if not lenient:
                raise SchemaDecodeError(fe.invalid(f"{dot}{key}", value[key], "must be a string"))
            del value[key]
    if "metadata" not in value:
        return
    try:
        meta, strange = coerce_object_meta(value["metadata"], drop_malformed=lenient)
    except DecodeError as error:
        raise SchemaDecodeError(fe.invalid(f"{dot}metadata", value["metadata"], str(error))) from None
    value["metadata"] = meta
    unknown.extend(f"{dot}{field}" for field in strange)


def check_embedded(value: Any, node: Node, path: str = "", *, root: bool = False) -> list[FieldError]:
    """What is wrong with apiVersion, kind and metadata of embedded resources; `root`: of the value itself too."""
    errors: list[FieldError] = []
    if isinstance(value, dict):
        if root or node.embedded:
            errors += _check_object(value, f"{path}." if path else "")
        for key, item in value.items():
            if key in node.properties:
                errors += check_embedded(item, node.properties[key], fe.child(path, key))
            elif node.additional_schema is not None:
                errors += check_embedded(item, node.additional_schema, f"{path}[{key}]")
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            errors += check_embedded(item, node.items, f"{path}[{index}]")
    return errors


def _check_object(value: dict[str, Any], dot: str) -> list[FieldError]:
    errors = [fe.required(f"{dot}{key}") for key in ("apiVersion", "kind") if key not in value]
    if "apiVersion" in value:
        errors += _check_api_version(value["apiVersion"], f"{dot}apiVersion")
    if "kind" in value:
        errors += _check_kind(value["kind"], f"{dot}kind")
    if "metadata" in value:
        try:
            meta, _ = coerce_object_meta(value["metadata"])
        except DecodeError as error:
            return [*errors, fe.invalid(f"{dot}metadata", value["metadata"], str(error))]
        errors += validate_object_meta(
            {"name": "fakename", **meta},
            namespaced=bool(meta.get("namespace")),
            name_validator=names.name_is_path_segment,
            field=f"{dot}metadata",
        )
    return errors


def _check_api_version(value: Any, field: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [fe.invalid(field, value, "must be a string")]
    if not value:
        return [fe.invalid(field, value, "must not be empty")]
    try:
        split_api_version(value)
    except ValueError as error:
        return [fe.invalid(field, value, str(error))]
    return []


def _check_kind(value: Any, field: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [fe.invalid(field, value, "must be a string")]
    if not value:
        return [fe.invalid(field, value, "must not be empty")]
    errors = names.dns1035_label(value.lower())
    if not errors:
        return []
    return [fe.invalid(field, value, "may have mixed case, but should otherwise match: " + ",".join(errors))]
