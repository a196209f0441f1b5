"""What evaluating an expression may cost, from the bounds that its schema sets.

Source: cel-go `checker/cost.go`; apiextensions `pkg/apiserver/schema/cel/compilation.go` (sizeEstimator).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
)
from steersman.apimachinery.schema.cel.estimate_calls import CallEstimate, Operand, estimate_call
from steersman.apimachinery.schema.cel.macros import ACCUMULATOR
from steersman.apimachinery.schema.cel.ranges import MOST, ONE, UNKNOWN, ZERO, Range, fixed
from steersman.apimachinery.schema.cel.schema_types import Decl
from steersman.apimachinery.schema.cel.types import Type

Path = tuple[str, ...]
_LIST_COST, _MAP_COST, _MESSAGE_COST = fixed(10), fixed(30), fixed(40)
_SCALARS = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


@dataclass(slots=True)
class _Entry:
    """Sizes of a container's keys (or indexes) and values."""

    kind: str
    key: Range
    value: Range

    def union(self, other: _Entry | None) -> _Entry | None:
        return None if other is None else _Entry(self.kind, self.key.union(other.key), self.value.union(other.value))


@dataclass(slots=True)
class _Local:
    """A variable of a fold: where it comes from, and its sizes."""

    path: Path
    size: Range | None
    entry: _Entry | None


def estimate(expr: Expr, variables: Mapping[str, Decl | None]) -> Range:
    """The least and the greatest cost of an expression that was checked.

    Paths lead into the first declaration, whatever variable they begin with, as upstream has it.
    """
    root = next((decl for decl in variables.values() if decl is not None), None)
    return _Estimator(root).cost(expr)


