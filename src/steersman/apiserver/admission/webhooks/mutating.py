"""MutatingAdmissionWebhook: webhooks change objects, one after another, each seeing what the earlier ones made.

Source: apiserver `pkg/admission/plugin/webhook/mutating/{dispatcher,reinvocationcontext}.go`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from steersman._util.gotext import quote
from steersman.api import review_answers as answers
from steersman.api.admission import review as reviews
from steersman.api.admission.review import Question, Verdict
from steersman.api.review_answers import AnswerError
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import ApiError, internal
from steersman.apimachinery.field_errors import Struct, format_json
from steersman.apimachinery.gvk import GroupVersionKind
from steersman.apimachinery.patch import json_patch
from steersman.apiserver.admission.chain import METADATA, REQUEST, Attributes
from steersman.apiserver.admission.matching import is_exempt
from steersman.apiserver.admission.replacing import replace
from steersman.apiserver.admission.versions import convert
from steersman.apiserver.admission.webhooks.asking import Asker, CallFailed
from steersman.apiserver.admission.webhooks.hooks import Hook, HookSource
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object

_MUTATION = "mutation.webhook.admission.k8s.io/"

log = logging.getLogger("steersman.apiserver.admission")


@dataclass(slots=True)
class _Notes:
    """Whom a second round is to ask again: who was asked before a later change, and wants to know of it."""

    asked: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)
    left: bytes = b""

    def object_changed(self) -> None:
        self.again |= self.asked
        self.asked = set()


class MutatingWebhooks:
    """The plugin."""

    name = "MutatingAdmissionWebhook"

    def __init__(self, source: HookSource, asker: Asker) -> None:
        self._source = source
        self._asker = asker

    @property
    def active(self) -> bool:
        return self._source.active

    async def admit(self, attributes: Attributes) -> None:
        """Raises a webhook's refusal, and InternalError when one that must not fail does."""
        round_ = attributes.reinvocation
        if is_exempt(attributes.scope) or round_ is None:
            return
        notes = round_.notes.setdefault(self.name, _Notes())
        assert isinstance(notes, _Notes)
        if round_.running and notes.left != codec.encode(attributes.obj):
            notes.object_changed()
        try:
            for index, hook in enumerate(await self._source.hooks()):
                scope = await self._asker.concerns(hook, attributes)
                if scope is None or (round_.running and hook.uid not in notes.again):
                    continue
                told = _Telling(hook, f"round_{int(round_.running)}_index_{index}", attributes)
                if await self._changes(hook, scope, attributes, told):
                    notes.object_changed()
                    round_.wanted = True
                if hook.reinvoked:
                    notes.asked.add(hook.uid)
        finally:
            notes.left = codec.encode(attributes.obj)

    async def _changes(self, hook: Hook, scope: ResourceScope, attributes: Attributes, told: _Telling) -> bool:
        """Ask one webhook; whether it changed the object."""
        question = await self._asker.question(scope, attributes)
        changed = False
        try:
            verdict = await self._asker.ask(hook, question, attributes, mutating=True)
            custom = attributes.scope.custom and attributes.kind is None
            patched = _patched(hook, question, verdict, custom=custom)
        except CallFailed as error:
            if not hook.ignores_failures:
                raise internal(str(error)) from None
            log.warning("a webhook that may fail was passed over", extra={"webhook": hook.name, "error": str(error)})
            told.failed_open()
        else:
            if patched is not None:
                told.patch(verdict.patch)
                await _put(patched, scope, attributes)
                changed = codec.encode(patched) != codec.encode(question.obj)
        finally:
            told.mutation(changed)
        return changed


@dataclass(frozen=True, slots=True)
class _Telling:
    """What audit events tell of one call; `place` are its round and its place among all webhooks."""

    hook: Hook
    place: str
    attributes: Attributes

    def failed_open(self) -> None:
        self.attributes.annotate(f"failed-open.{_MUTATION}{self.place}", self.hook.name, METADATA)

    def mutation(self, mutated: bool) -> None:
        self.attributes.annotate(f"{_MUTATION}{self.place}", self._text({"mutated": mutated}), METADATA)

    def patch(self, text: bytes) -> None:
        facts = {"patch": codec.decode(text), "patchType": "JSONPatch"}
        self.attributes.annotate(f"patch.webhook.admission.k8s.io/{self.place}", self._text(facts), REQUEST)

    def _text(self, facts: Object) -> str:
        return format_json(Struct(configuration=self.hook.configuration, webhook=self.hook.name, **facts))


def _patched(hook: Hook, question: Question, verdict: Verdict, *, custom: bool) -> Object | None:
    """What the webhook's patch makes of the object it was shown; None without a patch.

    An object of a built-in kind need not say what it is.
    """
    if not verdict.patch:
        return None
    try:
        operations = reviews.decode_patch(verdict.patch)
    except AnswerError as error:
        raise CallFailed(hook, error) from None
    if not operations:
        return None
    if question.obj is None:
        why = "attempted to modify the object, which is not supported for this operation"
        raise internal(f"admission webhook {quote(hook.name)} {why}")
    if verdict.patch_type != "JSONPatch":
        raise CallFailed(hook, f"unsupported patch type {quote(verdict.patch_type)}")
    try:
        patched = json_patch.apply(question.obj, operations, most=None)
    except ApiError as error:
        raise internal(str(error.__cause__ or error.message)) from None
    if isinstance(patched, dict) and not custom:
        patched = {"apiVersion": question.kind.api_version, "kind": question.kind.kind, **patched}
    if not isinstance(patched, dict) or not isinstance(patched.get("kind"), str) or not patched["kind"]:
        raise internal(f"Object 'Kind' is missing in '{codec.encode(patched).decode()}'")
    _check_kind(patched, question.kind, custom=custom)
    return patched


def _check_kind(patched: Object, shown: GroupVersionKind, *, custom: bool) -> None:
    """Raises ApiError for a patch that made another kind of the object. That of a custom resource is judged later,
    unless it is of another group."""
    kind, api_version = patched["kind"], answers.text(patched.get("apiVersion"))
    group, _, version = api_version.rpartition("/")
    if custom:
        if group != shown.group:
            named = answers.gvk(api_version, kind)
            raise ApiError(f"{named} is unstructured and is not suitable for converting to {quote(shown.api_version)}")
    elif api_version != shown.api_version:
        why = f"no kind {quote(kind)} is registered for version {quote(api_version)}"
        raise internal(f'{why} in scheme "pkg/runtime/scheme.go:111"')
    elif kind != shown.kind:
        raise ApiError(f"converting ({version}.{kind}) to ({version}.{shown.kind}): unknown conversion")


async def _put(patched: Object, scope: ResourceScope, attributes: Attributes) -> None:
    """Make a patched object the request's, in the request's version, complete again."""
    try:
        obj: Object = codec.copy(patched)
        if attributes.kind is None:
            obj = codec.copy(await convert(obj, scope, attributes.scope))
        replace(attributes, obj)
    except ApiError as error:
        raise internal(str(error.__cause__ or error.message)) from None
