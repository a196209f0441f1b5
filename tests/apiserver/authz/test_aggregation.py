from typing import Any

import pytest

from steersman.apimachinery.selectors import SelectorError
from steersman.apiserver.authz.aggregation import aggregate
from steersman.apiserver.authz.bootstrap import default_policy


def role(name: str, labels: dict[str, str] | None = None, verbs: str = "", **more: Any) -> dict[str, Any]:
    rules = [{"verbs": [verb], "apiGroups": ["g"], "resources": ["r"]} for verb in verbs]
    return {"metadata": {"name": name, "labels": labels}, "rules": rules or None, **more}


def selecting(*selectors: dict[str, Any], verbs: str = "", labels: dict[str, str] | None = None) -> dict[str, Any]:
    return role("all", labels, verbs, aggregationRule={"clusterRoleSelectors": list(selectors)})


def verbs(rules: Any) -> str | None:
    return None if rules is None else "".join(rule["verbs"][0] for rule in rules)


BY_LABEL = {"matchLabels": {"to": "all"}}


def test_rules_come_by_selector_then_by_name_without_repetition() -> None:
    roles = [role("z", {"to": "all"}, "ab"), role("b", {"to": "all"}, "cb"), role("n", {"to": "none"}, "x")]
    aggregated = selecting({"matchLabels": {"to": "none"}}, BY_LABEL)
    assert verbs(aggregate(aggregated, [*roles, aggregated])) == "xcba"


def test_the_role_itself_is_not_selected() -> None:
    aggregated = selecting(BY_LABEL, labels={"to": "all"}, verbs="q")
    assert aggregate(aggregated, [aggregated]) == []


def test_nothing_to_do() -> None:
    others = [role("b", {"to": "all"}, "ab")]
    assert aggregate(role("plain", verbs="a"), others) is None
    assert aggregate(selecting(BY_LABEL, verbs="ab"), others) is None
    assert aggregate(selecting(BY_LABEL), []) is None
    others[0]["rules"][0]["resourceNames"] = []
    assert aggregate(selecting(BY_LABEL, verbs="ab"), others) is None
    assert verbs(aggregate(selecting(BY_LABEL, verbs="ba"), others)) == "ab"


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, "abc"),
        ({"matchExpressions": [{"key": "k", "operator": "In", "values": ["1", "3"]}]}, "a"),
        ({"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["1"]}]}, "bc"),
        ({"matchExpressions": [{"key": "k", "operator": "Exists"}]}, "ab"),
        ({"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]}, "c"),
        ({"matchLabels": {"k": "1"}, "matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["1"]}]}, ""),
    ],
)
def test_selectors(selector: dict[str, Any], selected: str) -> None:
    roles = [role("a", {"k": "1"}, "a"), role("b", {"k": "2"}, "b"), role("c", None, "c")]
    assert verbs(aggregate(selecting(selector, verbs="x"), roles)) == selected


def test_a_selector_that_is_not_valid() -> None:
    with pytest.raises(SelectorError):
        aggregate(selecting({"matchExpressions": [{"key": "k", "operator": "Like"}]}), [])


def test_the_default_roles_build_on_one_another() -> None:
    roles = {found["metadata"]["name"]: found for found in default_policy() if found["kind"] == "ClusterRole"}
    for name in ("view", "edit", "admin"):
        roles[name]["rules"] = aggregate(roles[name], roles.values())
    sizes = [len(roles[name]["rules"]) for name in ("view", "edit", "admin")]
    assert sizes == sorted(set(sizes))
    assert sizes[0] > 0
    assert all(aggregate(found, roles.values()) is None for found in roles.values())
