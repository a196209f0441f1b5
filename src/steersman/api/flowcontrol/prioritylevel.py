"""PriorityLevelConfigurations: how many requests of a kind are worked on at a time, and how others wait.

Source: kubernetes `pkg/registry/flowcontrol/prioritylevelconfiguration/strategy.go`,
`pkg/apis/flowcontrol/validation/validation.go`, `pkg/apis/flowcontrol/v1/zz_generated.validations.go`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from steersman.api.builtin import BuiltinStrategy
from steersman.api.flowcontrol.fixed import LEVELS, MANDATORY, fixed, shown
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

_MAX_QUEUES = 10_000_000
_HASH_BITS = 60
_PERCENT = 100
_TYPES, _RESPONSES = ("Exempt", "Limited"), ("Queue", "Reject")
_PRESERVED = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"


class PriorityLevelStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        meta, spec = obj["metadata"], obj.get("spec") or {}
        name = meta.get("name") or ""
        errors = []
        if _PRESERVED in (meta.get("annotations") or {}):
            errors.append(fe.forbidden("metadata.annotations", f"annotation '{_PRESERVED}' is forbidden"))
        errors += _spec_errors(name, spec)
        if name in MANDATORY:
            errors += _fixed_errors(name, spec)
        return errors

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        return list(_declared_errors(new.get("spec") or {}))

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec = obj["metadata"], obj.get("spec") or {}
        limited = spec.get("limited")
        queuing = (limited or {}).get("limitResponse", {}).get("queuing")
        fields = ("queues", "handSize", "queueLengthLimit")
        return [
            meta.get("name") or "",
            spec.get("type") or "",
            (limited.get("nominalConcurrencyShares") or 0) if limited is not None else "<none>",
            *(queuing[key] if queuing is not None else "<none>" for key in fields),
            age(meta.get("creationTimestamp"), now),
        ]


def _spec_errors(name: str, spec: Mapping[str, Any]) -> Iterator[FieldError]:
    kind = spec.get("type") or ""
    if (name == "exempt") != (kind == "Exempt"):
        yield fe.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if kind == "Exempt" and spec.get("exempt") is not None:
        yield from _share_errors(spec["exempt"], "spec.exempt")
    elif kind == "Limited" and spec.get("limited") is not None:
        yield from _limited_errors(spec["limited"], "spec.limited")
    elif kind and kind not in _TYPES:
        yield fe.not_supported("spec.type", kind, _TYPES)


def _share_errors(part: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    shares, lendable = part.get("nominalConcurrencyShares"), part.get("lendablePercent")
    if shares is not None and shares < 0:
        yield fe.invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer")
    if lendable is not None and not 0 <= lendable <= _PERCENT:
        yield fe.invalid(f"{path}.lendablePercent", lendable, "must be between 0 and 100, inclusive")


def _limited_errors(limited: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    shares = limited.get("nominalConcurrencyShares")
    if shares is not None and shares < 0:
        yield fe.invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer")
    response = limited["limitResponse"]
    if response["type"] == "Queue" and response.get("queuing") is not None:
        yield from _queuing_errors(response["queuing"], f"{path}.limitResponse.queuing")
    elif response["type"] and response["type"] not in _RESPONSES:
        yield fe.not_supported(f"{path}.limitResponse.type", response["type"], _RESPONSES)
    yield from _share_errors({"lendablePercent": limited.get("lendablePercent")}, path)
    borrowing = limited.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        yield fe.invalid(f"{path}.borrowingLimitPercent", borrowing, "if specified, must be a non-negative integer")


def _queuing_errors(queuing: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    queues, hand, length = (queuing[key] for key in ("queues", "handSize", "queueLengthLimit"))
    if length <= 0:
        yield fe.invalid(f"{path}.queueLengthLimit", length, "must be positive")
    if queues <= 0:
        yield fe.invalid(f"{path}.queues", queues, "must be positive")
    elif queues > _MAX_QUEUES:
        yield fe.invalid(f"{path}.queues", queues, f"must not be greater than {_MAX_QUEUES}")
    if hand <= 0:
        yield fe.invalid(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        yield fe.invalid(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    elif math.ceil(math.log2(queues) * hand) > _HASH_BITS:
        why = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_HASH_BITS}"
        yield fe.invalid(f"{path}.handSize", hand, why)


def _fixed_errors(name: str, spec: Mapping[str, Any]) -> Iterator[FieldError]:
    wanted = dict(fixed(LEVELS)[name])
    if name != "exempt":
        if spec != wanted:
            yield fe.invalid("spec", shown(LEVELS, spec), f"spec of '{name}' must equal the fixed value")
    elif {**spec, "exempt": None} != {**wanted, "exempt": None}:
        why = f"spec of '{name}' except the 'spec.exempt' field must equal the fixed value"
        yield fe.invalid("spec", shown(LEVELS, spec), why)


def _declared_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """What upstream's generated rules find; those have no words of their own."""
    kind, limited = spec.get("type") or "", spec.get("limited")
    if not kind:
        yield fe.required("spec.type")
    if spec.get("exempt") is not None and kind != "Exempt":
        yield fe.forbidden("spec.exempt", "")
    if limited is not None and kind != "Limited":
        yield fe.forbidden("spec.limited", "")
    elif limited is None and kind == "Limited":
        yield fe.required("spec.limited")
    if limited is None:
        return
    path, response = "spec.limited.limitResponse", limited["limitResponse"]
    if not response["type"]:
        yield fe.required(f"{path}.type")
    if response.get("queuing") is not None and response["type"] != "Queue":
        yield fe.forbidden(f"{path}.queuing", "")
    elif response.get("queuing") is None and response["type"] == "Queue":
        yield fe.required(f"{path}.queuing")
