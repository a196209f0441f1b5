"""One of a schema's `x-kubernetes-validations`: compiled, estimated, and evaluated on data.

Source: apiextensions `pkg/apiserver/schema/cel/{compilation,validation}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from steersman._util.gotext import quote
from steersman.apimachinery.schema.cel.codegen import CONTAINERS
from steersman.apimachinery.schema.cel.costs import CALL_LIMIT, OBJECT_LIMIT
from steersman.apimachinery.schema.cel.errors import CelError, CompileError, CostLimitExceeded
from steersman.apimachinery.schema.cel.objects import ListValue, ObjectValue, convert
from steersman.apimachinery.schema.cel.program import (
    Program,
    ProgramError,
    Variable,
    compile_expression,
    object_types,
)
from steersman.apimachinery.schema.cel.schema_types import MAX_REQUEST, Decl
from steersman.apimachinery.schema.cel.types import BOOL, STRING, Type
from steersman.apimachinery.schema.cel.values import NONE, Optional
from steersman.apimachinery.schema.field_paths import relative_path
from steersman.apimachinery.schema.patience import TakesLong, patience
from steersman.apimachinery.schema.structural import Node

_MAX_MESSAGE = 5 * 1024
_BUDGET_GONE: Final = "running out of cost budget, no further validation rules will be run"


def _run(program: Program, values: tuple[Any, Any], budget: int) -> tuple[Any, int]:
    """The result and the cost, with what is left of the object's budget."""
    most = patience.get()
    limit = CALL_LIMIT if most is None else min(CALL_LIMIT, most.cost - OBJECT_LIMIT + budget)
    result, cost = program.evaluate(*values, limit=limit)
    if limit < CALL_LIMIT and cost > limit:
        raise TakesLong
    return result, cost


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled rule or message expression, or why it cannot be one. Costs are in cel-go's units."""

    program: Program | None = None
    error: str = ""
    max_cost: int = 0
    uses_old: bool = False


class RuleScope:
    """Where the rules of one schema are compiled: what `self` and `oldSelf` are."""

    __slots__ = ("_objects", "decl")

    def __init__(self, decl: Decl) -> None:
        self.decl = decl
        self._objects = object_types(decl)

    @property
    def max_cardinality(self) -> int:
        """How often data of this schema can stand in one request."""
        return MAX_REQUEST // (self.decl.min_size + 1)

    def compile(self, source: str, wanted: Type, what: str, *, optional_old: bool) -> Expression:
        """Compile an expression of a type; `what` is "" for a rule, `messageExpression ` for a message."""
        assert self.decl.type is not None
        variables = (
            Variable("self", self.decl.type, self.decl),
            Variable("oldSelf", self.decl.type, self.decl, optional_old),
        )
        try:
            checked = compile_expression(source, variables, self._objects)
        except CompileError as error:
            return Expression(error=f"{what}compilation failed: {error}")
        if checked.type != wanted or checked.type.nullable:
            subject = what.strip() or "cel expression"
            return Expression(error=f"{subject} must evaluate to a {wanted}")
        uses_old = checked.uses("oldSelf")
        try:
            program = checked.program()
        except ProgramError as error:
            words = f"{what}instantiation failed" if what else "program instantiation failed"
            return Expression(error=f"{words}: {error}", uses_old=uses_old)
        return Expression(program, max_cost=checked.cost().high, uses_old=uses_old)


@dataclass(frozen=True, slots=True)
class Problem:
    """What a rule found wrong.

    `reason` is a FieldError's type; with `kind` the error quotes the schema's type instead of the value. `path` is
    appended to the path of the data. `ends` stops all further rules; `forgivable` problems do not count while the
    value is unchanged.
    """

    reason: str
    detail: str
    path: str = ""
    kind: bool = False
    ends: bool = False
    forgivable: bool = False


