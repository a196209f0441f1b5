"""The plugins of policies, loaded with the first policy that is bound: most servers have none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from steersman._util.dataclass import dataclass
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.admission.versions import equivalents
from steersman.apiserver.authz.attributes import Authorizer
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.watchcache import ResourceCache

if TYPE_CHECKING:
    from steersman.apiserver.admission.policies.dispatch import Dispatcher
    from steersman.apiserver.admission.policies.mutating import MutatingPolicies
    from steersman.apiserver.admission.policies.validating import ValidatingPolicies


@dataclass(frozen=True, slots=True)
class Setting:
    """What policies of one kind work with: where they and their bindings are, and what their expressions may ask."""

    policies: ResourceCache
    bindings: ResourceCache
    namespaces: Callable[[], ResourceCache]
    catalog: Catalog
    authorizer: Authorizer

    @property
    def in_use(self) -> bool:
        return bool(self.policies.entries) and bool(self.bindings.entries)

    def dispatcher(self) -> Dispatcher:
        from steersman.apiserver.admission.policies.criteria import Matcher
        from steersman.apiserver.admission.policies.dispatch import Dispatcher

        matcher = Matcher(self.namespaces, partial(equivalents, self.catalog))
        return Dispatcher(self.catalog, self.namespaces, matcher, self.authorizer)


class DeferredValidatingPolicies:
    """ValidatingAdmissionPolicy."""

    name = "ValidatingAdmissionPolicy"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._plugin: ValidatingPolicies | None = None

    @property
    def active(self) -> bool:
        return self._setting.in_use and self._loaded().active

    async def validate(self, attributes: Attributes) -> None:
        await self._loaded().validate(attributes)

    def _loaded(self) -> ValidatingPolicies:
        if self._plugin is None:
            from steersman.api.admissionregistration.judging import Judge
            from steersman.apiserver.admission.policies.source import PolicySource
            from steersman.apiserver.admission.policies.validating import ValidatingPolicies

            source = PolicySource(self._setting.policies, self._setting.bindings, Judge)
            self._plugin = ValidatingPolicies(source, self._setting.dispatcher())
        return self._plugin


class DeferredMutatingPolicies:
    """MutatingAdmissionPolicy."""

    name = "MutatingAdmissionPolicy"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._plugin: MutatingPolicies | None = None

    @property
    def active(self) -> bool:
        return self._setting.in_use and self._loaded().active

    async def admit(self, attributes: Attributes) -> None:
        await self._loaded().admit(attributes)

    def _loaded(self) -> MutatingPolicies:
        if self._plugin is None:
            from steersman.api.admissionregistration.mutating import compile_mutator
            from steersman.apiserver.admission.policies.mutating import MutatingPolicies
            from steersman.apiserver.admission.policies.source import PolicySource

            source = PolicySource(self._setting.policies, self._setting.bindings, compile_mutator)
            self._plugin = MutatingPolicies(source, self._setting.dispatcher())
        return self._plugin
