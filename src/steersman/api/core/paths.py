"""Paths within volumes.

Source: kubernetes `pkg/apis/core/validation/validation.go` (validateLocalDescendingPath, ValidateLocalNonReservedPath).
"""

from __future__ import annotations

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError


def descending_path(path: str, place: str) -> list[FieldError]:
    """A relative path that stays below where it starts."""
    errors = [fe.invalid(place, path, "must be a relative path")] if path.startswith("/") else []
    return errors + without_backsteps(path, place)


def without_backsteps(path: str, place: str) -> list[FieldError]:
    return [fe.invalid(place, path, "must not contain '..'")] if ".." in path.split("/") else []


def local_path(path: str, place: str) -> list[FieldError]:
    """A descending path that does not begin as the names do that volumes keep for themselves."""
    errors = descending_path(path, place)
    if path.startswith("..") and not path.startswith("../"):
        errors.append(fe.invalid(place, path, "must not start with '..'"))
    return errors
