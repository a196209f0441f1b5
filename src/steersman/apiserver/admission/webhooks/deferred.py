"""The webhook plugins, loaded with the first webhook configuration: most servers have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.watchcache import ResourceCache

if TYPE_CHECKING:
    from steersman.apiserver.admission.webhooks.asking import Asker
    from steersman.apiserver.admission.webhooks.mutating import MutatingWebhooks
    from steersman.apiserver.admission.webhooks.validating import ValidatingWebhooks
from collections.abc import Callable


class DeferredMutating:
    """MutatingAdmissionWebhook."""

    name = "MutatingAdmissionWebhook"

    def __init__(self, cache: ResourceCache, asker: Callable[[], Asker]) -> None:
        self._cache = cache
        self._asker = asker
        self._plugin: MutatingWebhooks | None = None

    @property
    def active(self) -> bool:
        return bool(self._cache.entries)

    async def admit(self, attributes: Attributes) -> None:
        if self._plugin is None:
            from steersman.apiserver.admission.webhooks.hooks import HookSource
            from steersman.apiserver.admission.webhooks.mutating import MutatingWebhooks

            self._plugin = MutatingWebhooks(HookSource(self._cache), self._asker())
        await self._plugin.admit(attributes)


class DeferredValidating:
    """ValidatingAdmissionWebhook."""

    name = "ValidatingAdmissionWebhook"

    def __init__(self, cache: ResourceCache, asker: Callable[[], Asker]) -> None:
        self._cache = cache
        self._asker = asker
        self._plugin: ValidatingWebhooks | None = None

    @property
    def active(self) -> bool:
        return bool(self._cache.entries)

    async def validate(self, attributes: Attributes) -> None:
        if self._plugin is None:
            from steersman.apiserver.admission.webhooks.hooks import HookSource
            from steersman.apiserver.admission.webhooks.validating import ValidatingWebhooks

            self._plugin = ValidatingWebhooks(HookSource(self._cache), self._asker())
        await self._plugin.validate(attributes)
