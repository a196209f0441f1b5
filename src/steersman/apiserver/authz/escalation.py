"""Nobody grants what they do not hold: the checks before a role or a binding is written.

Source: kubernetes `pkg/registry/rbac/escalation_check.go`, `pkg/registry/rbac/validation/{rule,policy_compact}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steersman._util.gotext import quote
from steersman.apiserver.authn.user import SYSTEM_MASTERS, UserInfo
from steersman.apiserver.authz.attributes import Attributes, Authorizer, Rules
from steersman.apiserver.authz.policy_rules import Rule, missing_rules
from steersman.apiserver.authz.rbac import GROUP, aggregate_errors

_PARTS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def may_do_everything(user: UserInfo) -> bool:
    """Whether the user is in system:masters, for whom the checks of this module are skipped."""
    return SYSTEM_MASTERS in user.groups


def may_escalate(authorizer: Authorizer, user: UserInfo, resource: str, namespace: str, name: str) -> bool:
    """Whether the user may put any rule into a role: the verb escalate on `resource` (roles or clusterroles)."""
    return authorizer.authorize(Attributes(user, "escalate", GROUP, "*", resource, "", namespace, name)).allowed


def may_bind(authorizer: Authorizer, user: UserInfo, role_ref: Mapping[str, Any], namespace: str) -> bool:
    """Whether the user may bind this role to anybody in the binding's namespace: the verb bind on the role."""
    resource = {"Role": "roles", "ClusterRole": "clusterroles"}.get(role_ref.get("kind", ""))
    if resource is None:
        return False
    group, name = role_ref.get("apiGroup", ""), role_ref.get("name", "")
    return authorizer.authorize(Attributes(user, "bind", group, "*", resource, "", namespace, name)).allowed


def escalation(user: UserInfo, held: Rules, wanted: Sequence[Rule], resource: str) -> str | None:
    """Why the user may not grant the `wanted` rules: what of them is not among those held. None if all are held.

    `resource` is the request's.
    """
    missing = missing_rules(held.rules, wanted)
    if not missing:
        return None
    lacking = "\n".join(sorted({describe_rule(rule) for rule in _compact(missing)}))
    why = (
        f"user {quote(user.name)} (groups={_quote_all(user.groups)}) "
        f"is attempting to grant RBAC permissions not currently held:\n{lacking}"
    )
    if not held.errors:
        return why
    return f"{why}; resolution errors: [{aggregate_errors([_as_read(error, resource) for error in held.errors])}]"


def _as_read(error: str, resource: str) -> str:
    """A role that is not there, as upstream's storage tells of it: by the resource of the request that reads it."""
    kind, dot, rest = error.partition(".")
    return f"{resource}{dot}{rest}" if kind in ("role", "clusterrole") else error


def describe_rule(rule: Rule) -> str:
    """A rule in one line, as escalation errors show it: {APIGroups:["x"], Resources:["y"], Verbs:["get" "list"]}."""
    parts = [f"{label}:{_quote_all(rule[key])}" for label, key in _PARTS if rule.get(key)]
    return f"{{{', '.join(parts)}}}"


def _quote_all(values: Sequence[str]) -> str:
    return f"[{' '.join(map(quote, values))}]"


def _compact(pieces: Sequence[dict[str, list[str]]]) -> list[dict[str, list[str]]]:
    """Pieces of one verb each (from `missing_rules`), those on the same resource and name joined."""
    joined: dict[tuple[str, ...], dict[str, list[str]]] = {}
    others: list[dict[str, list[str]]] = []
    for piece in pieces:
        if "nonResourceURLs" in piece:
            others.append(piece)
            continue
        key = (piece["apiGroups"][0], piece["resources"][0], *piece.get("resourceNames", ()))
        if key in joined:
            joined[key]["verbs"] += piece["verbs"]
        else:
            joined[key] = {**piece, "verbs": list(piece["verbs"])}
    return [*others, *joined.values()]
