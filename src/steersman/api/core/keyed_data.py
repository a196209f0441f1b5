"""What ConfigMaps and Secrets have in common: their data under keys.

Source: kubernetes `pkg/apis/core/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterable

from steersman.api.strategy import Object
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError

MAX_SIZE = 1024 * 1024


def key_errors(field: str, key: str) -> list[FieldError]:
    """What is wrong with one key of the map `field`."""
    return [fe.invalid(f"{field}[{key}]", key, text) for text in names.config_map_key(key)]


def size_error(field: str, total: int) -> list[FieldError]:
    """The error for more than a megabyte of values."""
    return [fe.too_long(field, MAX_SIZE)] if total > MAX_SIZE else []


def decoded_size(text: str | None) -> int:
    """How many bytes canonical base64 stands for."""
    return len(text) // 4 * 3 - text.count("=", len(text) - 2) if text else 0


def immutable_errors(new: Object, old: Object, fields: Iterable[str], strict: Iterable[str]) -> list[FieldError]:
    """What an update of an immutable object must not change: the mark itself, and its data.

    In `strict` fields an empty map is another value than none, in `fields` it is the same.
    """
    if not old.get("immutable"):
        return []
    detail = "field is immutable when `immutable` is set"
    errors = [] if new.get("immutable") else [fe.forbidden("immutable", detail)]
    changed = [field for field in fields if (new.get(field) or {}) != (old.get(field) or {})]
    changed += [field for field in strict if new.get(field) != old.get(field)]
    return errors + [fe.forbidden(field, detail) for field in changed]
