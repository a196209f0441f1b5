"""The name under which a request's changes are recorded.

Source: apiserver `endpoints/handlers/create.go` (managerOrUserAgent), apimachinery
`pkg/apis/meta/v1/validation/validation.go` (ValidateFieldManager).
"""

from __future__ import annotations

from steersman.apimachinery import field_errors
from steersman.apimachinery.field_errors import FieldError

MAX_BYTES = 128
DEFAULT = "unknown"


def manager_name(field_manager: str, user_agent: str) -> str:
    """The manager of a POST, PUT or PATCH: the fieldManager parameter if it is given, else the User-Agent up to its
    first slash, without unprintable characters and cut to MAX_BYTES, else "unknown".

    `field_manager` must have passed `validate_field_manager`.
    """
    if field_manager:
        return field_manager
    product = user_agent.partition("/")[0]
    printable = "".join(filter(str.isprintable, product)).encode()
    return printable[:MAX_BYTES].decode(errors="ignore") or DEFAULT


def validate_field_manager(name: str, field: str = "fieldManager") -> list[FieldError]:
    """What is wrong with a manager's name; `field` is the option or the path that holds it. "" is fine: not given."""
    if len(name) <= MAX_BYTES and name.isascii() and name.isprintable():
        return []
    errors = []
    if len(name.encode()) > MAX_BYTES:
        errors.append(field_errors.too_long(field, MAX_BYTES))
    position = 0
    for character in name:
        if not character.isprintable():
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            errors.append(field_errors.invalid(field, name, detail))
        position += len(character.encode())
    return errors
