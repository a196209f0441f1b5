"""Asking one webhook: whether it is concerned, what it is shown, what it says.

Source: apiserver `pkg/admission/plugin/webhook/{generic,mutating,validating}`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from steersman._util.gotext import quote
from steersman.api.admission import review as reviews
from steersman.api.admission.review import Question, Verdict
from steersman.api.review_answers import AnswerError
from steersman.apimachinery import names
from steersman.apimachinery.errors import ApiError, BadRequest, forbidden, internal
from steersman.apiserver.admission.chain import METADATA, Attributes
from steersman.apiserver.admission.matching import (
    Equivalents,
    matched_scope,
    namespace_matches,
    object_matches,
    request_namespace,
)
from steersman.apiserver.admission.versions import convert
from steersman.apiserver.admission.webhooks.hooks import Hook
from steersman.apiserver.authz.attributes import Authorizer
from steersman.apiserver.authz.waiting import settle
from steersman.apiserver.metrics import Metrics
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import ResourceCache
from steersman.apiserver.webhooks.caller import WebhookCaller, WebhookError

_WITHOUT_EFFECTS = ("None", "NoneOnDryRun")


class CallFailed(Exception):
    """The webhook gave no usable answer: its failurePolicy decides."""

    def __init__(self, hook: Hook, reason: object) -> None:
        super().__init__(f"failed calling webhook {quote(hook.name)}: {reason}")


@dataclass(slots=True)
class Asker:
    """What asking takes: connections, namespaces, other versions, and who may do what (for match conditions)."""

    caller: WebhookCaller
    namespaces: Callable[[], ResourceCache]
    equivalents: Equivalents
    authorizer: Authorizer
    metrics: Metrics

    async def concerns(self, hook: Hook, attributes: Attributes) -> ResourceScope | None:
        """The version of the resource in which a webhook wants to see this request; None: it does not.

        Raises NotFound for a namespace that is not there, Forbidden for match conditions that cannot be decided.
        """
        missing: ApiError | None = None
        try:
            if not namespace_matches(hook.namespaces, attributes, self.namespaces()):
                return None
        except ApiError as error:
            missing = error
        if not object_matches(hook.objects, attributes):
            return None
        scope = matched_scope(hook.rules, attributes, self.equivalents if hook.equivalent else None)
        if scope is None:
            return None
        if missing is not None:
            raise missing
        return scope if await self._conditions_hold(hook, scope, attributes) else None

    async def _conditions_hold(self, hook: Hook, scope: ResourceScope, attributes: Attributes) -> bool:
        if hook.conditions is None:
            return True
        from steersman.apiserver.admission.conditions import admission_variables  # deferred: few hooks have conditions

        question = await self.question(scope, attributes)
        variables = admission_variables(
            attributes, question.kind, question.resource, self.authorizer, objects=(question.obj, question.old)
        )
        outcome = await settle(partial(hook.conditions.match, variables))
        if outcome.error:
            if hook.ignores_failures:
                return False
            raise forbidden(attributes.scope.group, attributes.scope.resource, attributes.name, outcome.error)
        return outcome.matches

    async def question(self, scope: ResourceScope, attributes: Attributes) -> Question:
        """The request as seen in a version. Raises InternalError when an object cannot be converted to it."""
        kind = attributes.kind or scope.gvk
        obj, old = attributes.obj, attributes.old
        if scope is not attributes.scope and attributes.kind is None:
            try:
                obj, old = await convert(obj, attributes.scope, scope), await convert(old, attributes.scope, scope)
            except ApiError as error:
                raise internal(error.message) from None
        return Question(
            kind=kind,
            resource=scope.gvr,
            request_kind=attributes.gvk,
            request_resource=attributes.scope.gvr,
            subresource=attributes.subresource,
            name=attributes.name,
            namespace=request_namespace(attributes),
            operation=attributes.operation,
            user=attributes.user.to_dict(),
            obj=_typed(obj, kind.api_version, kind.kind),
            old=_typed(old, kind.api_version, kind.kind),
            dry_run=attributes.dry_run,
            options=attributes.options,
        )

    async def ask(self, hook: Hook, question: Question, attributes: Attributes, *, mutating: bool) -> Verdict:
        """What a webhook says of a request that it lets pass. Raises CallFailed, and the webhook's own refusal."""
        if attributes.dry_run and hook.side_effects not in _WITHOUT_EFFECTS:
            raise BadRequest(reviews.no_dry_run(hook.name))
        kind = "admit" if mutating else "validating"
        started, code, rejected = time.monotonic(), 0, True
        try:
            verdict = await self._send(hook, question, mutating)
            code, rejected = 200, False
            attributes.warn([text for text in verdict.warnings if text])
            for key, text in verdict.annotations.items():
                named = f"{hook.name}/{key}"
                if named.count("/") == 1 and not names.qualified_name(named):
                    attributes.annotate(named, text, METADATA)
            if not verdict.allowed:
                refusal = reviews.refusal(hook.name, verdict.status)
                code, rejected = refusal.code, True
                raise refusal
            return verdict
        finally:
            seconds = time.monotonic() - started
            self.metrics.record_webhook(hook.name, kind, attributes.operation, code, rejected, seconds)

    async def _send(self, hook: Hook, question: Question, mutating: bool) -> Verdict:
        uid = str(uuid.uuid4())
        try:
            version = reviews.review_version(hook.review_versions)
        except AnswerError as error:
            raise CallFailed(hook, f"could not create admission objects: {error}") from None
        try:
            review = reviews.review(version, uid, question)
            body = await self.caller.call(hook.client, review, hook.timeout, name=hook.name)
            found, given = reviews.response(version, body)
        except (WebhookError, AnswerError) as error:
            raise CallFailed(hook, f"failed to call webhook: {error}") from None
        try:
            return reviews.verdict(found, given, version, uid, mutating=mutating)
        except AnswerError as error:
            raise CallFailed(hook, f"received invalid webhook response: {error}") from None


def _typed(obj: Object | None, api_version: str, kind: str) -> Object | None:
    """The object under the kind that the request is about, whatever it calls itself."""
    if obj is None or (obj.get("kind") == kind and obj.get("apiVersion") == api_version):
        return obj
    return {**obj, "apiVersion": api_version, "kind": kind}
