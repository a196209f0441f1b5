"""Role-based access control over Role, ClusterRole, RoleBinding and ClusterRoleBinding objects.

Source: kubernetes `plugin/pkg/auth/authorizer/rbac/rbac.go`, `pkg/registry/rbac/validation/rule.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steersman._util.gotext import quote
from steersman.apimachinery.errors import NotFound
from steersman.apiserver.authn.user import UserInfo, service_account_name
from steersman.apiserver.authz.attributes import Attributes, Decision, Rules
from steersman.apiserver.authz.policy_rules import CompiledRule, Rule

GROUP = "rbac.authorization.k8s.io"
ROLE_KINDS = frozenset({"Role", "ClusterRole"})
BINDING_KINDS = frozenset({"RoleBinding", "ClusterRoleBinding"})

# What clients send ends up in the caches' keys, so both the number and the size of entries are bounded.
_MAX_GRANTS = 1024
_MAX_DECISIONS = 16384
_MAX_KEY_CHARACTERS = 512

Object = Mapping[str, Any]


class _Grants:
    """The rules that apply to one user in one namespace, each with the binding that grants it, and past decisions."""

    __slots__ = ("by_name", "decisions", "errors", "rules")

    def __init__(self, rules: list[tuple[CompiledRule, str]], errors: list[str]) -> None:
        self.rules = rules
        self.errors = errors
        self.by_name = any(rule.by_name for rule, _ in rules)
        self.decisions: dict[tuple[str, ...], Decision] = {}

    def decide(self, attributes: Attributes) -> tuple[Decision, bool]:
        """The decision, and whether it is a new one that is kept from now on."""
        _, verb, group, _, resource, subresource, _, name, path, resource_request, _, _ = attributes
        key: tuple[str, ...] = (verb, path)
        if resource_request:
            key = (verb, group, resource, subresource, name if self.by_name else "")
        decision = self.decisions.get(key)
        if decision is not None:
            return decision, False
        decision = self._evaluate(attributes)
        if sum(map(len, key)) > _MAX_KEY_CHARACTERS:
            return decision, False
        self.decisions[key] = decision
        return decision, True

    def _evaluate(self, attributes: Attributes) -> Decision:
        for rule, source in self.rules:
            if rule.allows(attributes):
                return Decision(True, f"RBAC: allowed by {source}")
        return Decision(False, f"RBAC: {aggregate_errors(self.errors)}" if self.errors else "")


class RbacAuthorizer:
    """Answers from an index of the RBAC objects, which their watcher keeps up to date with `upsert` and `remove`.

    What was found out about a user is kept
    until any RBAC object changes. Objects are kept as given: they must not be changed afterwards.
    """

    def __init__(self) -> None:
        self._roles: dict[tuple[str, str, str], Object] = {}
        self._bindings: dict[tuple[str, str], Object] = {}
        # The names of the bindings in a namespace ("": ClusterRoleBindings) by (namespace, "User" or "Group", subject).
        self._by_subject: dict[tuple[str, str, str], set[str]] = {}
        self._compiled: dict[tuple[str, str, str], list[CompiledRule]] = {}
        self._grants: dict[tuple[str, tuple[str, ...], str], _Grants] = {}
        self._kept = 0

    def upsert(self, kind: str, obj: Object) -> None:
        """Takes in a new or changed object. Other kinds than the four of RBAC are a ValueError."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace") or "", metadata["name"])
        self._forget_decisions()
        if kind in ROLE_KINDS:
            self._roles[kind, *key] = obj
            self._compiled.pop((kind, *key), None)
            return
        _check_binding(kind)
        self._forget_binding(key)
        self._bindings[key] = obj
        for subject in _subject_keys(key[0], obj):
            self._by_subject.setdefault(subject, set()).add(key[1])

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Forgets an object; `namespace` is "" for the cluster-scoped kinds. One that is not known is ignored."""
        key = (namespace, name)
        self._forget_decisions()
        if kind in ROLE_KINDS:
            self._roles.pop((kind, *key), None)
            self._compiled.pop((kind, *key), None)
            return
        _check_binding(kind)
        self._forget_binding(key)

    def authorize(self, attributes: Attributes) -> Decision:
        """The decision, with upstream's reason: the binding that allows it, or which roles could not be found."""
        user = attributes.user
        decision, kept = self._grants_of(user, attributes.namespace).decide(attributes)
        if kept:
            self._kept += 1
            if self._kept > _MAX_DECISIONS:
                self._forget_decisions()
        return decision

    def rules_for(self, user: UserInfo, namespace: str) -> Rules:
        """All rules that bindings give the user in a namespace ("": at the cluster scope), and the roles missing."""
        grants = self._grants_of(user, namespace)
        return Rules([rule.rule for rule, _ in grants.rules], tuple(grants.errors))

    def role_rules(self, role_ref: Mapping[str, Any], namespace: str) -> Sequence[Rule]:
        """The rules of the role that a binding in `namespace` refers to; raises NotFound when it does not exist."""
        return [rule.rule for rule in self._resolve(role_ref, namespace)]

    def _grants_of(self, user: UserInfo, namespace: str) -> _Grants:
        key = (user.name, user.groups, namespace)
        grants = self._grants.get(key)
        if grants is None:
            grants = self._collect(user, namespace)
            if len(namespace) <= _MAX_KEY_CHARACTERS:
                if len(self._grants) >= _MAX_GRANTS:
                    self._forget_decisions()
                self._grants[key] = grants
        return grants

    def _forget_decisions(self) -> None:
        self._grants.clear()
        self._kept = 0

    def _collect(self, user: UserInfo, namespace: str) -> _Grants:
        rules: list[tuple[CompiledRule, str]] = []
        errors: list[str] = []
        for scope in ("", namespace) if namespace else ("",):
            for name in self._bindings_of(user, scope):
                binding = self._bindings[scope, name]
                try:
                    found = self._resolve(binding["roleRef"], scope)
                except (NotFound, ValueError) as error:
                    errors.append(str(error))
                    continue
                source = _describe(binding, user)
                rules.extend((rule, source) for rule in found)
        return _Grants(rules, errors)

    def _bindings_of(self, user: UserInfo, scope: str) -> list[str]:
        names = set(self._by_subject.get((scope, "User", user.name), ()))
        names.update(*(self._by_subject.get((scope, "Group", group), ()) for group in user.groups))
        return sorted(names)

    def _resolve(self, role_ref: Mapping[str, Any], scope: str) -> list[CompiledRule]:
        kind, name = role_ref.get("kind", ""), role_ref.get("name", "")
        if kind not in ROLE_KINDS:
            raise ValueError(f"unsupported role reference kind: {quote(kind)}")
        key = (kind, scope if kind == "Role" else "", name)
        compiled = self._compiled.get(key)
        if compiled is None:
            role = self._roles.get(key)
            if role is None:
                raise NotFound(f"{kind.lower()}.{GROUP} {quote(name)} not found")
            compiled = self._compiled[key] = [CompiledRule(rule) for rule in role.get("rules") or ()]
        return compiled

    def _forget_binding(self, key: tuple[str, str]) -> None:
        binding = self._bindings.pop(key, None)
        if binding is None:
            return
        for subject in set(_subject_keys(key[0], binding)):
            names = self._by_subject[subject]
            names.discard(key[1])
            if not names:
                del self._by_subject[subject]


