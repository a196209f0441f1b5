"""Macros: calls that the parser replaces by folds and presence tests.

Source: cel-go `parser/macro.go`, `ext/comprehensions.go` (two variables), `ext/lists.go` (sortBy), `cel/library.go`
(optMap, optFlatMap).
"""

from __future__ import annotations

from collections.abc import Callable

from steersman.apimachinery.schema.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    copy_expr,
)

ACCUMULATOR = "@result"
UNUSED = "#unused"
COPYING = frozenset({"optMap", "optFlatMap"})
"""Macros that evaluate their receiver twice."""
_RESERVED_VARIABLES = (ACCUMULATOR, "__result__")
_SORT_INPUT = "@__sortBy_input__"


class MacroError(ValueError):
    """A macro's arguments are not what it needs."""

    def __init__(self, pos: int, message: str) -> None:
        super().__init__(message)
        self.pos = pos


def expand(pos: int, function: str, target: Expr | None, args: list[Expr]) -> Expr | None:
    """What a call stands for if it is a macro, else None. Raises MacroError."""
    if target is None:
        return _has(pos, args) if function == "has" and len(args) == 1 else None
    macro = _MACROS.get((function, len(args)))
    return macro(pos, target, args) if macro is not None else None


def _has(pos: int, args: list[Expr]) -> Expr:
    argument = args[0]
    if not isinstance(argument, Select):
        raise MacroError(argument.pos, "invalid argument to has() macro")
    return Select(pos, argument.operand, argument.field, test=True)


def _variable(expr: Expr, complaint: str) -> str:
    if not isinstance(expr, Ident):
        raise MacroError(expr.pos, complaint)
    if expr.name in _RESERVED_VARIABLES:
        raise MacroError(expr.pos, "iteration variable overwrites accumulator variable")
    return expr.name


def _variables(args: list[Expr], complaint: str, count: int) -> tuple[str, str]:
    """The one or two iteration variables."""
    if count == 1:
        return _variable(args[0], complaint), ""
    for each in args[:2]:
        if not isinstance(each, Ident):
            raise MacroError(each.pos, complaint)
    first, second = args[0], args[1]
    assert isinstance(first, Ident) and isinstance(second, Ident)
    if first.name == second.name:
        raise MacroError(second.pos, f"duplicate variable name: {first.name}")
    return _variable(first, complaint), _variable(second, complaint)


def _fold(
    pos: int, target: Expr, names: tuple[str, str], initial: Expr, condition: Expr, step: Expr, result: Expr
) -> Expr:
    return Comprehension(pos, target, names[0], ACCUMULATOR, initial, condition, step, result, names[1])


_Macro = Callable[[int, Expr, list[Expr]], Expr]


def _quantifier(kind: str, count: int) -> _Macro:
    def macro(pos: int, target: Expr, args: list[Expr]) -> Expr:
        names = _variables(args, "argument must be a simple name", count)
        predicate = args[count]

        def accumulator() -> Expr:
            return Ident(pos, ACCUMULATOR)

        if kind == "exists_one":
            more = Call(pos, "_+_", [accumulator(), Literal(pos, 1)])
            step: Expr = Call(pos, "_?_:_", [predicate, more, accumulator()])
            result: Expr = Call(pos, "_==_", [accumulator(), Literal(pos, 1)])
            return _fold(pos, target, names, Literal(pos, 0), Literal(pos, True), step, result)
        every = kind == "all"
        going = accumulator() if every else Call(pos, "!_", [accumulator()])
        condition = Call(pos, "@not_strictly_false", [going])
        step = Call(pos, "_&&_" if every else "_||_", [accumulator(), predicate])
        return _fold(pos, target, names, Literal(pos, every), condition, step, accumulator())

    return macro


def _transform(count: int, complaint: str) -> _Macro:
    """map and transformList, with an optional filter before the transformation."""

    def macro(pos: int, target: Expr, args: list[Expr]) -> Expr:
        names = _variables(args, complaint, count)
        step: Expr = Call(pos, "_+_", [Ident(pos, ACCUMULATOR), ListExpr(pos, [args[-1]])])
        return _filtered(pos, target, names, ListExpr(pos, []), step, args[count:-1])

    return macro


