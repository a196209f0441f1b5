"""A webhook as authorizer: it is asked with SubjectAccessReviews, and its answers are kept for a while.

Source: apiserver `plugin/pkg/authorizer/webhook/webhook.go`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from steersman._util import clock
from steersman.api.authorization.match_conditions import matches
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import Attributes, Decision, Rules
from steersman.apiserver.authz.settings import WebhookRules
from steersman.apiserver.authz.waiting import Undecided, answered
from steersman.apiserver.webhooks.reviews import Reviewer, ReviewError

log = logging.getLogger("steersman.apiserver")
_MAX_KEPT = 8192
_MAX_ATTRIBUTES = 10_000
"""Characters of a request's own choice; an answer about more is not kept."""
_NO_RULES = "webhook authorizer does not support user rule resolution"


class WebhookAuthorizer:
    """Asks a webhook what it thinks. `now` gives monotonic seconds."""

    reads_selectors = True

    def __init__(self, reviewer: Reviewer, rules: WebhookRules, now: Callable[[], float] = clock.steady) -> None:
        self._reviewer = reviewer
        self._rules = rules
        self._now = now
        self._kept: OrderedDict[bytes, tuple[float, Decision]] = OrderedDict()

    def authorize(self, attributes: Attributes) -> Decision:
        """The webhook's decision, if it is known; no opinion on what the match conditions leave out.

        Raises Undecided.
        """
        spec = review_spec(attributes)
        if self._rules.conditions:
            concerned, error = matches(self._rules.conditions, spec)
            if error:
                return self._failed(error)
            if not concerned:
                return Decision(False)
        key = orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)
        found = answered((self, key))
        if found is None:
            found = self._remembered(key)
        if found is None:
            raise Undecided((self, key), partial(self._ask, attributes, spec, key))
        return found

    def rules_for(self, user: UserInfo, namespace: str) -> Rules:
        """No webhook can tell its rules."""
        return Rules((), (_NO_RULES,), incomplete=True)

    def _failed(self, why: str) -> Decision:
        return Decision(False, denied=self._rules.denies, error=why)

    async def _ask(self, attributes: Attributes, spec: dict[str, Any], key: bytes) -> Decision:
        if self._reviewer.version == "v1beta1":
            # The groups have another name there.
            spec = {{"groups": "group"}.get(part, part): value for part, value in spec.items()}
        try:
            status = await self._reviewer.review(spec, {"allowed": False})
        except ReviewError as error:
            log.error("a webhook authorizer could not be asked", extra={"why": str(error)})
            return self._failed(str(error))
        decision = _decision(status)
        seconds = self._rules.authorized_seconds if status.get("allowed") else self._rules.unauthorized_seconds
        if seconds and _size(attributes) < _MAX_ATTRIBUTES:
            if len(self._kept) >= _MAX_KEPT:
                self._kept.popitem(last=False)
            self._kept[key] = (self._now() + seconds, decision)
        return decision

    def _remembered(self, key: bytes) -> Decision | None:
        until, decision = self._kept.get(key, (0.0, None))
        if decision is not None and self._now() >= until:
            del self._kept[key]
            return None
        if decision is not None:
            self._kept.move_to_end(key)
        return decision


def review_spec(attributes: Attributes) -> dict[str, Any]:
    """The SubjectAccessReview's spec that asks about a request; what is empty is left out."""
    user = attributes.user
    spec: dict[str, Any] = {}
    if attributes.resource_request:
        spec["resourceAttributes"] = _resource(attributes)
    else:
        spec["nonResourceAttributes"] = _stated({"path": attributes.path, "verb": attributes.verb})
    extra = {key: list(values) for key, values in user.extra.items()}
    return {**spec, **_stated({"user": user.name, "groups": list(user.groups), "extra": extra, "uid": user.uid})}


def _resource(attributes: Attributes) -> dict[str, Any]:
    narrowed = {
        key: {"requirements": [each.to_dict() for each in requirements]}
        for key, requirements in (("fieldSelector", attributes.fields), ("labelSelector", attributes.labels))
        if requirements
    }
    texts = {
        "namespace": attributes.namespace,
        "verb": attributes.verb,
        "group": attributes.group,
        "version": attributes.version,
        "resource": attributes.resource,
        "subresource": attributes.subresource,
        "name": attributes.name,
    }
    return {**_stated(texts), **narrowed}


def _stated(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def _decision(status: dict[str, Any]) -> Decision:
    allowed, denied = status.get("allowed") is True, status.get("denied") is True
    reason = status.get("reason")
    text = reason if isinstance(reason, str) else ""
    if allowed and denied:
        both = "webhook subject access review returned both allow and deny response"
        return Decision(False, text, denied=True, error=both)
    return Decision(allowed, text, denied=denied)


def _size(attributes: Attributes) -> int:
    return sum(len(part) for part in attributes if isinstance(part, str))
