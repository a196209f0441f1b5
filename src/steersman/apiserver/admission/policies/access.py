"""Nobody makes a policy read parameters that they may not read: policies and bindings are checked for that, too.

Source: kubernetes `pkg/registry/admissionregistration/{validating,mutating}admissionpolicy{,binding}/authz.go`,
`pkg/registry/admissionregistration/resolver/resolver.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from steersman._util.dataclass import dataclass
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.errors import invalid
from steersman.apimachinery.gvk import GroupVersionKind, split_api_version
from steersman.apiserver import rest
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.admission.policies.params import scope_of_kind
from steersman.apiserver.aside import patiently
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz import attributes as authz
from steersman.apiserver.authz.escalation import may_do_everything
from steersman.apiserver.authz.waiting import settle
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import ResourceCache

GROUP = "admissionregistration.k8s.io"
_POLICIES = frozenset({"validatingadmissionpolicies", "mutatingadmissionpolicies"})
_BINDINGS = {
    "validatingadmissionpolicybindings": "validatingadmissionpolicies",
    "mutatingadmissionpolicybindings": "mutatingadmissionpolicies",
}
_ANY_TIME = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class _Needed:
    """The right that parameters need, and what is said to those who lack it; `%` stands for the user."""

    verb: str
    group: str
    version: str
    resource: str
    name: str
    namespace: str
    why: str


class ParameterAccess:
    """Comes after all plugins that change objects. It leaves what is invalid anyway to the kind's own rules."""

    name = "ParameterAccess"

    def __init__(
        self, catalog: Catalog, authorizer: authz.Authorizer, look: Callable[[str, str], ResourceCache]
    ) -> None:
        self._catalog = catalog
        self._authorizer = authorizer
        self._look = look

    async def admit(self, attributes: Attributes) -> None:
        """Raises Invalid for parameters that the user may not read."""
        scope, obj = attributes.scope, attributes.obj
        if scope.group != GROUP or obj is None or attributes.subresource or may_do_everything(attributes.user):
            return
        if scope.resource in _POLICIES:
            field, needed = "paramKind", self._for_policy(obj, attributes.old)
        elif scope.resource in _BINDINGS:
            field, needed = "paramRef", self._for_binding(obj, attributes.old, _BINDINGS[scope.resource])
        else:
            return
        if needed is None or await self._may(attributes.user, needed) or await _is_invalid(attributes, obj):
            return
        error = fe.forbidden(f"spec.{field}", needed.why.replace("%", _shown(attributes.user)))
        raise invalid(scope.group, scope.kind, obj["metadata"].get("name") or attributes.name, [error])

    async def _may(self, user: UserInfo, needed: _Needed) -> bool:
        asked = authz.Attributes(
            user,
            needed.verb,
            needed.group,
            needed.version,
            needed.resource,
            namespace=needed.namespace,
            name=needed.name,
        )
        return (await settle(partial(self._authorizer.authorize, asked))).allowed

    def _for_policy(self, policy: Object, old: Object | None) -> _Needed | None:
        kind = _spec(policy).get("paramKind")
        if kind is None or (old is not None and _spec(old).get("paramKind") == kind):
            return None
        group, version, resource, _ = self._resource(kind)
        what = f"(kind={kind.get('kind')}, apiVersion={kind.get('apiVersion')})"
        why = f'user % must have "get" permission on all objects of the referenced paramKind {what}'
        return _Needed("get", group, version, resource, "*", "*", why)

    def _for_binding(self, binding: Object, old: Object | None, policies: str) -> _Needed | None:
        spec, before = _spec(binding), _spec(old or {})
        reference, policy = spec.get("paramRef"), spec.get("policyName") or ""
        if reference is None or (before.get("paramRef") == reference and before.get("policyName") == policy):
            return None
        verb = "get" if reference.get("name") else "list"
        rights = f'user % does not have "{verb}" permission'
        why = f"{rights} on the object referenced by paramRef"
        group = version = resource = "*"
        entry = self._look(GROUP, policies).get(policy)
        lack = "to determine minimum required permissions and"
        everywhere = f"{lack} {rights} for all groups, versions and resources"
        if entry is None:
            why = f"unable to get policy {policy} {everywhere}"
        elif (kind := _spec(entry.decode()).get("paramKind")) is not None:
            group, version, resource, known = self._resource(kind)
            if not known:
                why = f"unable to resolve paramKind &{{{kind.get('apiVersion')} {kind.get('kind')}}} {everywhere}"
        name, namespace = reference.get("name") or "", reference.get("namespace") or ""
        return _Needed(verb, group, version, resource, name, namespace, why)

    def _resource(self, kind: Mapping[str, str]) -> tuple[str, str, str, bool]:
        """Group, version and resource of a paramKind, and whether it is served: "*" for what is not known."""
        try:
            group, version = split_api_version(kind.get("apiVersion") or "")
        except ValueError:
            return "*", "*", "*", False
        scope = scope_of_kind(self._catalog, GroupVersionKind(group, version, kind.get("kind") or ""))
        return group, version, "*" if scope is None else scope.resource, scope is not None


def _spec(obj: Object) -> Object:
    return obj.get("spec") or {}


async def _is_invalid(attributes: Attributes, obj: Object) -> bool:
    """Whether the rules of the kind refuse the object."""
    strategy = attributes.scope.strategy
    proposed = {**obj, "metadata": dict(obj["metadata"])}
    if attributes.old is not None:
        return bool(await patiently(strategy.before_update, proposed, attributes.old))
    rest.fill_new_metadata(proposed["metadata"], _ANY_TIME)
    return bool(await patiently(strategy.before_create, proposed))


def _shown(user: UserInfo) -> str:
    """A user as Go prints one."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
