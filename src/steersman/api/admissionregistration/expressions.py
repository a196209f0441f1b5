"""Expressions of webhook configurations and admission policies: compiled, and evaluated within a budget.

Source: apiserver `pkg/admission/plugin/cel/{compile,activation,composition,condition}.go`,
`pkg/cel/lazy/lazy.go`, `pkg/apis/cel/config.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from steersman._util.gotext import quote
from steersman.api.admissionregistration.declared import (
    NAMESPACE,
    OBJECTS,
    REQUEST,
    VARIABLES,
    declare_field,
    declare_object,
    variable_type,
)
from steersman.api.admissionregistration.patches import PATCH_FUNCTIONS, patch_type
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError, CompileError, CostLimitExceeded, EvaluationPanic
from steersman.apimachinery.schema.cel.escaping import unescape
from steersman.apimachinery.schema.cel.library.authorization import Authorizer, ResourceCheck
from steersman.apimachinery.schema.cel.program import Program, ProgramError, Variable, compile_expression
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import MISSING, MapLike, Opaque

BUDGET: Final = 10_000_000
"""Most that the expressions of one kind of a policy may cost on one object, in cel-go's units."""
CONDITIONS_BUDGET: Final = 2_500_000
"""Most that the match conditions of a webhook or policy may cost on one object."""
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_GO_NAMES = {"null_type": "null_type", "duration": t.DURATION.name, "timestamp": t.TIMESTAMP.name}


@dataclass(frozen=True, slots=True)
class Names:
    """Which of the variables that not every expression has are there."""

    params: bool = False
    authorizer: bool = True


@dataclass(slots=True)
class AdmissionVariables:
    """What expressions may read of one write; objects are as JSON has them, in the version that was matched.

    `request` is the AdmissionRequest without the objects. `request_resource` is the check that
    `authorizer.requestResource` stands for. `params` is None where a policy is bound without any.
    """

    object: Any
    old_object: Any
    request: Mapping[str, Any]
    namespace_object: Mapping[str, Any] | None = None
    params: Any = None
    authorizer: Authorizer | None = None
    request_resource: ResourceCheck | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression, and its program or why there is none; `internal` tells errors that are no fault of the text."""

    source: str
    program: Program | None = None
    error: str = ""
    internal: bool = False
    type: Type | None = None
    names: tuple[str, ...] = ()


class Composition:
    """The variables that a policy defines, each seen by the expressions after it."""

    def __init__(self) -> None:
        self.decl = declare_object(VARIABLES.name, {})
        self.compiled: dict[str, Compiled] = {}

    def add(self, name: str, source: str, names: Names) -> Compiled:
        """Compile the next variable; one that does not compile is there all the same, with a type that fits all."""
        result = compile_admission(source, (), names, self)
        declare_field(self.decl, name, variable_type(result.type))
        self.compiled[name] = result
        return result


class OutOfBudget(Exception):
    """Expressions were stopped because all together cost too much; the message is upstream's."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


def compile_admission(
    source: str, wanted: Sequence[Type], names: Names, composition: Composition | None = None, *, patches: bool = False
) -> Compiled:
    """Compile an expression that must have one of the wanted types; none at all means that any will do.

    `patches` says whether it may build patches and parts of objects.
    """
    variables = _variables(names, composition)
    objects = OBJECTS if composition is None else {**OBJECTS, VARIABLES.name: composition.decl}
    try:
        if patches:
            checked = compile_expression(source, variables, objects, patch_type, PATCH_FUNCTIONS)
        else:
            checked = compile_expression(source, variables, objects)
    except CompileError as error:
        return Compiled(source, error=f"compilation failed: {error}")
    if wanted and not any(_exactly(checked.type, each) for each in wanted):
        found, known = go_type_text(checked.type), [go_type_text(each) for each in wanted]
        expected = known[0] if len(known) == 1 else f"one of [{' '.join(known)}]"
        return Compiled(source, error=f"must evaluate to {expected} but got {found}")
    try:
        program = checked.program()
    except ProgramError as error:
        return Compiled(source, error=f"program instantiation failed: {error}", internal=True)
    return Compiled(source, program, type=checked.type, names=tuple(each.name for each in variables))


