"""SelfSubjectRulesReview: what may I do in a namespace?

Source: kubernetes `pkg/registry/authorization/selfsubjectrulesreview/rest.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.apimachinery.errors import BadRequest
from steersman.apiserver.authz.rbac import aggregate_errors
from steersman.apiserver.core import Core
from steersman.apiserver.exchange import Exchange
from steersman.apiserver.strategy import Object


async def self_subject_rules_review(core: Core, x: Exchange, review: Object) -> Object:
    """The rules of the user who asks; nothing of the question is repeated. Raises BadRequest without a namespace."""
    namespace = (review.get("spec") or {}).get("namespace")
    if not namespace:
        raise BadRequest("no namespace on request")
    found = core.identity.authorizer.rules_for(x.user, namespace)
    status: Object = {
        "resourceRules": _parts(found.rules, "resources", ("verbs", "apiGroups", "resources", "resourceNames")),
        "nonResourceRules": _parts(found.rules, "nonResourceURLs", ("verbs", "nonResourceURLs")),
        "incomplete": found.incomplete,
    }
    if found.errors:
        status["evaluationError"] = aggregate_errors(found.errors)
    return {"metadata": {}, "spec": {}, "status": status}


def _parts(rules: Iterable[Mapping[str, Any]], needed: str, keys: tuple[str, ...]) -> list[Object]:
    """Of each rule that has what is needed, the parts that concern it."""
    return [{key: rule[key] for key in keys if rule.get(key)} for rule in rules if rule.get(needed)]
