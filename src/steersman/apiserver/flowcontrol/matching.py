"""Which flow schema a request belongs to.

Source: apiserver `pkg/util/flowcontrol/{rule,apf_controller}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steersman._util.dataclass import dataclass
from steersman.apiserver.authn.user import SERVICE_ACCOUNT_PREFIX, UserInfo, service_account_name
from steersman.apiserver.authz.attributes import Attributes

_ALL = ("*",)


@dataclass(frozen=True, slots=True)
class Schema:
    """A FlowSchema. `level` names its priority level; `by` is ByUser, ByNamespace or "" (all are one flow)."""

    name: str
    uid: str
    level: str
    precedence: int
    by: str
    rules: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, name: str, uid: str, spec: Mapping[str, Any]) -> Schema:
        method = spec.get("distinguisherMethod")
        return cls(
            name,
            uid,
            spec["priorityLevelConfiguration"]["name"],
            spec.get("matchingPrecedence") or 0,
            method["type"] if method else "",
            spec.get("rules") or (),
        )

    def match(self, attributes: Attributes) -> bool:
        return any(_rule_matches(rule, attributes) for rule in self.rules)

    def flow(self, attributes: Attributes) -> str:
        """What tells the flows of this schema apart."""
        if self.by == "ByUser":
            return attributes.user.name
        return attributes.namespace if self.by == "ByNamespace" else ""


def _rule_matches(rule: Mapping[str, Any], attributes: Attributes) -> bool:
    if not any(_is_subject(subject, attributes.user) for subject in rule.get("subjects") or ()):
        return False
    if attributes.resource_request:
        return any(_resource_matches(item, attributes) for item in rule.get("resourceRules") or ())
    return any(_path_matches(item, attributes) for item in rule.get("nonResourceRules") or ())


def _is_subject(subject: Mapping[str, Any], user: UserInfo) -> bool:
    kind = subject["kind"]
    if kind == "User":
        return subject["user"]["name"] in ("*", user.name)
    if kind == "Group":
        name = subject["group"]["name"]
        return name == "*" or name in user.groups
    account = subject["serviceAccount"]
    if account["name"] == "*":
        return user.name.startswith(f"{SERVICE_ACCOUNT_PREFIX}{account['namespace']}:")
    return user.name == service_account_name(account["namespace"], account["name"])


def _resource_matches(rule: Mapping[str, Any], attributes: Attributes) -> bool:
    resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    if not (
        _among(attributes.verb, rule.get("verbs"))
        and _among(resource, rule.get("resources"))
        and _among(attributes.group, rule.get("apiGroups"))
    ):
        return False
    if not attributes.namespace:
        return bool(rule.get("clusterScope"))
    return _among(attributes.namespace, rule.get("namespaces"))


def _path_matches(rule: Mapping[str, Any], attributes: Attributes) -> bool:
    if not _among(attributes.verb, rule.get("verbs")):
        return False
    path = attributes.path
    for pattern in rule.get("nonResourceURLs") or ():
        if pattern in ("*", path):
            return True
        prefix = pattern.removesuffix("*")
        if path.startswith(prefix if prefix.endswith("/") else f"{prefix}/"):
            return True
    return False


def _among(value: str, values: Sequence[str] | None) -> bool:
    return bool(values) and (tuple(values or ()) == _ALL or value in (values or ()))
