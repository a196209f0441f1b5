"""ClusterRoles that collect the rules of other ClusterRoles by their labels.

Source: kubernetes `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.apiserver.authz.policy_rules import Rule

_RULE_KEYS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def aggregate(cluster_role: Mapping[str, Any], all_roles: Iterable[Mapping[str, Any]]) -> list[Rule] | None:
    """The rules that an aggregated ClusterRole is to have; None when it is not one, or already has just these.

    For each selector of its aggregationRule in order, the rules of the ClusterRoles selected, by name, without
    repetitions. The role itself is never among them.
    """
    aggregation = cluster_role.get("aggregationRule")
    if aggregation is None:
        return None
    name = cluster_role["metadata"]["name"]
    others = sorted(
        (role for role in all_roles if role["metadata"]["name"] != name), key=lambda role: role["metadata"]["name"]
    )
    found: dict[tuple[tuple[str, ...], ...], Rule] = {}
    for selector in aggregation.get("clusterRoleSelectors") or ():
        for role in others:
            if _selects(selector, role["metadata"].get("labels") or {}):
                for rule in role.get("rules") or ():
                    found.setdefault(_identity(rule), rule)
    if list(found) == [_identity(rule) for rule in cluster_role.get("rules") or ()]:
        return None
    return list(found.values())


def _identity(rule: Rule) -> tuple[tuple[str, ...], ...]:
    """Equal for rules that differ only in absent and empty lists."""
    return tuple(tuple(rule.get(key) or ()) for key in _RULE_KEYS)


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    exact = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    return all(labels.get(key) == value for key, value in exact.items()) and all(
        _satisfies(expression, labels) for expression in expressions
    )


def _satisfies(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or ()
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    return (key in labels) is (operator == "Exists")