class _Estimator:
    def __init__(self, root: Decl | None) -> None:
        self.root = root
        self.paths: dict[Expr, Path] = {}
        self.locals: dict[str, list[_Local]] = {}
        self.sizes: dict[Expr, Range] = {}
        self.entries: dict[Expr, _Entry] = {}

    def cost(self, expr: Expr) -> Range:
        if isinstance(expr, Literal):
            return ZERO
        if isinstance(expr, Ident):
            local = self.local(expr.name)
            self.paths[expr] = local.path if local is not None else (expr.name,)
            return ONE
        if isinstance(expr, Select):
            return self.select(expr)
        if isinstance(expr, Call):
            return self.call(expr)
        if isinstance(expr, ListExpr):
            return self.list(expr)
        if isinstance(expr, MapExpr):
            return self.map(expr)
        if isinstance(expr, Comprehension):
            return self.binding(expr) if expr.is_binding else self.fold(expr)
        total = _MESSAGE_COST
        for child in expr.children():
            total = total.plus(self.cost(child))
        return total

    # -- paths and sizes

    def local(self, name: str) -> _Local | None:
        stack = self.locals.get(name)
        return stack[-1] if stack else None

    def push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def pop(self, name: str) -> None:
        self.locals[name].pop()

    def path(self, expr: Expr) -> Path:
        if isinstance(expr, Ident):
            local = self.local(expr.name)
            if local is not None:
                return local.path
        return self.paths.get(expr, ())

    def path_size(self, path: Path) -> Range | None:
        """The size of the data at a path, as its schema bounds it."""
        if not path or self.root is None:
            return None
        decl: Decl | None = self.root
        for step in path[1:]:
            if step == "@keys" and decl is not None and decl.kind == "map":
                return ZERO if step == path[-1] else None
            decl = _step(decl, step)
            if decl is None:
                return None
        return Range(0, decl.max_elements) if decl is not None else None

    def size(self, expr: Expr) -> Range | None:
        known = self.sizes.get(expr)
        if known is not None:
            return known
        literal = _literal_size(expr)
        if literal is not None:
            return fixed(literal)
        found = self.path_size(self.path(expr))
        if found is not None:
            self.sizes[expr] = found
            return found
        if _is_scalar(expr.type):
            return ONE
        if isinstance(expr, Ident):
            local = self.local(expr.name)
            if local is not None:
                return local.size
        return None

    def size_or_unknown(self, expr: Expr) -> Range:
        found = self.size(expr)
        return UNKNOWN if found is None else found

    def entry(self, expr: Expr) -> _Entry | None:
        known = self.entries.get(expr)
        if known is None and isinstance(expr, Ident):
            local = self.local(expr.name)
            return local.entry if local is not None else None
        return known

    def operand(self, expr: Expr) -> Operand:
        path = self.path(expr)
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = ()
        return Operand(expr, path, self.size(expr), self.path_size)

    # -- nodes

    def select(self, expr: Select) -> Range:
        if expr.named is not None:
            return self.cost_of_name(expr, expr.named.name)
        total = self.cost(expr.operand)
        if expr.test:
            return total
        if expr.operand.type.kind in ("map", t.OBJECT, t.PARAM):
            total = total.plus(ONE)
        self.paths[expr] = (*self.path(expr.operand), expr.field)
        return total

    def cost_of_name(self, expr: Expr, name: str) -> Range:
        self.paths[expr] = (name,)
        return ONE

    def call(self, expr: Call) -> Range:
        if expr.function == "dyn":
            argument = expr.args[0]
            total = self.cost(argument).plus(ONE)
            self.copy_sizes(expr, argument)
            return total
        costs = [self.cost(arg) for arg in expr.args]
        operands = [self.operand(arg) for arg in expr.args]
        if not expr.overloads:
            return ZERO
        total, target = ZERO, None
        if expr.target is not None:
            total = self.cost(expr.target)
            target = self.operand(expr.target)
        best = Range(MOST, 0)
        size: Range | None = None
        for overload in expr.overloads:
            estimated = self.overload(expr, overload, target, operands, costs)
            best = best.union(estimated.cost)
            if estimated.size is not None:
                size = estimated.size if size is None else size.union(estimated.size)
            if overload in ("index_list", "index_map") and expr.args:
                entry = self.entry(expr.args[0])
                size = entry.value if entry is not None else None
                step = "@items" if overload == "index_list" else "@values"
                self.paths[expr] = (*self.path(expr.args[0]), step)
            if size is None:
                size = self.size(expr)
        if size is not None:
            self.sizes[expr] = size
        return total.plus(best)

    def overload(
        self, expr: Call, overload: str, target: Operand | None, operands: list[Operand], costs: list[Range]
    ) -> CallEstimate:
        if overload in ("logical_and", "logical_or"):
            return CallEstimate(Range(costs[0].low, costs[0].plus(costs[1]).high))
        if overload == "conditional":
            return self.conditional(expr, operands, costs)
        arguments = ZERO
        for cost in costs:
            arguments = arguments.plus(cost)
        if overload in ("add_string", "add_bytes", "add_list"):
            first, second = self.entry(expr.args[0]), self.entry(expr.args[1])
            joined = first.union(second) if first is not None else None
            if joined is not None:
                self.entries[expr] = joined
        estimated = estimate_call(expr.function, overload, target, operands)
        return CallEstimate(estimated.cost.plus(arguments), estimated.size)

    def conditional(self, expr: Call, operands: list[Operand], costs: list[Range]) -> CallEstimate:
        size = self.size_or_unknown(expr.args[1]).union(self.size_or_unknown(expr.args[2]))
        first, second = self.entry(expr.args[1]), self.entry(expr.args[2])
        joined = first.union(second) if first is not None else None
        if joined is not None:
            self.entries[expr] = joined
        return CallEstimate(costs[0].plus(costs[1].union(costs[2])), size)

    def copy_sizes(self, to: Expr, source: Expr) -> None:
        size, entry = self.size(source), self.entry(source)
        if size is not None:
            self.sizes[to] = size
        if entry is not None:
            self.entries[to] = entry

    def list(self, expr: ListExpr) -> Range:
        total = ZERO
        size = Range(MOST if expr.elements else 0, 0)
        for element in expr.elements:
            total = total.plus(self.cost(element))
            size = size.union(self.size_or_unknown(element))
        self.entries[expr] = _Entry("list", ONE, size)
        return total.plus(_LIST_COST)

    def map(self, expr: MapExpr) -> Range:
        total = ZERO
        key = value = Range(MOST if expr.entries else 0, 0)
        for entry in expr.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(self.size_or_unknown(entry.key))
            value = value.union(self.size_or_unknown(entry.value))
        self.entries[expr] = _Entry("map", key, value)
        return total.plus(_MAP_COST)

    def binding(self, expr: Comprehension) -> Range:
        total = self.cost(expr.source).plus(self.cost(expr.initial))
        self.push_accumulator(expr)
        total = total.plus(self.cost(expr.result))
        self.pop(expr.accumulator)
        self.copy_sizes(expr, expr.result)
        return total

    def push_accumulator(self, expr: Comprehension) -> None:
        initial = expr.initial
        self.push(expr.accumulator, _Local(self.path(initial), self.size(initial), self.entry(initial)))

    def fold(self, expr: Comprehension) -> Range:
        total = self.cost(expr.source).plus(self.cost(expr.initial))
        self.push_accumulator(expr)
        self.push_variables(expr)
        each = self.cost(expr.condition)
        each = self.cost(expr.step).plus(each)
        self.pop(expr.var)
        if expr.var2:
            self.pop(expr.var2)
        total = total.plus(self.cost(expr.result))
        self.pop(expr.accumulator)
        rounds = self.size_or_unknown(expr.source)
        total = total.plus(rounds.times(each))
        if isinstance(expr.initial, Literal):
            self.copy_size(expr, expr.initial)
        elif isinstance(expr.initial, (ListExpr, MapExpr)):
            self.sizes[expr] = rounds
            entry = self.entry(expr.step)
            if entry is not None:
                self.entries[expr] = entry
        return total

    def copy_size(self, to: Expr, source: Expr) -> None:
        size = self.size(source)
        if size is not None:
            self.sizes[to] = size

    def push_variables(self, expr: Comprehension) -> None:
        entry = self.entry(expr.source)
        kind = entry.kind if entry is not None else expr.source.type.kind
        path = self.path(expr.source)
        key, value = (entry.key, entry.value) if entry is not None else (None, None)
        of_list = kind == "list"
        if expr.var2:
            self.push(expr.var, _Local((*path, "@indices" if of_list else "@keys"), key, None))
            self.push(expr.var2, _Local((*path, "@items" if of_list else "@values"), value, None))
        elif of_list:
            self.push(expr.var, _Local((*path, "@items"), value, None))
        else:
            self.push(expr.var, _Local((*path, "@keys"), key, None))


def _step(decl: Decl | None, step: str) -> Decl | None:
    if decl is None:
        return None
    if step in ("@items", "@values"):
        return decl.element
    found = decl.fields.get(step)
    return found.decl if found is not None else None


def _literal_size(expr: Expr) -> int | None:
    if isinstance(expr, Literal):
        value: Any = expr.value
        return len(value) if value.__class__ in (str, bytes) else 1
    if isinstance(expr, ListExpr):
        return len(expr.elements)
    return len(expr.entries) if isinstance(expr, MapExpr) else None


def _is_scalar(cel_type: Type) -> bool:
    if t.is_optional(cel_type):
        return _is_scalar(cel_type.params[0])
    return cel_type.kind in _SCALARS
