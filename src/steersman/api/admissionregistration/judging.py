"""A ValidatingAdmissionPolicy at work: what its expressions say of one write.

Source: apiserver `pkg/admission/plugin/policy/validating/{plugin,validator}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steersman.api.admissionregistration.expressions import (
    BUDGET,
    Activation,
    AdmissionVariables,
    Compiled,
    Composition,
    Evaluation,
    Names,
    OutOfBudget,
    compile_admission,
    go_type_text,
)
from steersman.api.admissionregistration.matching import Conditions, compile_conditions
from steersman.apimachinery.schema.cel.types import BOOL, NULL, STRING
from steersman.apimachinery.schema.cel.values import type_of

_MAX_MESSAGE = 5 * 1024
_SPACE = "\t\n\v\f\r \x85\xa0"


@dataclass(frozen=True, slots=True)
class Decision:
    """What one validation says; `reason` is that of a refusal, "" when the expression could not be evaluated."""

    denied: bool
    message: str = ""
    reason: str = ""


@dataclass(slots=True)
class Verdict:
    """What a policy says: a decision for each validation, audit annotations to publish, and why some cannot be."""

    decisions: Sequence[Decision] = ()
    annotations: list[tuple[str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Validation:
    raw: Mapping[str, Any]
    expression: Compiled
    message: Compiled | None


class Judge:
    """A compiled policy. It may be asked any number of times."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        names = Names(params=spec.get("paramKind") is not None)
        self._composition = composition = Composition()
        for variable in spec.get("variables") or ():
            composition.add(variable.get("name") or "", variable.get("expression") or "", names)
        self._ignores = spec.get("failurePolicy") == "Ignore"
        conditions = spec.get("matchConditions") or ()
        self._conditions: Conditions = compile_conditions(conditions, params=names.params, composition=composition)
        unasking = Names(params=names.params, authorizer=False)
        self._validations = [
            _Validation(
                each,
                compile_admission(each.get("expression") or "", (BOOL,), names, composition),
                compile_admission(each["messageExpression"], (STRING,), unasking, composition)
                if each.get("messageExpression")
                else None,
            )
            for each in spec.get("validations") or ()
        ]
        self._annotations = [
            (
                each.get("key") or "",
                compile_admission(each.get("valueExpression") or "", (STRING, NULL), names, composition),
            )
            for each in spec.get("auditAnnotations") or ()
        ]

    def judge(self, variables: AdmissionVariables) -> Verdict:
        """What the policy says of a write, its failure policy applied. Never raises."""
        outcome = self._conditions.match(variables)
        if outcome.error:
            return Verdict([self._failed(outcome.error)])
        if not outcome.matches:
            return Verdict()
        try:
            verdict = Verdict(self._decide(variables))
            self._annotate(variables, verdict)
        except OutOfBudget as error:
            return Verdict([self._failed(str(error))])
        return verdict

    def _failed(self, message: str) -> Decision:
        return Decision(not self._ignores, message)

    def _decide(self, variables: AdmissionVariables) -> list[Decision]:
        activation = Activation(variables, BUDGET, self._composition)
        results = [activation.evaluate(each.expression) for each in self._validations]
        words: Sequence[Evaluation | None] = ()
        problem = ""
        try:
            words = self._messages(variables, activation.budget)
        except OutOfBudget as error:
            problem = f"failed messageExpression: {error}"
        decisions = []
        for index, (validation, result) in enumerate(zip(self._validations, results, strict=True)):
            if result.error or problem:
                decisions.append(self._failed(result.error or problem))
            elif result.value is True:
                decisions.append(Decision(False))
            else:
                reason = validation.raw.get("reason") or "Invalid"
                decisions.append(Decision(True, _message(validation.raw, words[index]), reason))
        return decisions

    def _messages(self, variables: AdmissionVariables, budget: int) -> list[Evaluation | None]:
        """What the message expressions say, from what the validations left of the budget."""
        activation = Activation(variables, budget, self._composition, authorizer=False)
        return [None if each.message is None else activation.evaluate(each.message) for each in self._validations]

    def _annotate(self, variables: AdmissionVariables, verdict: Verdict) -> None:
        activation = Activation(variables, BUDGET, self._composition, authorizer=False)
        for key, result in [(key, activation.evaluate(compiled)) for key, compiled in self._annotations]:
            if result.error:
                if not self._ignores:
                    verdict.failures.append(result.error)
            elif isinstance(result.value, str):
                value = result.value.strip(_SPACE)
                if value:
                    verdict.annotations.append((key, value))
            elif result.value is not None:
                found = go_type_text(type_of(result.value))
                verdict.failures.append(
                    f"valueExpression '{result.source}' resulted in unsupported return type: {found}. "
                    "Return type must be either string or null."
                )


def _message(validation: Mapping[str, Any], words: Evaluation | None) -> str:
    """Why a validation refuses: in the words of its expression for that, if they will do, else in its own."""
    if words is not None and isinstance(words.value, str):
        text = words.value.strip(_SPACE)
        if text and len(text.encode("utf-8", "surrogatepass")) <= _MAX_MESSAGE and "\n" not in text:
            return text
    own: str = (validation.get("message") or "").strip(_SPACE)
    return own or f"failed expression: {(validation.get('expression') or '').strip(_SPACE)}"
