"""Parts of expressions that are worked out while an expression is compiled, and cost nothing when it runs.

Source: cel-go `interpreter/decorators.go` (decOptimize).
"""

from __future__ import annotations

from typing import Any

from steersman.apimachinery.schema.cel.ast import UNDEFINED, Call, Expr, Ident, ListExpr, Literal, MapExpr, Select
from steersman.apimachinery.schema.cel.dispatch import dispatcher
from steersman.apimachinery.schema.cel.errors import CelError
from steersman.apimachinery.schema.cel.library import implementation
from steersman.apimachinery.schema.cel.values import map_key

_CONVERSIONS = frozenset(["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"])


def is_constant(expr: Expr) -> bool:
    """Whether an expression is a literal, or made of literals by list, map or type conversion."""
    if isinstance(expr, Literal):
        return True
    if isinstance(expr, Ident):
        return expr.constant is not None
    if isinstance(expr, Select):
        return expr.named is not None and expr.named.constant is not None
    if isinstance(expr, ListExpr):
        return not expr.optional and all(map(is_constant, expr.elements))
    if isinstance(expr, MapExpr):
        return all(not e.optional and is_constant(e.key) and is_constant(e.value) for e in expr.entries)
    if isinstance(expr, Call) and expr.function in _CONVERSIONS:
        return expr.target is None and len(expr.args) == 1 and is_constant(expr.args[0])
    return False


def constant_value(expr: Expr) -> Any:
    """The value of a constant expression. Raises CelError when a conversion fails."""
    if isinstance(expr, Literal):
        return expr.value
    if isinstance(expr, Select):
        assert expr.named is not None
        expr = expr.named
    if isinstance(expr, Ident):
        if expr.constant is UNDEFINED:
            raise CelError(f"reference to undefined type: {expr.name}")
        return expr.constant
    if isinstance(expr, ListExpr):
        return list(map(constant_value, expr.elements))
    if isinstance(expr, MapExpr):
        return {map_key(constant_value(entry.key)): constant_value(entry.value) for entry in expr.entries}
    assert isinstance(expr, Call)
    argument = expr.args[0]
    exact = len(expr.overloads) == 1 and argument.type.kind != "dyn"
    convert = implementation(expr.overloads[0]) if exact else dispatcher(expr.function, False)
    return convert(constant_value(argument))
