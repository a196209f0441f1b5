"""Field errors: what is wrong with which field, in the API's own words.

Source: apimachinery `pkg/util/validation/field/errors.go` and `pkg/util/errors` (aggregates).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from steersman._util.dataclass import dataclass
from steersman._util.gotext import format_float, format_json_float, quote

NOT_FOUND = "FieldValueNotFound"
REQUIRED = "FieldValueRequired"
DUPLICATE = "FieldValueDuplicate"
INVALID = "FieldValueInvalid"
NOT_SUPPORTED = "FieldValueNotSupported"
FORBIDDEN = "FieldValueForbidden"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
INTERNAL = "InternalError"
TYPE_INVALID = "FieldValueTypeInvalid"

_TITLES = {
    NOT_FOUND: "Not found",
    REQUIRED: "Required value",
    DUPLICATE: "Duplicate value",
    INVALID: "Invalid value",
    NOT_SUPPORTED: "Unsupported value",
    FORBIDDEN: "Forbidden",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
    INTERNAL: "Internal error",
    TYPE_INVALID: "Invalid value",
}
# Go's JSON encoder escapes what HTML would read as markup
_HTML = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
_WITHOUT_VALUE = frozenset({REQUIRED, FORBIDDEN, TOO_LONG, INTERNAL})


class Omit:
    """A bad value that messages do not repeat (upstream's OmitValueType)."""


OMIT = Omit()


class Struct(dict[str, Any]):
    """A value that is a struct upstream: it is quoted with its keys in their order, where other objects are sorted."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong: `type` is a cause's reason, `field` a path such as `spec.ports[0].name`."""

    type: str
    field: str
    value: Any = OMIT
    detail: str = ""

    def body(self) -> str:
        """The message without the field, as a cause carries it."""
        title = _TITLES[self.type]
        if self.type in _WITHOUT_VALUE or isinstance(self.value, Omit):
            text = title
        elif self.type == TYPE_INVALID and self.value is None:
            text = f"{title}: null"
        else:
            text = f"{title}: {format_value(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body()}"

    def cause(self) -> dict[str, str]:
        return {"reason": self.type, "message": self.body(), "field": self.field}


def format_value(value: Any) -> str:
    """A value as the API quotes it: strings in quotes, containers as JSON, null as `null`."""
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, int):
        return str(value)
    return format_json(value)


def format_json(value: Any) -> str:
    """A value as Go's encoding/json writes it."""
    if isinstance(value, dict):
        items = value.items() if isinstance(value, Struct) else sorted(value.items())
        return "{" + ",".join(f"{format_json(key)}:{format_json(item)}" for key, item in items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(format_json, value)) + "]"
    if isinstance(value, float):
        return format_json_float(value)
    return orjson.dumps(value).decode().translate(_HTML)


def aggregate(errors: Iterable[FieldError]) -> str:
    """Several errors as one text, each different message once: `a`, or `[a, b]`."""
    return aggregate_texts(str(error) for error in errors)


def aggregate_texts(errors: Iterable[str]) -> str:
    """As `aggregate`, of errors that are texts."""
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def child(path: str, name: str) -> str:
    """The path of a field; one without a name shows as an empty index. Source: field.Path.String."""
    if not name:
        return f"{path}[]"
    return f"{path}.{name}" if path else name


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(REQUIRED, field, "", detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(INVALID, field, value, detail)


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(TYPE_INVALID, field, value, detail)


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(DUPLICATE, field, value)


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(FORBIDDEN, field, "", detail)


def not_found(field: str, value: Any) -> FieldError:
    return FieldError(NOT_FOUND, field, value)


def not_supported(field: str, value: Any, supported: Sequence[Any]) -> FieldError:
    """Unsupported value, with the supported ones quoted and in the given order."""
    detail = "supported values: " + ", ".join(format_value(str(item)) for item in supported) if supported else ""
    return FieldError(NOT_SUPPORTED, field, value, detail)


def too_long(field: str, maximum: int) -> FieldError:
    """Text longer than `maximum` bytes; upstream says "bytes" whatever it counts."""
    unit = "byte" if maximum == 1 else "bytes"
    return FieldError(
        TOO_LONG, field, "", f"may not be more than {maximum} {unit}" if maximum >= 0 else "value is too long"
    )


def too_many(field: str, actual: int, maximum: int) -> FieldError:
    items = "item" if maximum == 1 else "items"
    return FieldError(
        TOO_MANY, field, actual, f"must have at most {maximum} {items}" if maximum >= 0 else "has too many items"
    )


def internal(field: str, detail: str) -> FieldError:
    return FieldError(INTERNAL, field, "", detail)
