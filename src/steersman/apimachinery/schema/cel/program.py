"""Expressions, compiled: from text to a function, its type, and what it costs.

Source: cel-go `cel/{env,program}.go`; apiextensions `pkg/apiserver/schema/cel/compilation.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from steersman.apimachinery.schema.cel.ast import Expr, Ident, walk
from steersman.apimachinery.schema.cel.checker import Environment, check
from steersman.apimachinery.schema.cel.codegen import CONTAINERS
from steersman.apimachinery.schema.cel.codegen_folds import FoldWriter
from steersman.apimachinery.schema.cel.costs import CALL_LIMIT
from steersman.apimachinery.schema.cel.errors import (
    CelError,
    CompileError,
    CostLimitExceeded,
    EvaluationPanic,
    Issue,
    no_such_overload,
)
from steersman.apimachinery.schema.cel.estimate import estimate
from steersman.apimachinery.schema.cel.library.regex import RegexError
from steersman.apimachinery.schema.cel.messages import Constructs
from steersman.apimachinery.schema.cel.nesting import with_room
from steersman.apimachinery.schema.cel.outlines import outlines
from steersman.apimachinery.schema.cel.parser import parse
from steersman.apimachinery.schema.cel.ranges import Range
from steersman.apimachinery.schema.cel.runtime import ERRORS, NAMES
from steersman.apimachinery.schema.cel.schema_types import Decl
from steersman.apimachinery.schema.cel.types import Type, optional_of
from steersman.apimachinery.schema.cel.validators import literal_issues
from steersman.apimachinery.schema.cel.writer import Code
from steersman.apimachinery.schema.patience import compiling


class ProgramError(ValueError):
    """An expression is well typed, but some constant in it can never be evaluated; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of an expression: data of a declaration, or (`optional`) an optional of it; else a value."""

    name: str
    type: Type
    decl: Decl | None = None
    optional: bool = False


class Checked:
    """A parsed and type-checked expression."""

    __slots__ = ("expr", "source", "variables")

    def __init__(self, source: str, expr: Expr, variables: tuple[Variable, ...]) -> None:
        self.source = source
        self.expr = expr
        self.variables = variables

    @property
    def type(self) -> Type:
        return self.expr.type

    def uses(self, name: str) -> bool:
        """Whether a variable is read."""
        return any(isinstance(node, Ident) and node.name == name for node in walk(self.expr))

    def cost(self) -> Range:
        """What evaluating may cost, at least and at most, in cel-go's units."""
        return with_room(lambda: estimate(self.expr, {each.name: each.decl for each in self.variables}))

    def program(self) -> Program:
        """Compile to Python. Raises ProgramError."""
        try:
            return Program(with_room(lambda: _generate(self.expr, self.variables)))
        except (CelError, RegexError) as error:
            raise ProgramError(str(error)) from None


class Program:
    """A compiled expression. `evaluate` may be called any number of times, also concurrently."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def evaluate(self, *values: Any, limit: int = CALL_LIMIT) -> tuple[Any, int]:
        """The result and its cost, for the variables' values in order; an error is returned as the result.

        Data is passed as JSON for variables with a declaration. CostLimitExceeded is returned when the cost passes
        `limit`; evaluation stops soon after.
        """
        # the code stops at one limit: another one is as much ahead or behind at the start
        start = CALL_LIMIT - limit
        box = [start]
        result: Any
        try:
            result = self._function(start, box, *values)
        except CelError as error:
            result = error
        except (CostLimitExceeded, EvaluationPanic) as error:
            result = error
        except ERRORS:
            result = no_such_overload()
        except (RecursionError, MemoryError, OverflowError) as error:
            result = CelError(f"internal error: {error}")
        cost = box[0] - start
        if cost > limit:
            result = CostLimitExceeded()
        return result, cost


def compile_expression(
    source: str,
    variables: tuple[Variable, ...],
    objects: Mapping[str, Decl],
    constructs: Constructs = lambda name: None,
    extra: frozenset[str] = frozenset(),
) -> Checked:
    """Parse and type-check an expression. Raises CompileError with the text that the API server reports.

    `constructs` and `extra` are those of the checker's Environment. Raises TakesLong where there is too little
    patience for a text of this length.
    """
    compiling(source)
    types = {each.name: optional_of(each.type) if each.optional else each.type for each in variables}
    env = Environment(types, objects, constructs, extra)
    try:
        expr = with_room(lambda: check(source, parse(source), env))
    except RecursionError:
        raise CompileError(source, [Issue(-1, "max recursion depth exceeded")]) from None
    issues = literal_issues(expr)
    if issues:
        raise CompileError(source, issues)
    return Checked(source, expr, variables)


def object_types(root: Decl) -> dict[str, Decl]:
    """The object types that a declaration consists of, by name."""
    out: dict[str, Decl] = {}
    pending = [root]
    while pending:
        decl = pending.pop()
        if decl.kind == "object" and decl.type is not None:
            out[decl.type.name] = decl
            pending.extend(field.decl for field in decl.fields.values())
        elif decl.element is not None:
            pending.append(decl.element)
    return out


def _has_null_elements(root: Decl) -> bool:
    """Whether elements of lists or values of maps may be null though they have another type."""
    pending = [root]
    while pending:
        decl = pending.pop()
        if decl.element is not None:
            if decl.element.nullable:
                return True
            pending.append(decl.element)
        pending.extend(field.decl for field in decl.fields.values())
    return False


def _generate(expr: Expr, variables: tuple[Variable, ...]) -> Callable[..., Any]:
    writer = FoldWriter()
    writer.outlines = outlines(expr)
    writer.nulls = any(each.decl is not None and _has_null_elements(each.decl) for each in variables)
    params = []
    for position, variable in enumerate(variables):
        name = f"a{position}"
        params.append(name)
        raw = variable.decl if variable.decl is not None and variable.decl.kind in CONTAINERS else None
        cel_type = optional_of(variable.type) if variable.optional else variable.type
        writer.scope[variable.name] = Code(name, cel_type, None if variable.optional else raw)
    code = writer.write(expr)
    result = Code(writer.value(code), code.type)
    writer.finish("main", "".join(f", {name}" for name in params), result)
    names = {**NAMES, **writer.constants}
    for function in writer.finished:  # one by one: nothing else runs while Python compiles
        exec(compile(function, "<cel>", "exec"), names)  # noqa: S102 (the code is generated above)
    main: Callable[..., Any] = names["main"]
    return main