def _check_binding(kind: str) -> None:
    if kind not in BINDING_KINDS:
        raise ValueError(f"{kind} is not an RBAC kind")


def _subject_keys(scope: str, binding: Object) -> Iterator[tuple[str, str, str]]:
    for subject in binding.get("subjects") or ():
        name = _user_of(subject, scope)
        if name is not None:
            yield scope, "User", name
        elif subject.get("kind") == "Group":
            yield scope, "Group", subject.get("name", "")


def _user_of(subject: Mapping[str, Any], scope: str) -> str | None:
    """The user name that a User or ServiceAccount subject stands for; None for others."""
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "User":
        return str(name)
    namespace = subject.get("namespace") or scope
    if kind == "ServiceAccount" and namespace:
        return service_account_name(namespace, name)
    return None


def _describe(binding: Object, user: UserInfo) -> str:
    metadata, role_ref = binding["metadata"], binding["roleRef"]
    scope = metadata.get("namespace") or ""
    kind, name = ("RoleBinding", f"{metadata['name']}/{scope}") if scope else ("ClusterRoleBinding", metadata["name"])
    subject = next(found for found in binding.get("subjects") or () if _applies(found, user, scope))
    who = subject["name"]
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or scope}"
    return f"{kind} {quote(name)} of {role_ref['kind']} {quote(role_ref['name'])} to {subject['kind']} {quote(who)}"


def _applies(subject: Mapping[str, Any], user: UserInfo, scope: str) -> bool:
    name = _user_of(subject, scope)
    if name is not None:
        return name == user.name
    return subject.get("kind") == "Group" and subject.get("name", "") in user.groups


def aggregate_errors(messages: Sequence[str]) -> str:
    """Several errors in one text as upstream's utilerrors.Aggregate prints them: one as it is, more in brackets."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
