"""Which plugins a server has, in kube-apiserver's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from steersman._util.dataclass import dataclass
from steersman.api import kinds
from steersman.apiserver.admission.builtin import builtin_plugins
from steersman.apiserver.admission.chain import Admission, Plugin, Reinvocable, Selective, Validator
from steersman.apiserver.admission.escalation import EscalationCheck
from steersman.apiserver.admission.limit_ranger import LimitRanger
from steersman.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from steersman.apiserver.admission.owner_permissions import OwnerReferencesPermissionEnforcement
from steersman.apiserver.admission.pod_security import PodSecurity
from steersman.apiserver.admission.policies.access import ParameterAccess
from steersman.apiserver.admission.policies.deferred import (
    DeferredMutatingPolicies,
    DeferredValidatingPolicies,
    Setting,
)
from steersman.apiserver.admission.resource_quota import ResourceQuota, SaveStatus
from steersman.apiserver.admission.versions import equivalents
from steersman.apiserver.admission.webhooks.deferred import DeferredMutating, DeferredValidating
from steersman.apiserver.authz.attributes import Authorizer
from steersman.apiserver.authz.rbac import RbacAuthorizer
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.metrics import Metrics
from steersman.apiserver.quota_charges import QuotaCharges
from steersman.apiserver.watchcache import ResourceCache, WatchCache
from steersman.apiserver.webhooks.caller import WebhookCaller

if TYPE_CHECKING:
    from steersman.apiserver.admission.webhooks.asking import Asker

GROUP = "admissionregistration.k8s.io"


@dataclass(slots=True)
class Surroundings:
    """What plugins work with. `save_quota` writes a ResourceQuota's status; `charges` are those on their way.

    `extra` are the embedder's own plugins, `disabled` the names of those that are not to run.
    """

    catalog: Catalog
    cache: WatchCache
    authorizer: Authorizer
    caller: WebhookCaller
    metrics: Metrics
    save_quota: SaveStatus
    charges: QuotaCharges
    extra: Sequence[Plugin | Validator] = ()
    disabled: frozenset[str] = frozenset()
    rbac: RbacAuthorizer | None = None
    _asker: Asker | None = field(default=None, init=False)

    def look(self, group: str, resource: str) -> ResourceCache:
        """The cache of a built-in resource."""
        scope = self.catalog.look_up(group, "v1", resource)
        assert scope is not None
        return scope.cache

    def configured(self, kind: str, group: str = GROUP) -> ResourceCache:
        """The cache of a kind that configures admission, without serving it yet."""
        found = kinds.builtin_kind(group, "v1", kind)
        return self.cache.resource(f"/registry/{found.storage_prefix}/".encode())

    def policies(self, kind: str) -> Setting:
        """What the policies of a kind work with."""
        namespaces = partial(self.look, "", "namespaces")
        policies, bindings = self.configured(kind), self.configured(f"{kind}Binding")
        return Setting(policies, bindings, namespaces, self.catalog, self.authorizer)

    def asker(self) -> Asker:
        """What the webhook plugins share."""
        if self._asker is None:
            from steersman.apiserver.admission.webhooks.asking import Asker

            namespaces = partial(self.look, "", "namespaces")
            versions = partial(equivalents, self.catalog)
            self._asker = Asker(self.caller, namespaces, versions, self.authorizer, self.metrics)
        return self._asker


def compose(around: Surroundings) -> Admission:
    """The chain of all plugins that are not disabled."""
    limits = LimitRanger(around.configured("LimitRange", ""))
    early: list[Plugin] = [
        NamespaceLifecycle(partial(around.look, "", "namespaces")),
        limits,
        *builtin_plugins(around.look),
        *(plugin for plugin in around.extra if isinstance(plugin, Plugin)),
    ]
    late: list[Reinvocable] = [
        DeferredMutatingPolicies(around.policies("MutatingAdmissionPolicy")),
        DeferredMutating(around.configured("MutatingWebhookConfiguration"), around.asker),
    ]
    validators: list[Validator | Selective] = [
        limits,
        PodSecurity(partial(around.look, "")),
        OwnerReferencesPermissionEnforcement(around.catalog, around.authorizer),
        *(plugin for plugin in around.extra if isinstance(plugin, Validator)),
        DeferredValidatingPolicies(around.policies("ValidatingAdmissionPolicy")),
        DeferredValidating(around.configured("ValidatingWebhookConfiguration"), around.asker),
        ResourceQuota(around.configured("ResourceQuota", ""), around.save_quota, around.charges),
    ]
    authorizer = around.authorizer
    guards: list[Plugin] = [ParameterAccess(around.catalog, authorizer, around.look)]
    if around.rbac is not None:
        guards.append(EscalationCheck(authorizer, around.rbac))
    return Admission(
        [plugin for plugin in early if plugin.name not in around.disabled],
        [plugin for plugin in late if plugin.name not in around.disabled],
        guards,
        [plugin for plugin in validators if plugin.name not in around.disabled],
    )
