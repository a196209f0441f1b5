"""Match conditions: expressions that say whether a webhook or a policy is concerned at all.

Source: apiserver `pkg/admission/plugin/webhook/matchconditions/matcher.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from steersman.api.admissionregistration.expressions import (
    CONDITIONS_BUDGET,
    Activation,
    AdmissionVariables,
    Compiled,
    Composition,
    Names,
    OutOfBudget,
    compile_admission,
)
from steersman.apimachinery.schema.cel.types import BOOL


@dataclass(frozen=True, slots=True)
class Outcome:
    """What conditions say: `error` is set when nobody can tell, and then the failure policy decides.

    `failed` is the name of the condition that is false.
    """

    matches: bool
    error: str = ""
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Compiled conditions, by name and in order."""

    conditions: tuple[tuple[str, Compiled], ...]
    composition: Composition | None = None

    def match(self, variables: AdmissionVariables) -> Outcome:
        """Whether all conditions hold. One that is false counts more than those that cannot be evaluated.

        `namespaceObject` is null in conditions. Never raises.
        """
        if not self.conditions:
            return Outcome(True)
        activation = Activation(replace(variables, namespace_object=None), CONDITIONS_BUDGET, self.composition)
        try:
            found = [(name, activation.evaluate(compiled)) for name, compiled in self.conditions]
        except OutOfBudget as error:
            return Outcome(False, str(error))
        for name, evaluation in found:
            if evaluation.value is False:
                return Outcome(False, failed=name)
        errors = list(dict.fromkeys(evaluation.error for _, evaluation in found if evaluation.error))
        if errors:
            return Outcome(False, errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        return Outcome(True)


def compile_conditions(
    conditions: Sequence[Mapping[str, Any]], *, params: bool = False, composition: Composition | None = None
) -> Conditions:
    """Compile a `matchConditions` list; `params` and `composition` are for policies. Never raises.

    Conditions that do not compile are errors whenever they are asked.
    """
    names = Names(params=params)
    compiled = tuple(
        (each.get("name") or "", compile_admission(each.get("expression") or "", (BOOL,), names, composition))
        for each in conditions
    )
    return Conditions(compiled, composition)
