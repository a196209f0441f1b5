"""ValidatingAdmissionWebhook: webhooks judge what is about to be stored, all at once.

Source: apiserver `pkg/admission/plugin/webhook/validating/dispatcher.go`.
"""

from __future__ import annotations

import asyncio
import logging

from steersman.apimachinery.errors import internal
from steersman.apiserver.admission.chain import METADATA, Attributes
from steersman.apiserver.admission.matching import is_exempt
from steersman.apiserver.admission.webhooks.asking import Asker, CallFailed
from steersman.apiserver.admission.webhooks.hooks import Hook, HookSource
from steersman.apiserver.scope import ResourceScope

_FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/round_0_index_"

log = logging.getLogger("steersman.apiserver.admission")


class ValidatingWebhooks:
    """The plugin."""

    name = "ValidatingAdmissionWebhook"

    def __init__(self, source: HookSource, asker: Asker) -> None:
        self._source = source
        self._asker = asker

    @property
    def active(self) -> bool:
        return self._source.active

    async def validate(self, attributes: Attributes) -> None:
        """Raises the refusal of the first webhook, in their order, that refuses or must not fail and does."""
        if is_exempt(attributes.scope):
            return
        concerned = [(hook, await self._asker.concerns(hook, attributes)) for hook in await self._source.hooks()]
        relevant = [(hook, scope) for hook, scope in concerned if scope is not None]
        asking = [self._ask(index, hook, scope, attributes) for index, (hook, scope) in enumerate(relevant)]
        for outcome in await asyncio.gather(*asking, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _ask(self, index: int, hook: Hook, scope: ResourceScope, attributes: Attributes) -> None:
        question = await self._asker.question(scope, attributes)
        try:
            await self._asker.ask(hook, question, attributes, mutating=False)
        except CallFailed as error:
            if not hook.ignores_failures:
                raise internal(str(error)) from None
            log.warning("a webhook that may fail was passed over", extra={"webhook": hook.name, "error": str(error)})
            attributes.annotate(f"{_FAILED_OPEN}{index}", hook.name, METADATA)
