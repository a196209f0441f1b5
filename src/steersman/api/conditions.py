"""Conditions in the status of an object.

Source: apimachinery `pkg/apis/meta/v1/validation/validation.go` (ValidateConditions).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from steersman.api import checks
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import validate_label_name

_STATUSES = ("False", "True", "Unknown")
_MAX_REASON, _MAX_MESSAGE = 1024, 32 * 1024
_REASON_FORM = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON = re.compile(_REASON_FORM + r"\Z")
_REASON_WORDS = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"  # noqa: E501


def condition_errors(conditions: Sequence[Mapping[str, Any]], field: str) -> list[FieldError]:
    """What is wrong with a list of conditions."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        here, kind = f"{field}[{index}]", condition.get("type") or ""
        if kind in seen:
            errors.append(fe.duplicate(here, kind))
        seen.add(kind)
        errors += _condition_errors(condition, here)
    return errors


def _condition_errors(condition: Mapping[str, Any], field: str) -> list[FieldError]:
    kind = condition.get("type") or ""
    errors = validate_label_name(kind, f"{field}.type") if kind else [fe.required(f"{field}.type", "is required")]
    errors += checks.one_of(condition.get("status"), _STATUSES, f"{field}.status")
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        detail = "must be greater than or equal to zero"
        errors.append(fe.invalid(f"{field}.observedGeneration", generation, detail))
    if not condition.get("lastTransitionTime"):
        errors.append(fe.required(f"{field}.lastTransitionTime"))
    errors += _reason_errors(condition.get("reason") or "", f"{field}.reason")
    if len((condition.get("message") or "").encode()) > _MAX_MESSAGE:
        errors.append(fe.too_long(f"{field}.message", _MAX_MESSAGE))
    return errors


def _reason_errors(reason: str, field: str) -> list[FieldError]:
    if not reason:
        return [fe.required(field)]
    errors = []
    if not _REASON.match(reason):
        words = names.regex_message(
            _REASON_WORDS, _REASON_FORM, "my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"
        )
        errors.append(fe.invalid(field, reason, words))
    if len(reason.encode()) > _MAX_REASON:
        errors.append(fe.too_long(field, _MAX_REASON))
    return errors
