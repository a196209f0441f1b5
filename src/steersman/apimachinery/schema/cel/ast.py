"""Expressions as trees. The checker writes types and overloads into the nodes.

Source: cel-go `common/ast/expr.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from steersman.apimachinery.schema.cel.types import ERROR, Type


class Undefined:
    """What stands for the value of a name that the checker knows, but that has no value."""


UNDEFINED: Final = Undefined()


class Expr:
    """A node: `pos` is the offset that errors point at, `type` is known after checking."""

    __slots__ = ("pos", "type")

    def __init__(self, pos: int) -> None:
        self.pos = pos
        self.type: Type = ERROR

    def children(self) -> Iterator[Expr]:
        """The nodes directly below, in the order in which they are checked."""
        return iter(())


class Literal(Expr):
    """A constant; `value` is a run-time value."""

    __slots__ = ("value",)

    def __init__(self, pos: int, value: Any) -> None:
        super().__init__(pos)
        self.value = value


class Ident(Expr):
    """A name; `constant` is set when it names a type."""

    __slots__ = ("constant", "name")

    def __init__(self, pos: int, name: str) -> None:
        super().__init__(pos)
        self.name = name
        self.constant: Any = None


class Select(Expr):
    """`operand.field`, or `has(operand.field)` when `test`; `named` when all of it turned out to be one name."""

    __slots__ = ("field", "named", "operand", "test")

    def __init__(self, pos: int, operand: Expr, field: str, *, test: bool = False) -> None:
        super().__init__(pos)
        self.operand = operand
        self.field = field
        self.test = test
        self.named: Ident | None = None

    def children(self) -> Iterator[Expr]:
        yield self.operand


class Call(Expr):
    """A function or operator on arguments, `target` first when it is called as a method."""

    __slots__ = ("args", "function", "overloads", "target")

    def __init__(self, pos: int, function: str, args: list[Expr], target: Expr | None = None) -> None:
        super().__init__(pos)
        self.function = function
        self.args = args
        self.target = target
        self.overloads: tuple[str, ...] = ()

    def children(self) -> Iterator[Expr]:
        if self.target is not None:
            yield self.target
        yield from self.args


class ListExpr(Expr):
    """`[a, ?b]`: `optional` holds the indexes of optional elements."""

    __slots__ = ("elements", "optional")

    def __init__(self, pos: int, elements: list[Expr], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(pos)
        self.elements = elements
        self.optional = optional

    def children(self) -> Iterator[Expr]:
        return iter(self.elements)


class Entry:
    """A map's entry or a message's field (`key` is then its name)."""

    __slots__ = ("key", "optional", "pos", "value")

    def __init__(self, pos: int, key: Any, value: Expr, *, optional: bool = False) -> None:
        self.pos = pos
        self.key = key
        self.value = value
        self.optional = optional


class MapExpr(Expr):
    """`{k: v, ?k: v}`."""

    __slots__ = ("entries",)

    def __init__(self, pos: int, entries: list[Entry]) -> None:
        super().__init__(pos)
        self.entries = entries

    def children(self) -> Iterator[Expr]:
        for entry in self.entries:
            yield entry.key
            yield entry.value


class Message(Expr):
    """`Name{field: value}`; `make` is set when the environment says how to make the value."""

    __slots__ = ("fields", "make", "name")

    def __init__(self, pos: int, name: str, fields: list[Entry]) -> None:
        super().__init__(pos)
        self.name = name
        self.fields = fields
        self.make: Callable[[dict[str, Any]], Any] | None = None

    def children(self) -> Iterator[Expr]:
        for field in self.fields:
            yield field.value


class Comprehension(Expr):
    """What macros expand to: a fold of `source` into `accumulator`.

    A fold over `[]` whose condition is false binds a variable (`accumulator`) for its `result`.
    """

    __slots__ = ("accumulator", "condition", "initial", "result", "source", "step", "var", "var2")

    def __init__(
        self,
        pos: int,
        source: Expr,
        var: str,
        accumulator: str,
        initial: Expr,
        condition: Expr,
        step: Expr,
        result: Expr,
        var2: str = "",
    ) -> None:
        super().__init__(pos)
        self.source = source
        self.var = var
        self.var2 = var2
        self.accumulator = accumulator
        self.initial = initial
        self.condition = condition
        self.step = step
        self.result = result

    def children(self) -> Iterator[Expr]:
        yield from (self.source, self.initial, self.condition, self.step, self.result)

    @property
    def is_binding(self) -> bool:
        condition = self.condition
        return (
            isinstance(self.source, ListExpr)
            and not self.source.elements
            and isinstance(condition, Literal)
            and condition.value is False
            and self.accumulator != "__result__"
        )


def walk(expr: Expr) -> Iterator[Expr]:
    """A node and all below it, parents first."""
    pending = [expr]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(node.children())))


def copy_expr(expr: Expr) -> Expr:
    """A copy of an unchecked tree, at the same positions."""
    if isinstance(expr, Literal):
        return Literal(expr.pos, expr.value)
    if isinstance(expr, Ident):
        return Ident(expr.pos, expr.name)
    if isinstance(expr, Select):
        return Select(expr.pos, copy_expr(expr.operand), expr.field, test=expr.test)
    if isinstance(expr, Call):
        target = copy_expr(expr.target) if expr.target is not None else None
        return Call(expr.pos, expr.function, list(map(copy_expr, expr.args)), target)
    if isinstance(expr, ListExpr):
        return ListExpr(expr.pos, list(map(copy_expr, expr.elements)), expr.optional)
    if isinstance(expr, MapExpr):
        entries = [Entry(e.pos, copy_expr(e.key), copy_expr(e.value), optional=e.optional) for e in expr.entries]
        return MapExpr(expr.pos, entries)
    if isinstance(expr, Message):
        fields = [Entry(f.pos, f.key, copy_expr(f.value), optional=f.optional) for f in expr.fields]
        return Message(expr.pos, expr.name, fields)
    assert isinstance(expr, Comprehension)
    return Comprehension(
        expr.pos,
        copy_expr(expr.source),
        expr.var,
        expr.accumulator,
        copy_expr(expr.initial),
        copy_expr(expr.condition),
        copy_expr(expr.step),
        copy_expr(expr.result),
        expr.var2,
    )
