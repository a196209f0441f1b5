"""What both plugins of policies do with a write before any expression is evaluated.

Source: apiserver `pkg/admission/plugin/policy/{generic/{plugin,policy_dispatcher},validating/dispatcher}.go`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from steersman.api.admissionregistration.webhook_configuration import UNSEEN
from steersman.apimachinery.errors import ApiError, Forbidden, forbidden, not_found
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.admission.matching import request_namespace
from steersman.apiserver.admission.policies.criteria import Matcher
from steersman.apiserver.admission.policies.params import ParamError, collect_params, param_scope
from steersman.apiserver.admission.policies.source import Binding, Policy
from steersman.apiserver.admission.versions import convert
from steersman.apiserver.authz.attributes import Authorizer
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import ResourceCache

Compiled = TypeVar("Compiled")
_POLICIES = (
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
)
_UNSEEN = UNSEEN | {("admissionregistration.k8s.io", resource) for resource in _POLICIES}


@dataclass(frozen=True, slots=True)
class Invocation(Generic[Compiled]):
    """A policy that is to be evaluated with these parameters, one after another, on the write as `scope` has it."""

    policy: Policy[Compiled]
    binding: Binding
    scope: ResourceScope
    params: Sequence[Object | None]


@dataclass(frozen=True, slots=True)
class Misconfigured(Generic[Compiled]):
    """A policy, or its binding, that matches but cannot be evaluated."""

    policy: Policy[Compiled]
    binding: Binding | None
    error: str

    @property
    def message(self) -> str:
        what = "policy" if self.binding is None else "binding"
        return f"failed to configure {what}: {self.error}"


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Finds what is to be evaluated."""

    catalog: Catalog
    namespaces: Callable[[], ResourceCache]
    matcher: Matcher
    authorizer: Authorizer

    async def select(
        self, policies: Sequence[Policy[Compiled]], attributes: Attributes
    ) -> AsyncIterator[Invocation[Compiled] | Misconfigured[Compiled]]:
        """The policies and bindings that a write matches, in order."""
        for policy in policies:
            try:
                scope = self.matcher.match(policy.match, attributes)
                if scope is None:
                    continue
                kind: Any = policy.spec.get("paramKind")
                params = param_scope(self.catalog, kind) if kind else None
            except (ApiError, ParamError) as error:
                yield Misconfigured(policy, None, str(error))
                continue
            for binding in policy.bindings:
                try:
                    if binding.match is not None and self.matcher.match(binding.match, attributes) is None:
                        continue
                    found = await collect_params(params, binding.param_ref, request_namespace(attributes))
                except (ApiError, ParamError) as error:
                    yield Misconfigured(policy, binding, str(error))
                    continue
                if found:
                    yield Invocation(policy, binding, scope, found)

    def namespace(self, attributes: Attributes) -> Object | None:
        """The Namespace of a write's object. Raises NotFound for one that is not there."""
        if not attributes.namespace or attributes.gvk == ("", "v1", "Namespace"):
            return None
        entry = self.namespaces().get(attributes.namespace)
        if entry is None:
            raise not_found("", "namespaces", attributes.namespace)
        return entry.decode()


def is_unseen(scope: ResourceScope) -> bool:
    """Whether no policy is ever asked about a resource: policies can always be repaired."""
    return (scope.group, scope.resource) in _UNSEEN


async def versioned(
    attributes: Attributes, scope: ResourceScope, obj: Object | None, old: Object | None
) -> tuple[Object | None, Object | None]:
    """A write's objects as a scope has them. Raises ApiError when they cannot be converted."""
    if scope is attributes.scope or attributes.kind is not None:
        return obj, old
    return await convert(obj, attributes.scope, scope), await convert(old, attributes.scope, scope)


def refusal(attributes: Attributes, message: str) -> Forbidden:
    """A 403 that names the object as well as is known."""
    name = attributes.name
    if not name:
        meta = (attributes.obj or {}).get("metadata") or {}
        name = meta.get("name") or meta.get("generateName") or "Unknown"
    return forbidden(attributes.scope.group, attributes.scope.resource, name, message)
