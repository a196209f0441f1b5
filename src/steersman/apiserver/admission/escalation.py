"""Nobody grants what they do not hold: every write of a role or a binding is checked, whatever plugins are on.

Source: kubernetes `pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased/storage.go`,
`pkg/registry/rbac/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from steersman.apimachinery.errors import ApiError, BadRequest, NotFound, forbidden, not_found
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.authz.attributes import Authorizer
from steersman.apiserver.authz.escalation import escalation, may_bind, may_do_everything, may_escalate
from steersman.apiserver.authz.policy_rules import Rule
from steersman.apiserver.authz.rbac import GROUP, ROLE_KINDS, RbacAuthorizer
from steersman.apiserver.authz.waiting import settle
from steersman.apiserver.scope import check_name
from steersman.apiserver.strategy import Object

_ROLES = frozenset({"roles", "clusterroles"})
_BINDINGS = frozenset({"rolebindings", "clusterrolebindings"})
_COLLECTED = frozenset({"ownerReferences", "finalizers", "managedFields"})
_EVERYTHING: Sequence[Rule] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)


class EscalationCheck:
    """Comes after all plugins that change objects."""

    name = "EscalationCheck"

    def __init__(self, authorizer: Authorizer, rbac: RbacAuthorizer) -> None:
        self._authorizer = authorizer
        self._rbac = rbac

    async def admit(self, attributes: Attributes) -> None:
        """Raises Forbidden for what would grant more than the user holds, NotFound for a role that is not there, and
        BadRequest for one that cannot be."""
        scope, obj = attributes.scope, attributes.obj
        if scope.group != GROUP or obj is None or may_do_everything(attributes.user):
            return
        if scope.resource in _ROLES:
            await settle(partial(self._check_role, attributes, obj))
        elif scope.resource in _BINDINGS:
            await settle(partial(self._check_binding, attributes, obj))

    def _check_role(self, attributes: Attributes, role: Object) -> None:
        user, resource, namespace = attributes.user, attributes.scope.resource, attributes.namespace
        # A role that is created has no name in its request's path, so rules for certain names do not allow it.
        name = attributes.name if attributes.old is not None else ""
        if may_escalate(self._authorizer, user, resource, namespace, name) or _only_collected(role, attributes.old):
            return
        if why := self._lacking(attributes, role.get("rules") or ()):
            raise _refusal(attributes, role, why)
        if (_aggregates(role) or _aggregates(attributes.old)) and self._lacking(attributes, _EVERYTHING):
            raise _refusal(attributes, role, "must have cluster-admin privileges to use the aggregationRule")

    def _check_binding(self, attributes: Attributes, binding: Object) -> None:
        reference, namespace = binding.get("roleRef") or {}, attributes.namespace
        if _only_collected(binding, attributes.old):
            return
        if may_bind(self._authorizer, attributes.user, reference, namespace):
            return
        if reference.get("kind") == "Role" and not namespace:
            raise BadRequest("Namespace parameter required.")
        name = reference.get("name") or ""
        if reference.get("kind") in ROLE_KINDS:
            if not name:
                raise BadRequest("Name parameter required.")
            check_name(name)
        try:
            rules = self._rbac.role_rules(reference, namespace)
        except NotFound:
            raise not_found(GROUP, attributes.scope.resource, name) from None
        except ValueError as error:
            raise ApiError(str(error)) from None
        if why := self._lacking(attributes, rules):
            raise _refusal(attributes, binding, why)

    def _lacking(self, attributes: Attributes, rules: Sequence[Rule]) -> str | None:
        held = self._rbac.rules_for(attributes.user, attributes.namespace)
        return escalation(attributes.user, held, rules, attributes.scope.resource)


def _refusal(attributes: Attributes, obj: Object, why: str) -> ApiError:
    return forbidden(GROUP, attributes.scope.resource, obj["metadata"].get("name") or "", why)


def _aggregates(role: Object | None) -> bool:
    return bool(((role or {}).get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(obj: Object, old: Object | None) -> bool:
    """Whether an update changes nothing but what garbage collection needs to."""
    return old is not None and _kept(obj) == _kept(old)


def _kept(obj: Object) -> Mapping[str, object]:
    meta = {key: value for key, value in obj["metadata"].items() if key not in _COLLECTED}
    return {**{key: value for key, value in obj.items() if value}, "metadata": meta}
