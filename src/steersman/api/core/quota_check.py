"""Whether ResourceQuotas allow a write, and what they count for it; and what a namespace uses in all.

Source: apiserver `pkg/admission/plugin/resourcequota/controller.go` (CheckRequest), `pkg/quota/v1/resources.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from steersman.api.core import resource_lists as lists
from steersman.api.core.quota_usage import Evaluator
from steersman.api.core.resource_lists import ResourceList

Object = dict[str, Any]


class QuotaExceeded(Exception):
    """A quota does not allow the write; the message is upstream's, without what it is said of."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write as quotas see it; `old` is None for a creation."""

    subresource: str
    new: Object
    old: Object | None
    now: datetime


def charges(quotas: Sequence[Object], evaluator: Evaluator, write: Write) -> dict[str, ResourceList]:
    """What each quota that the write concerns, by its name, uses from then on. Raises QuotaExceeded."""
    concerned = [quota for quota in quotas if _concerns(quota, evaluator, write.new)]
    for quota in concerned:
        _require(quota, evaluator, write.new)
    usage = evaluator.usage(write.new, write.now)
    found: dict[str, ResourceList] = {}
    for quota in concerned:
        more = usage
        if write.old is not None and _concerns(quota, evaluator, write.old):
            more = lists.increase(usage, evaluator.usage(write.old, write.now))
        hard = quota["status"]["hard"]
        more = {name: amount for name, amount in more.items() if amount.unscaled and name in hard}
        if more:
            found[quota["metadata"]["name"]] = _charged(quota, more, write)
    return found


def scope_requirements(quota: Object) -> list[Object]:
    """The scopes of a quota, all of which its objects are in."""
    spec = quota.get("spec") or {}
    plain = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    return [*plain, *((spec.get("scopeSelector") or {}).get("matchExpressions") or ())]


def _concerns(quota: Object, evaluator: Evaluator, obj: Object) -> bool:
    if not evaluator.matching((quota.get("status") or {}).get("hard") or ()):
        return False
    return all(evaluator.in_scope(each, obj) for each in scope_requirements(quota))


def _require(quota: Object, evaluator: Evaluator, obj: Object) -> None:
    """The object says all that is to be counted, and it is known what is used."""
    name, status = quota["metadata"]["name"], quota.get("status") or {}
    restricted = evaluator.matching(status["hard"])
    if missing := evaluator.missing(restricted, obj):
        raise QuotaExceeded(f"failed quota: {name}: {missing}")
    if not restricted <= (status.get("used") or {}).keys():
        raise QuotaExceeded(f"status unknown for quota: {name}, resources: {','.join(sorted(restricted))}")


def _charged(quota: Object, more: ResourceList, write: Write) -> ResourceList:
    hard, used = (lists.parsed(quota["status"].get(key)) for key in ("hard", "used"))
    new = lists.added(used, more)
    exceeded = {name for name in more if new[name] > hard[name]}
    if exceeded and write.subresource != "status":
        requested, before, limited = (lists.shown(lists.masked(each, exceeded)) for each in (more, used, hard))
        name = quota["metadata"]["name"]
        raise QuotaExceeded(f"exceeded quota: {name}, requested: {requested}, used: {before}, limited: {limited}")
    return new


def total(quota: Object, evaluator: Evaluator, objects: Iterable[Object], now: datetime) -> ResourceList:
    """What the objects of one resource count for, of what the quota's spec limits."""
    names = evaluator.matching((quota.get("spec") or {}).get("hard") or ())
    requirements = scope_requirements(quota)
    found: ResourceList = dict.fromkeys(names, lists.ZERO)
    for obj in objects:
        if all(evaluator.in_scope(each, obj) for each in requirements):
            found = lists.added(found, lists.masked(evaluator.usage(obj, now), names))
    return found


def count(quota: Object, evaluator: Evaluator, number: int) -> ResourceList:
    """The same for objects that are only counted, which are in no scope."""
    names = evaluator.matching((quota.get("spec") or {}).get("hard") or ())
    return dict.fromkeys(names, lists.whole(0 if scope_requirements(quota) else number))