class Rule:
    """A rule that is evaluated on the data of its schema."""

    __slots__ = ("_message", "_optional_old", "_path", "_reason", "_rule", "decl", "expression", "source")

    def __init__(self, raw: Mapping[str, Any], scope: RuleScope, schema: Node) -> None:
        self.source = raw
        self.decl = scope.decl
        self._optional_old = bool(raw.get("optionalOldSelf"))
        text = raw.get("rule") or ""
        self.expression = (
            scope.compile(text, BOOL, "", optional_old=self._optional_old) if text.strip() else Expression()
        )
        message = raw.get("messageExpression") or ""
        self._message: Program | None = None
        if message and self.expression.program is not None:
            found = scope.compile(message, STRING, "messageExpression ", optional_old=self._optional_old)
            self._message = found.program
        self._rule = text.strip()
        self._path = relative_path(raw.get("fieldPath") or "", schema)
        self._reason = raw.get("reason") or "FieldValueInvalid"

    @property
    def _name(self) -> str:
        message: str = (self.source.get("message") or "").strip()
        return message if self.source.get("message") else self._rule

    def evaluate(self, data: Any, old: Any, budget: int) -> tuple[Problem | None, int]:
        """What the rule finds wrong, and what is left of the cost budget.

        `data` is the new value, `old` the one that it replaces, None when there is none. A rule that reads oldSelf
        is passed over without it, unless it declares oldSelf optional.
        """
        program = self.expression.program
        if program is None:
            error = self.expression.error
            return (Problem("", f"rule compile error: {error}", kind=True), budget) if error else (None, budget)
        if old is None and self.expression.uses_old and not self._optional_old:
            return None, budget
        try:
            values = self._value(data), self._old_value(old)
        except CelError as error:
            return Problem("", f"{error} evaluating rule: {self._name}", kind=True), budget
        result, cost = _run(program, values, budget)
        if cost > budget:
            return Problem("", f"validation failed due to {_BUDGET_GONE}", kind=True, ends=True), -1
        budget -= cost
        if result is True:
            return None, budget
        if result is not False:
            return self._failure(result), budget
        return self._refusal(values, budget)

    def _value(self, data: Any) -> Any:
        if self.decl.kind in CONTAINERS and data.__class__ in (dict, list):
            return data
        return convert(self.decl, data)

    def _old_value(self, old: Any) -> Any:
        if not self.expression.uses_old:
            return None
        if old is None:
            return NONE
        value = self._value(old)
        if not self._optional_old:
            return value
        if self.decl.kind == "list":
            value = ListValue(value, self.decl)
        elif self.decl.kind in CONTAINERS:
            value = ObjectValue(value, self.decl)
        return Optional(value)

    def _failure(self, error: Any) -> Problem:
        """The rule could not be evaluated."""
        text = str(error)
        if isinstance(error, CostLimitExceeded):
            words = "no further validation rules will be run due to call cost exceeds limit for rule"
            return Problem("", f"'{text}': {words}: {self._name}", kind=True, ends=True)
        if text.startswith("no such overload"):
            words = "call arguments did not match a supported operator, function or macro signature for rule"
            return Problem("", f"'{text}': {words}: {self._name}", kind=True)
        return Problem("", f"{text} evaluating rule: {self._name}", kind=True)

    def _refusal(self, values: tuple[Any, Any], budget: int) -> tuple[Problem | None, int]:
        """The rule does not hold: say so in the words of its message expression, its message, or its own."""
        forgivable = not self.expression.uses_old
        detail = ""
        if self._message is not None:
            result, cost = _run(self._message, values, budget)
            problem = self._message_problem(result, cost, budget)
            if problem:
                return Problem("", problem, self._path, kind=True, ends=True, forgivable=forgivable), budget
            budget -= cost
            detail = _usable(result)
        if not detail:
            detail = self._name if self.source.get("message") else f"failed rule: {self._name}"
        return Problem(self._reason, detail, self._path, forgivable=forgivable), budget

    def _message_problem(self, result: Any, cost: int, budget: int) -> str:
        if cost > budget:
            return f"messageExpression evaluation failed due to {_BUDGET_GONE}"
        if isinstance(result, CostLimitExceeded) or cost > CALL_LIMIT:
            words = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
            return f"{words}: {quote(self.source.get('messageExpression') or '')}"
        return ""


def _usable(result: Any) -> str:
    """The text of a message expression, "" where the rule's own message has to do."""
    if result.__class__ is not str:
        return ""
    text: str = result.strip("\t\n\v\f\r \x85\xa0")
    return "" if len(text.encode("utf-8", "surrogatepass")) > _MAX_MESSAGE or "\n" in text else text
