"""Rules for the parts of a version: deprecation, subresources, printer columns, selectable fields.

Source: apiextensions `pkg/apis/apiextensions/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steersman.api.apiextensions.field_paths import resolve_field_path
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

MAX_SELECTABLE_FIELDS = 8
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")


def deprecation_errors(version: Mapping[str, Any], path: str) -> list[FieldError]:
    """What is wrong with a version's deprecationWarning."""
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    details = []
    if not version.get("deprecated"):
        details.append("can only be set for deprecated versions")
    else:
        if len(warning.encode()) > 256:
            details.append("must be <= 256 characters long")
        if not warning:
            details.append("must not be an empty string")
        position = next((index for index, char in enumerate(warning) if not char.isprintable()), None)
        if position is not None:
            offset = len(warning[:position].encode())
            details.append(
                f"must only contain printable UTF-8 characters; non-printable character found at index {offset}"
            )
    return [fe.invalid(f"{path}.deprecationWarning", warning, detail) for detail in details]


def subresource_errors(subresources: Mapping[str, Any] | None, path: str) -> list[FieldError]:
    """What is wrong with the paths of the scale subresource."""
    scale = (subresources or {}).get("scale")
    if scale is None:
        return []
    errors: list[FieldError] = []
    for key, start in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        field, value = f"{path}.scale.{key}", scale.get(key) or ""
        if not value:
            errors.append(fe.required(field))
        else:
            wrong = json_path_errors(value, field)
            if not wrong and not value.startswith(start):
                wrong = [fe.invalid(field, value, f"should be a json path under {start[:-1]}")]
            errors += wrong
    selector = scale.get("labelSelectorPath")
    if selector:
        field = f"{path}.scale.labelSelectorPath"
        wrong = json_path_errors(selector, field)
        if not wrong and not selector.startswith((".spec.", ".status.")):
            wrong = [fe.invalid(field, selector, "should be a json path under either .spec or .status")]
        errors += wrong
    return errors


def json_path_errors(value: str, field: str) -> list[FieldError]:
    """A simple JSONPath starts with a dot."""
    if not value:
        return [fe.invalid(field, value, "must not be empty")]
    if value[0] != ".":
        return [fe.invalid(field, value, "must be a simple json path starting with .")]
    return []


def column_errors(column: Mapping[str, Any], path: str) -> list[FieldError]:
    """What is wrong with a printer column."""
    errors = []
    if not column.get("name"):
        errors.append(fe.required(f"{path}.name"))
    kind, format_name = column.get("type") or "", column.get("format") or ""
    types = f"must be one of {','.join(COLUMN_TYPES)}"
    if not kind:
        errors.append(fe.required(f"{path}.type", types))
    elif kind not in COLUMN_TYPES:
        errors.append(fe.invalid(f"{path}.type", kind, types))
    if format_name and format_name not in COLUMN_FORMATS:
        errors.append(fe.invalid(f"{path}.format", format_name, f"must be one of {','.join(COLUMN_FORMATS)}"))
    json_path = column.get("jsonPath") or ""
    if not json_path:
        return [*errors, fe.required(f"{path}.JSONPath")]
    return errors + json_path_errors(json_path, f"{path}.JSONPath")


def selectable_field_errors(
    fields: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], path: str, *, allow_too_many: bool = False
) -> list[FieldError]:
    """What is wrong with selectable fields: paths to nowhere, into metadata, to lists; repeated; more than eight."""
    errors = []
    seen: set[tuple[str, ...]] = set()
    for index, selectable in enumerate(fields):
        field, value = f"{path}[{index}].jsonPath", selectable.get("jsonPath") or ""
        if not value:
            errors.append(fe.required(field))
            continue
        try:
            steps, found = resolve_field_path(value, schema, arrays=False)
        except ValueError as error:
            errors.append(fe.invalid(field, value, f"is an invalid path: {error}"))
            continue
        if steps[0] == "metadata":
            errors.append(fe.invalid(field, value, "must not point to fields in metadata"))
        if not isinstance(found, Mapping) or found.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            errors.append(fe.invalid(field, value, detail))
        if steps in seen:
            errors.append(fe.duplicate(field, value))
        seen.add(steps)
    if len(seen) > MAX_SELECTABLE_FIELDS and not allow_too_many:
        errors.append(fe.too_many(path, len(seen), MAX_SELECTABLE_FIELDS))
    return errors
