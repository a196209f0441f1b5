"""ValidatingAdmissionPolicy: expressions judge what is about to be stored.

Source: apiserver `pkg/admission/plugin/policy/validating/{dispatcher,policy_decision}.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from steersman.api.admissionregistration.judging import Decision, Judge, Verdict
from steersman.apimachinery.errors import ApiError
from steersman.apimachinery.field_errors import Struct, format_json
from steersman.apiserver.admission.chain import METADATA, Attributes
from steersman.apiserver.admission.conditions import admission_variables
from steersman.apiserver.admission.policies.dispatch import (
    Dispatcher,
    Invocation,
    Misconfigured,
    is_unseen,
    refusal,
    versioned,
)
from steersman.apiserver.admission.policies.source import Binding, PolicySource
from steersman.apiserver.authz.waiting import settle

_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_FAILURES = "validation.policy.admission.k8s.io/validation_failure"
_MAX_FAILURES = 50
_MAX_VALUE = 10 * 1024


@dataclass(slots=True)
class _Findings:
    """What all policies together say of one write: the first refusal, and what an audit event is to tell."""

    refusal: tuple[str, str] | None = None
    failures: list[Struct] = field(default_factory=list)
    annotations: dict[str, list[str]] = field(default_factory=dict)

    def deny(self, policy: str, binding: Binding | None, message: str, reason: str = "") -> None:
        if self.refusal is None:
            bound = f" with binding '{binding.name}'" if binding is not None else ""
            text = f"ValidatingAdmissionPolicy '{policy}'{bound} denied request: {message}"
            self.refusal = text, reason or "Invalid"

    def annotate(self, key: str, value: str) -> None:
        known = self.annotations.setdefault(key, [])
        if value not in known:
            known.append(value)


class ValidatingPolicies:
    """The plugin."""

    name = "ValidatingAdmissionPolicy"

    def __init__(self, source: PolicySource[Judge], dispatcher: Dispatcher) -> None:
        self._source = source
        self._dispatcher = dispatcher

    @property
    def active(self) -> bool:
        return self._source.active

    async def validate(self, attributes: Attributes) -> None:
        """Raises what the first policy that refuses wants to be answered."""
        if is_unseen(attributes.scope):
            return
        findings = _Findings()
        async for selected in self._dispatcher.select(await self._source.policies(), attributes):
            if isinstance(selected, Misconfigured):
                if not selected.policy.ignores_failures:
                    findings.deny(selected.policy.name, selected.binding, selected.message)
            else:
                await self._evaluate(selected, attributes, findings)
        _publish(findings, attributes)
        if findings.refusal is not None:
            message, reason = findings.refusal
            error = refusal(attributes, message)
            error.reason, error.code = reason, _CODES.get(reason, 422)
            error.details = {**(error.details or {}), "causes": [{"message": message}]}
            raise error

    async def _evaluate(self, invocation: Invocation[Judge], attributes: Attributes, findings: _Findings) -> None:
        policy, binding, scope = invocation.policy, invocation.binding, invocation.scope
        try:
            objects = await versioned(attributes, scope, attributes.obj, attributes.old)
        except ApiError as error:
            if not policy.ignores_failures:
                why = f"failed to configure binding: failed to convert object version: {error.message}"
                findings.deny(policy.name, binding, why)
            return
        namespace = self._dispatcher.namespace(attributes)
        for params in invocation.params:
            variables = admission_variables(
                attributes,
                attributes.kind or scope.gvk,
                scope.gvr,
                self._dispatcher.authorizer,
                objects=objects,
                namespace=namespace,
                params=params,
            )
            verdict = await settle(partial(policy.compiled.judge, variables))
            _apply(policy.name, binding, verdict, attributes, findings)


def _apply(policy: str, binding: Binding, verdict: Verdict, attributes: Attributes, findings: _Findings) -> None:
    """Do with a verdict what the binding says."""
    for index, decision in enumerate(verdict.decisions):
        if decision.denied:
            _act(policy, binding, index, decision, attributes, findings)
    for key, value in verdict.annotations:
        cut = value.encode("utf-8", "surrogatepass")[:_MAX_VALUE].decode("utf-8", "ignore")
        findings.annotate(f"{policy}/{key}", cut)
    for failure in verdict.failures:
        findings.deny(policy, binding, failure)


def _act(
    policy: str, binding: Binding, index: int, decision: Decision, attributes: Attributes, findings: _Findings
) -> None:
    actions: Sequence[str] = binding.actions
    for action in actions:
        if action == "Deny":
            findings.deny(policy, binding, decision.message, decision.reason)
        elif action == "Warn":
            words = f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding.name}'"
            attributes.warn([f"{words}: {decision.message}"])
        elif action == "Audit":
            findings.failures.append(
                Struct(
                    message=decision.message,
                    policy=policy,
                    binding=binding.name,
                    expressionIndex=index,
                    validationActions=list(actions),
                )
            )


def _publish(findings: _Findings, attributes: Attributes) -> None:
    for key, values in findings.annotations.items():
        attributes.annotate(key, ", ".join(values), METADATA)
    if findings.failures:
        attributes.annotate(_FAILURES, format_json(findings.failures[:_MAX_FAILURES]), METADATA)
