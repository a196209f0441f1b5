"""ClusterRoles that collect the rules of other ClusterRoles by their labels.

Source: kubernetes `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steersman.apimachinery import selectors
from steersman.apiserver.authz.policy_rules import Rule

_RULE_KEYS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def aggregate(cluster_role: Mapping[str, Any], all_roles: Iterable[Mapping[str, Any]]) -> list[Rule] | None:
    """The rules that an aggregated ClusterRole is to have; None when it is not one, or already has just these.

    For each selector of its aggregationRule in order, the rules of the ClusterRoles selected, by name, without
    repetitions. The role itself is never among them. Raises SelectorError for a selector that is not valid.
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
        selected = selectors.from_object(selector)
        for role in others:
            if selected.matches(role["metadata"].get("labels")):
                for rule in role.get("rules") or ():
                    found.setdefault(_identity(rule), rule)
    if list(found) == [_identity(rule) for rule in cluster_role.get("rules") or ()]:
        return None
    return list(found.values())


def _identity(rule: Rule) -> tuple[tuple[str, ...], ...]:
    """Equal for rules that differ only in absent and empty lists."""
    return tuple(tuple(rule.get(key) or ()) for key in _RULE_KEYS)