def _filtered(pos: int, target: Expr, names: tuple[str, str], initial: Expr, step: Expr, condition: list[Expr]) -> Expr:
    if condition:
        step = Call(pos, "_?_:_", [condition[0], step, Ident(pos, ACCUMULATOR)])
    return _fold(pos, target, names, initial, Literal(pos, True), step, Ident(pos, ACCUMULATOR))


def _filter(pos: int, target: Expr, args: list[Expr]) -> Expr:
    names = _variables(args, "argument is not an identifier", 1)
    step = Call(pos, "_+_", [Ident(pos, ACCUMULATOR), ListExpr(pos, [args[0]])])
    return _filtered(pos, target, names, ListExpr(pos, []), step, [args[1]])


def _transform_map(pos: int, target: Expr, args: list[Expr]) -> Expr:
    names = _variables(args, "argument must be a simple name", 2)
    step = Call(pos, "cel.@mapInsert", [Ident(pos, ACCUMULATOR), Ident(pos, names[0]), args[-1]])
    return _filtered(pos, target, names, MapExpr(pos, []), step, args[2:-1])


def _transform_map_entry(pos: int, target: Expr, args: list[Expr]) -> Expr:
    names = _variables(args, "argument must be a simple name", 2)
    step = Call(pos, "cel.@mapInsert", [Ident(pos, ACCUMULATOR), args[-1]])
    return _filtered(pos, target, names, MapExpr(pos, []), step, args[2:-1])


def _bind(pos: int, name: str, value: Expr, result: Expr) -> Expr:
    return Comprehension(pos, ListExpr(pos, []), UNUSED, name, value, Literal(pos, False), Ident(pos, name), result)


def _optional_map(function: str) -> _Macro:
    def macro(pos: int, target: Expr, args: list[Expr]) -> Expr:
        variable = args[0]
        if not isinstance(variable, Ident):
            raise MacroError(variable.pos, f"{function}() variable name must be a simple identifier")
        inner = _bind(pos, variable.name, Call(pos, "value", [], copy_expr(target)), args[1])
        if function == "optMap":
            inner = Call(pos, "optional.of", [inner])
        return Call(pos, "_?_:_", [Call(pos, "hasValue", [], target), inner, Call(pos, "optional.none", [])])

    return macro


def _sort_by(pos: int, target: Expr, args: list[Expr]) -> Expr:
    if not isinstance(target, (ListExpr, Select, Ident, Comprehension, Call)):
        kinds = "a list, identifier, comprehension, call or select expression"
        raise MacroError(target.pos, f"sortBy can only be applied to {kinds}")
    keys = _MACROS["map", 2](pos, Ident(pos, _SORT_INPUT), args)
    return _bind(pos, _SORT_INPUT, target, Call(pos, "@sortByAssociatedKeys", [keys], Ident(pos, _SORT_INPUT)))


_NAME = "argument must be a simple name"
_MACROS: dict[tuple[str, int], _Macro] = {
    ("all", 2): _quantifier("all", 1),
    ("exists", 2): _quantifier("exists", 1),
    ("exists_one", 2): _quantifier("exists_one", 1),
    ("map", 2): _transform(1, "argument is not an identifier"),
    ("map", 3): _transform(1, "argument is not an identifier"),
    ("filter", 2): _filter,
    ("all", 3): _quantifier("all", 2),
    ("exists", 3): _quantifier("exists", 2),
    ("existsOne", 3): _quantifier("exists_one", 2),
    ("exists_one", 3): _quantifier("exists_one", 2),
    ("transformList", 3): _transform(2, _NAME),
    ("transformList", 4): _transform(2, _NAME),
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
    ("optMap", 2): _optional_map("optMap"),
    ("optFlatMap", 2): _optional_map("optFlatMap"),
    ("sortBy", 2): _sort_by,
}
