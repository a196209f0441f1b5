"""How a Job judges its Pods' failures and its own success, and what its indexes may be.

Source: kubernetes `pkg/apis/batch/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Collection

from steersman._util.gotext import quote
from steersman.api import checks
from steersman.api.strategy import Object
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MAX_RULES = 20
_MAX_CONDITIONS = 20
_MAX_CODES = 255
_MAX_INDEXES_TEXT = 64 * 1024
_MAX_PARALLELISM = _MAX_FAILED = _MANY_COMPLETIONS = 100_000
_MAX_OF_MANY = 10_000


def index_errors(spec: Object, place: str) -> list[FieldError]:
    """What is wrong with the numbers of a Job whose completion mode is Indexed."""
    completions, parallelism, failed = (spec.get(key) for key in ("completions", "parallelism", "maxFailedIndexes"))
    errors = []
    if completions is None:
        errors.append(fe.required(f"{place}.completions", "when completion mode is Indexed"))
    if parallelism is not None and parallelism > _MAX_PARALLELISM:
        text = f"must be less than or equal to {_MAX_PARALLELISM} when completion mode is Indexed"
        errors.append(fe.invalid(f"{place}.parallelism", parallelism, text))
    if completions is not None and failed is not None and failed > completions:
        errors.append(fe.invalid(f"{place}.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > _MAX_FAILED:
        text = f"must be less than or equal to {_MAX_FAILED}"
        errors.append(fe.invalid(f"{place}.maxFailedIndexes", failed, text))
    if (completions or 0) > _MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        errors += _many_errors(parallelism, failed, place)
    return errors


def _many_errors(parallelism: int | None, failed: int | None, place: str) -> list[FieldError]:
    errors = []
    if failed is None:
        text = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        errors.append(fe.required(f"{place}.maxFailedIndexes", text))
    for key, value in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
        if value is not None and value > _MAX_OF_MANY:
            text = (
                f"must be less than or equal to {_MAX_OF_MANY} when completions are above {_MANY_COMPLETIONS} "
                "and used with backoff limit per index"
            )
            errors.append(fe.invalid(f"{place}.{key}", value, text))
    return errors


def failure_policy_errors(spec: Object, place: str) -> list[FieldError]:
    """What is wrong with spec.podFailurePolicy, which is at `place`."""
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or []
    errors = [fe.too_many(f"{place}.rules", len(rules), _MAX_RULES)] if len(rules) > _MAX_RULES else []
    template = (spec.get("template") or {}).get("spec") or {}
    containers = {
        container.get("name") or "" for key in ("containers", "initContainers") for container in template.get(key) or ()
    }
    for index, rule in enumerate(rules):
        errors += _failure_rule_errors(spec, rule, f"{place}.rules[{index}]", containers)
    return errors


def _failure_rule_errors(spec: Object, rule: Object, place: str, containers: Collection[str]) -> list[FieldError]:
    action, codes, conditions = rule.get("action") or "", rule.get("onExitCodes"), rule.get("onPodConditions") or []
    errors = []
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(fe.invalid(f"{place}.action", action, "requires the backoffLimitPerIndex to be set"))
    errors += _choice(action, _ACTIONS, f"{place}.action")
    if codes is not None:
        errors += _exit_code_errors(codes, f"{place}.onExitCodes", containers)
    if len(conditions) > _MAX_CONDITIONS:
        errors.append(fe.too_many(f"{place}.onPodConditions", len(conditions), _MAX_CONDITIONS))
    for index, pattern in enumerate(conditions):
        field = f"{place}.onPodConditions[{index}]"
        errors += checks.qualified_name(pattern.get("type") or "", f"{field}.type")
        errors += _choice(pattern.get("status") or "", _STATUSES, f"{field}.status")
    if (codes is None) != (not conditions):
        return errors
    what = "one of OnExitCodes and OnPodConditions is required"
    if codes is not None:
        what = "both OnExitCodes and OnPodConditions is not supported"
    return [*errors, fe.invalid(place, fe.OMIT, f"specifying {what}")]


def _choice(value: str, allowed: tuple[str, ...], field: str) -> list[FieldError]:
    if not value:
        return [fe.required(field, f"valid values: [{' '.join(quote(item) for item in allowed)}]")]
    return checks.supported(value, allowed, field)


def _exit_code_errors(codes: Object, place: str, containers: Collection[str]) -> list[FieldError]:
    operator, values, name = codes.get("operator") or "", codes.get("values") or [], codes.get("containerName")
    errors = _choice(operator, _OPERATORS, f"{place}.operator")
    if name is not None and name not in containers:
        text = "must be one of the container or initContainer names in the pod template"
        errors.append(fe.invalid(f"{place}.containerName", name, text))
    if not values:
        errors.append(fe.invalid(f"{place}.values", codes.get("values"), "at least one value is required"))
    elif len(values) > _MAX_CODES:
        errors.append(fe.too_many(f"{place}.values", len(values), _MAX_CODES))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(fe.invalid(f"{place}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            errors.append(fe.duplicate(f"{place}.values[{index}]", value))
        seen.add(value)
    if values != sorted(values):
        errors.append(fe.invalid(f"{place}.values", values, "must be ordered"))
    return errors


def success_policy_errors(spec: Object, place: str) -> list[FieldError]:
    """What is wrong with spec.successPolicy, which is at `place`."""
    rules = spec["successPolicy"].get("rules") or []
    if spec.get("completionMode") != "Indexed":
        printed = [
            fe.Struct(SucceededIndexes=rule.get("succeededIndexes"), SucceededCount=rule.get("succeededCount"))
            for rule in rules
        ]
        return [fe.invalid(place, {"Rules": printed or None}, "requires indexed completion mode")]
    errors = []
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        errors.append(fe.required(f"{place}.rules", text))
    if len(rules) > _MAX_RULES:
        errors.append(fe.too_many(f"{place}.rules", len(rules), _MAX_RULES))
    for index, rule in enumerate(rules):
        errors += _success_rule_errors(rule, spec.get("completions") or 0, f"{place}.rules[{index}]")
    return errors


def _success_rule_errors(rule: Object, completions: int, place: str) -> list[FieldError]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    errors, total = [], 0
    if count is None and indexes is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(fe.required(place, text))
    if indexes is not None:
        field = f"{place}.succeededIndexes"
        if len(indexes.encode()) > _MAX_INDEXES_TEXT:
            errors.append(fe.too_long(field, _MAX_INDEXES_TEXT))
        try:
            total = _count_indexes(indexes, completions)
        except ValueError as error:
            errors.append(fe.invalid(field, indexes, f"error parsing succeededIndexes: {error}"))
    if count is None:
        return errors
    errors += checks.nonnegative(count, f"{place}.succeededCount")
    limits = [(completions, "specified completions")]
    if indexes is not None:
        limits.append((total, "indexes in the specified succeededIndexes field"))
    for limit, what in limits:
        if count > limit:
            text = f"must be less than or equal to {limit} (the number of {what})"
            errors.append(fe.invalid(f"{place}.succeededCount", count, text))
    return errors


def _count_indexes(text: str, completions: int) -> int:
    """How many indexes a text such as `0,2-4` names. Raises ValueError in upstream's words."""
    total, last = 0, None
    for interval in text.split(",") if text else ():
        parts = interval.split("-")
        if len(parts) > 2:
            raise ValueError(
                f"the fragment {quote(interval)} violates the requirement that an index interval can have at most two "
                "parts separated by '-'"
            )
        first, *rest = [_index(part, completions) for part in parts]
        final = rest[0] if rest else first
        if rest and first >= final:
            raise ValueError(f"non-increasing order, previous: {first}, current: {final}")
        if last is not None and last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + final - first + 1, final
    return total


def _index(text: str, completions: int) -> int:
    digits = text[1:] if text[:1] == "+" else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"cannot convert string to integer for index: {quote(text)}")
    if int(digits) >= completions:
        raise ValueError(f"too large index: {quote(text)}")
    return int(digits)
