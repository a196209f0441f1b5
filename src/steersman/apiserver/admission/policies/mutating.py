"""MutatingAdmissionPolicy: expressions change what is written, before webhooks see it.

Source: apiserver `pkg/admission/plugin/policy/mutating/{dispatcher,reinvocationcontext}.go`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from steersman._util.gotext import quote
from steersman.api.admissionregistration.mutating import Mutation, MutationError, Mutator
from steersman.apimachinery.apply.typed import TypeView
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import ApiError, BadRequest, internal
from steersman.apimachinery.go_values import DecodeError
from steersman.apimachinery.object_meta import coerce_object_meta
from steersman.apiserver.admission.chain import Attributes, Form
from steersman.apiserver.admission.conditions import AdmissionVariables, admission_variables
from steersman.apiserver.admission.policies.dispatch import (
    Dispatcher,
    Invocation,
    Misconfigured,
    is_unseen,
    refusal,
    versioned,
)
from steersman.apiserver.admission.policies.source import Binding, Policy, PolicySource
from steersman.apiserver.admission.versions import convert
from steersman.apiserver.authz.waiting import settle
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object

Key = tuple[str, str, str, str]
"""A policy, its binding, and the namespace and name of its parameter."""


@dataclass(slots=True)
class _Notes:
    """Which policies a second round is to apply again: those that want it, of those before a later change."""

    applied: set[Key] = field(default_factory=set)
    again: set[Key] = field(default_factory=set)
    left: bytes = b""

    def object_changed(self) -> None:
        self.again |= self.applied
        self.applied = set()


class MutatingPolicies:
    """The plugin."""

    name = "MutatingAdmissionPolicy"

    def __init__(self, source: PolicySource[Mutator], dispatcher: Dispatcher) -> None:
        self._source = source
        self._dispatcher = dispatcher

    @property
    def active(self) -> bool:
        return self._source.active

    async def admit(self, attributes: Attributes) -> None:
        """Changes the object. Raises Forbidden for what policies that must not fail cannot do."""
        round_ = attributes.reinvocation
        if attributes.operation == "DELETE" or round_ is None or is_unseen(attributes.scope):
            return
        errors: list[tuple[str, str]] = []
        invocations: list[Invocation[Mutator]] = []
        async for selected in self._dispatcher.select(await self._source.policies(), attributes):
            if isinstance(selected, Invocation):
                invocations.append(selected)
            elif not selected.policy.ignores_failures:
                errors.append((_who(selected), ""))
        if invocations:
            errors += await _Round(self._dispatcher, attributes, self.name).run(invocations)
        if errors:
            raise _refusal(attributes, errors)


class _Round:
    """Applies the policies that match one write, in order, each to what the earlier ones made."""

    def __init__(self, dispatcher: Dispatcher, attributes: Attributes, name: str) -> None:
        assert attributes.reinvocation is not None
        self._dispatcher = dispatcher
        self._attributes = attributes
        self._round = attributes.reinvocation
        notes = self._round.notes.setdefault(name, _Notes())
        assert isinstance(notes, _Notes)
        self._notes = notes
        self._errors: list[tuple[str, str]] = []
        self._changed = False

    async def run(self, invocations: list[Invocation[Mutator]]) -> list[tuple[str, str]]:
        """What went wrong, each with the reason to answer."""
        if self._round.running and self._notes.left != codec.encode(self._attributes.obj):
            self._notes.object_changed()
        namespace = self._dispatcher.namespace(self._attributes)
        for invocation in invocations:
            for params in invocation.params:
                await self._invoke(invocation, params, namespace)
        if self._changed:
            # Whoever was applied in this round is applied again, too: its own change counts.
            self._notes.object_changed()
            self._round.wanted = True
        self._notes.left = codec.encode(self._attributes.obj)
        return self._errors

    async def _invoke(self, invocation: Invocation[Mutator], params: Object | None, namespace: Object | None) -> None:
        policy, mutator = invocation.policy, invocation.policy.compiled
        variables = await self._variables(invocation.scope, params, namespace)
        outcome = await settle(partial(mutator.conditions.match, variables))
        if outcome.error:
            self._failed(policy, invocation.binding, outcome.error)
        if not outcome.matches:
            return
        key = _key(policy.name, invocation.binding.name, params)
        if self._round.running and key not in self._notes.again:
            return
        before = codec.encode(self._attributes.obj)
        for mutation in mutator.mutations:
            if self._attributes.obj is None:
                continue
            try:
                await self._mutate(mutation, invocation.scope, params, namespace)
            except MutationError as error:
                self._failed(policy, invocation.binding, str(error))
        if codec.encode(self._attributes.obj) != before:
            self._notes.object_changed()
        if mutator.again:
            self._notes.applied.add(key)

    async def _variables(
        self, scope: ResourceScope, params: Object | None, namespace: Object | None
    ) -> AdmissionVariables:
        attributes = self._attributes
        objects = await versioned(attributes, scope, attributes.obj, attributes.old)
        return admission_variables(
            attributes,
            attributes.kind or scope.gvk,
            scope.gvr,
            self._dispatcher.authorizer,
            objects=objects,
            namespace=namespace,
            params=params,
        )

    async def _mutate(
        self, mutation: Mutation, scope: ResourceScope, params: Object | None, namespace: Object | None
    ) -> None:
        attributes = self._attributes
        form: Form = attributes.rules if attributes.kind is not None else scope.strategy
        variables = await self._variables(scope, params, namespace)
        made = await settle(partial(mutation.made, variables, _view(attributes, form)))
        _check_way_back(attributes, scope)
        self._changed = True
        if made is variables.object:
            return
        custom = scope.custom and attributes.kind is None
        if not custom:
            kind = attributes.kind or scope.gvk
            made = {**made, "apiVersion": kind.api_version, "kind": kind.kind}
        obj = _completed(made, form, custom=custom, strict=not mutation.merges)
        if attributes.kind is None:
            converted = await convert(obj, scope, attributes.scope)
            assert converted is not None
            obj = converted
        attributes.obj = obj
        attributes.patched = True

    def _failed(self, policy: Policy[Mutator], binding: Binding, why: str) -> None:
        if not policy.ignores_failures:
            words = f"policy '{policy.name}' with binding '{binding.name}' denied request: {why}"
            self._errors.append((words, "Invalid"))


def _check_way_back(attributes: Attributes, scope: ResourceScope) -> None:
    """Upstream cannot bring everything back from the form in which a policy sees it; raises MutationError then."""
    asked, seen = attributes.gvk, scope.gvk
    if scope.custom and attributes.kind is not None:
        raise MutationError(f"request to convert CR to an invalid group/version: {asked.api_version}")
    if not scope.custom and attributes.kind is None and seen != asked:
        kinds = f"converting ({seen.version}.{seen.kind}) to ({asked.version}.{asked.kind})"
        raise MutationError(f"{kinds}: unknown conversion")


def _view(attributes: Attributes, form: Form) -> TypeView | None:
    """How objects of the request's kind merge: known for kinds of the resource's own group and version."""
    kind, resource = attributes.gvk, attributes.scope.gvr
    return form.type_view if (kind.group, kind.version) == (resource.group, resource.version) else None


def _completed(made: Object, form: Form, *, custom: bool, strict: bool) -> Object:
    """What a mutation made, in the kind's form and with its defaults. Raises InternalError for what has no such form.

    What the schema of a custom resource does not know is pruned when it is stored.
    """
    obj: Object = codec.copy(made)
    if not isinstance(obj.get("kind"), str) or not obj["kind"]:
        raise internal(f"Object 'Kind' is missing in '{codec.encode(obj).decode()}'")
    try:
        if custom:
            obj["metadata"], _ = coerce_object_meta(obj.get("metadata") or {})
        else:
            obj, unknown = form.decode(obj)
            if unknown and strict:
                problems = ", ".join(f"unknown field {quote(path)}" for path in unknown)
                raise internal(f"strict decoding error: {problems}")
        form.default(obj)
    except DecodeError as error:
        raise internal(str(error)) from None
    except BadRequest as error:
        raise internal(str(error.__cause__ or error.message)) from None
    return obj


def _key(policy: str, binding: str, params: Object | None) -> Key:
    meta = (params or {}).get("metadata") or {}
    return policy, binding, meta.get("namespace") or "", meta.get("name") or ""


def _who(found: Misconfigured[Mutator]) -> str:
    if found.binding is None:
        return f"policy {quote(found.policy.name)} denied request: {found.message}"
    return f"policy '{found.policy.name}' with binding '{found.binding.name}' denied request: {found.message}"


def _refusal(attributes: Attributes, errors: list[tuple[str, str]]) -> ApiError:
    error = refusal(attributes, "")
    error.message, reason = errors[0]
    error.reason = reason or error.reason
    error.details = {**(error.details or {}), "causes": [{"message": message} for message, _ in errors]}
    return error