def go_type_text(cel_type: Type) -> str:
    """A type as Go prints it."""
    name = f"wrapper({cel_type.name})" if cel_type.nullable else _GO_NAMES.get(cel_type.kind, cel_type.name)
    return f"{name}({', '.join(map(go_type_text, cel_type.params))})" if cel_type.params else name


def _exactly(found: Type, wanted: Type) -> bool:
    return found == wanted and found.nullable == wanted.nullable


def _variables(names: Names, composition: Composition | None) -> tuple[Variable, ...]:
    out = [
        Variable("object", t.DYN),
        Variable("oldObject", t.DYN),
        Variable("namespaceObject", NAMESPACE),
        Variable("request", REQUEST),
    ]
    if names.params:
        out.append(Variable("params", t.DYN))
    if names.authorizer:
        out += [Variable("authorizer", t.AUTHORIZER), Variable("authorizer.requestResource", t.RESOURCE_CHECK)]
    if composition is not None:
        out.append(Variable("variables", VARIABLES))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came of an expression: its value, or an error in upstream's words."""

    source: str
    value: Any = None
    error: str = ""


class Activation:
    """Evaluates the expressions of one kind on one write, within a budget that they share.

    `authorizer` is False where expressions may not ask it.
    """

    def __init__(
        self,
        variables: AdmissionVariables,
        budget: int,
        composition: Composition | None = None,
        *,
        authorizer: bool = True,
    ) -> None:
        self.budget = budget
        self._values: dict[str, Any] = {
            "object": variables.object,
            "oldObject": variables.old_object,
            "namespaceObject": variables.namespace_object,
            "request": variables.request,
            "params": variables.params,
        }
        if authorizer:
            self._values["authorizer"] = variables.authorizer
            self._values["authorizer.requestResource"] = variables.request_resource
        self._lazy = _Variables(self, composition) if composition is not None else None
        self._values["variables"] = self._lazy

    def run(self, program: Program, names: Sequence[str]) -> tuple[Any, int]:
        """A program's result and cost, as `Program.evaluate` gives them."""
        return program.evaluate(*(self._values.get(name, _UNBOUND) for name in names))

    def evaluate(self, compiled: Compiled) -> Evaluation:
        """Evaluate one expression. Raises OutOfBudget."""
        if compiled.program is None:
            return Evaluation(compiled.source, error=f"compilation error: {compiled.error}")
        result, cost = self.run(compiled.program, compiled.names)
        if self._lazy is not None:
            cost, self._lazy.cost = cost + self._lazy.cost, 0
        self.budget -= cost
        if self.budget < 0:
            raise OutOfBudget
        if isinstance(result, _ERRORS):
            return Evaluation(compiled.source, error=f"expression '{compiled.source}' resulted in error: {result}")
        return Evaluation(compiled.source, result)


_ERRORS = (CelError, CostLimitExceeded, EvaluationPanic)


class _Unbound(Opaque):
    """Stands for a variable that the expression may name, but not here."""

    __slots__ = ()


_UNBOUND = _Unbound()


@dataclass(slots=True, eq=False)
class _Variables(MapLike):
    """A policy's variables: each is evaluated when it is first read. `cost` is what that took since it was last 0."""

    activation: Activation
    composition: Composition
    cost: int = 0
    known: dict[str, Any] = field(default_factory=dict)

    def find(self, key: Any) -> Any:
        name = unescape(key) if key.__class__ is str else None
        compiled = self.composition.compiled.get(name) if name is not None else None
        if name is None or compiled is None:
            return MISSING
        if name not in self.known:
            self.known[name] = self._evaluate(name, compiled)
        value = self.known[name]
        if isinstance(value, CelError):
            raise value
        return value

    def _evaluate(self, name: str, compiled: Compiled) -> Any:
        if compiled.program is None:
            return CelError(f"composited variable {quote(name)} fails to compile: {compiled.error}")
        result, cost = self.activation.run(compiled.program, compiled.names)
        self.cost += cost
        if isinstance(result, _ERRORS):
            return CelError(f"composited variable {quote(name)} fails to evaluate: {result}")
        return result

    def keys(self) -> list[Any]:
        return list(self.composition.compiled)

    def equals(self, other: Any) -> bool:
        return other is self

    def __len__(self) -> int:
        return len(self.composition.compiled)
