"""Expressions as Python code: names, fields, indexes, logic and literals.

The code keeps the run-time cost in `c` as cel-go reckons it, and raises CelError for errors. Data with a schema is
read in place; it becomes a value object only where a function or container needs one.

Source: cel-go `interpreter/{planner,interpretable,attributes,runtimecost}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
    Message,
    Select,
)
from steersman.apimachinery.schema.cel.constants import constant_value, is_constant
from steersman.apimachinery.schema.cel.outlines import grouped
from steersman.apimachinery.schema.cel.schema_types import Decl
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import check_qualifier
from steersman.apimachinery.schema.cel.writer import Captured, Code, Writer

_MAX_INLINE = 120
CONTAINERS = frozenset({"object", "map", "list"})
_CLASSES = {
    "int": "int",
    "string": "str",
    "bool": "bool",
    "double": "float",
    "object": "dict",
    "map": "dict",
    "list": "list",
}
_INDEXES = frozenset({"_[_]", "_[?_]", "_?._"})


def is_attribute(expr: Expr) -> bool:
    """Whether an expression is a path from a variable, which is charged once beside its steps."""
    if isinstance(expr, Ident):
        return expr.constant is None
    if isinstance(expr, Select):
        return not expr.test and (expr.named is None or expr.named.constant is None)
    return isinstance(expr, Call) and expr.function in _INDEXES


def is_dyn(cel_type: Type) -> bool:
    return cel_type.kind in ("dyn", "error", t.PARAM)


class ExpressionWriter(Writer):
    """Writes one expression; containers, calls and folds are added by subclasses."""

    def container(self, expr: ListExpr | MapExpr | Message) -> Code:
        raise NotImplementedError

    def call(self, expr: Call) -> Code:
        raise NotImplementedError

    def fold(self, expr: Comprehension) -> Code:
        raise NotImplementedError

    def write(self, expr: Expr) -> Code:
        """Write an expression, and return its result."""
        if is_constant(expr):
            return self.literal(constant_value(expr), expr.type)
        if (id(expr) in self.outlines.apart or self.too_deep()) and list(expr.children()):
            return self.outline(partial(self._write, expr))
        code = self._write(expr)
        # Python bounds how deeply parentheses nest
        return code if len(code.text) <= _MAX_INLINE else code._replace(text=self.let(code.text))

    def _write(self, expr: Expr) -> Code:
        if is_attribute(expr):
            return self.attribute(expr, base=1)
        if isinstance(expr, Select):
            return self.presence(expr)
        if isinstance(expr, Call):
            if expr.function in ("_&&_", "_||_"):
                return self.logic(expr)
            return self.ternary(expr) if expr.function == "_?_:_" else self.call(expr)
        if isinstance(expr, (ListExpr, MapExpr, Message)):
            return self.container(expr)
        assert isinstance(expr, Comprehension)
        return self.fold(expr)

    def literal(self, value: Any, cel_type: Type) -> Code:
        if value is None or value.__class__ in (bool, int, str):
            return Code(f"({value})" if value.__class__ is int else repr(value), cel_type)
        return Code(self.constant(value), cel_type)

    def value(self, code: Code) -> str:
        """A result as a value: data gets its value object."""
        if code.decl is None:
            return code.text
        kind = "ListValue" if code.decl.kind == "list" else "ObjectValue"
        return f"{kind}({code.text}, {self.constant(code.decl, 'D')})"

    def write_value(self, expr: Expr) -> str:
        return self.value(self.write(expr))

    def write_bool(self, expr: Expr) -> Code:
        """An expression that must be a boolean at run time."""
        code = self.write(expr)
        if expr.type.kind == "bool" and not expr.type.nullable:
            return code
        text = self.let(self.value(code))
        self.emit(f"if {text}.__class__ is not bool: raise no_such_overload()")
        self.raises = True
        return Code(text, t.BOOL)

    # -- paths

    def attribute(self, expr: Expr, *, base: int) -> Code:
        """A path; `base` is charged for its beginning."""
        if isinstance(expr, Select) and expr.named is not None:
            expr = expr.named
        if isinstance(expr, Ident) and expr.constant is None:
            self.charge(base)
            return self.scope[expr.name]
        if isinstance(expr, Select) and is_attribute(expr):
            return self.select(self.attribute(expr.operand, base=base), expr.field)
        if isinstance(expr, Call) and expr.function in _INDEXES:
            operand = self.attribute(expr.args[0], base=base)
            if expr.function == "_?._":
                return self.optional_select(operand, expr)
            return self.index(operand, expr)
        if isinstance(expr, Call) and expr.function == "_?_:_":
            return self.write(expr)
        code = self.write(expr)
        self.charge(base)
        return code

    def read(self, decl: Decl, text: str, error: str) -> Code:
        """Data that was looked up, checked and converted; `error` is the expression for what does not fit at once."""
        assert decl.type is not None
        self.raises = True
        wanted = _CLASSES.get(decl.kind)
        if wanted is None or decl.nullable:
            return Code(self.let(error), decl.type)
        self.emit(f"if {text}.__class__ is not {wanted}: {text} = {error}")
        return Code(text, decl.type, decl if decl.kind in CONTAINERS else None)

    def select(self, operand: Code, name: str) -> Code:
        decl = operand.decl
        if decl is None or decl.kind == "list":
            return self.dynamic_select(operand, name)
        self.charge(1)
        if decl.kind == "map":
            assert decl.element is not None
            text = self.let(f"{operand.text}.get({name!r}, MISSING)")
            return self.read(decl.element, text, f"read_entry({self.constant(decl.element, 'D')}, {text}, {name!r})")
        field, child = decl.known_field(name)
        text = self.field_of(operand, field)
        if child.nullable and child.kind in _CLASSES:
            self.emit(f"if {text} is None: raise CelError({'no such key: ' + name!r})")
            convert = f"convert({self.constant(child, 'D')}, {text})"
            self.emit(f"if {text}.__class__ is not {_CLASSES[child.kind]}: {text} = {convert}")
            self.raises = True
            assert child.type is not None
            return Code(text, child.type, child if child.kind in CONTAINERS else None)
        return self.read(child, text, f"read_field({self.constant(child, 'D')}, {text}, {name!r})")

    def field_of(self, operand: Code, field: str) -> str:
        """The variable that holds a field; from an outer loop's variable it is read ahead of the inner loop."""
        read = f"{operand.text}.get({field!r})"
        if not self.rounds or operand.text not in self.items or operand.text in self.rounds[-1].own:
            return self.let(read)
        return self.rounds[-1].reads.setdefault(read, self.name("h"))

    def dynamic_select(self, operand: Code, name: str) -> Code:
        self.raises = True
        inner, was_optional = t.unwrap_optional(operand.type)
        result = self.field_type(inner, name)
        text = self.value(operand)
        if was_optional:
            return self.optional_step(text, repr(name), t.optional_of(result))
        self.charge(1)
        return Code(self.let(f"get({text}, {name!r})"), result)

    def optional_step(self, operand: str, key: str, cel_type: Type) -> Code:
        """What an optional or a container has at a key; what is absent costs nothing."""
        text = self.let(f"optional_get({operand}, {key})")
        self.emit(f"c += {text} is not NONE")
        self.raises = True
        return Code(text, cel_type)

    def field_type(self, container: Type, name: str) -> Type:
        return container.params[1] if container.kind == "map" else t.DYN

    def optional_select(self, operand: Code, expr: Call) -> Code:
        name = expr.args[1]
        assert isinstance(name, Literal)
        decl = operand.decl
        if decl is None or decl.kind != "object":
            return self.optional_step(self.value(operand), repr(name.value), expr.type)
        field, child = decl.known_field(name.value)
        text = self.let(f"optional_field({self.constant(child, 'D')}, {operand.text}.get({field!r}))")
        self.raises = True
        self.emit(f"c += {text} is not NONE")
        return Code(text, expr.type)

    def index(self, operand: Code, expr: Call) -> Code:
        key_expr = expr.args[1]
        self.raises = True
        if is_constant(key_expr):
            check_qualifier(constant_value(key_expr))
        if t.is_optional(operand.type):
            return self.optional_index(operand, expr)
        key = self.write(key_expr)
        if self.nulls and not is_constant(key_expr):
            self.emit(f"check_qualifier({key.text})")
        # a key that is a path is charged for as such
        charged = is_attribute(key_expr) and not is_constant(key_expr)
        if expr.function == "_[?_]":
            code = self.optional_step(self.value(operand), self.value(key), expr.type)
            if charged:
                self.emit("c -= 1")
            return code
        if not charged:
            self.charge(1)
        decl = operand.decl
        if decl is None or decl.element is None or key.type.kind not in ("int", "string"):
            return Code(self.let(f"get({self.value(operand)}, {self.value(key)})"), expr.type)
        name = self.constant(decl.element, "D")
        if decl.kind == "list":
            text = self.let(f"read_index({operand.text}, {key.text})")
            return self.read(decl.element, text, f"convert({name}, {text})")
        text = self.let(f"{operand.text}.get({key.text}, MISSING)")
        return self.read(decl.element, text, f"read_entry({name}, {text}, {key.text})")

    def optional_index(self, operand: Code, expr: Call) -> Code:
        """An index of an optional: the key is evaluated only if there is something to look into."""
        key_expr = expr.args[1]
        result = self.let("NONE")
        self.open(f"if {operand.text}.item is not MISSING:")
        key = self.write(key_expr)
        code = self.optional_step(operand.text, self.value(key), expr.type)
        if is_attribute(key_expr) and not is_constant(key_expr):
            self.emit("c -= 1")
        self.emit(f"{result} = {code.text}")
        self.close()
        return code._replace(text=result)

    def presence(self, expr: Select) -> Code:
        """has(operand.field)."""
        operand = self.attribute(expr.operand, base=0)
        decl = operand.decl
        if decl is None and t.is_optional(operand.type):
            self.raises = True
            result = self.let(f"has({operand.text}, {expr.field!r})")
            self.emit(f"c += {result}")
            return Code(result, t.BOOL)
        self.charge(1)
        if decl is not None and decl.kind == "object":
            return Code(f"({operand.text}.get({decl.known_field(expr.field).name!r}) is not None)", t.BOOL)
        if decl is not None and decl.kind == "map":
            return Code(f"({expr.field!r} in {operand.text})", t.BOOL)
        self.raises = True
        return Code(self.let(f"has({self.value(operand)}, {expr.field!r})"), t.BOOL)

    # -- logic

    def logic(self, expr: Call) -> Code:
        """`&&` or `||`: an error counts only if no other term decides."""
        every = expr.function == "_&&_"
        groups = grouped(_terms(expr, expr.function), self.outlines.size)
        if len(groups) == 1:
            return self.chain([partial(self.write_bool, each) for each in groups[0]], every=every)
        parts = [[partial(self.write_bool, each) for each in group] for group in groups]
        return self.chain(
            [partial(self.outline, partial(self.chain, part, every=every)) for part in parts], every=every
        )

    def chain(self, terms: Sequence[Callable[[], Code]], *, every: bool) -> Code:
        """The terms of `&&` (`every`) or `||`, in order."""
        result, error = self.name(), self.name("e")
        failing = False
        still = result if every else f"not {result}"
        for number, term in enumerate(terms):
            if number:
                self.open(f"if {still}:")
            captured = self.capture(term)
            last = number == len(terms) - 1
            if captured.raises and not last:
                if not failing:
                    self.declare(error, result, number)
                failing = True
                self.guarded(captured, result, str(every), f"{error} = {error} or x")
            elif captured.raises and failing:
                self.guarded(captured, result, str(every), f"raise {error} or x")
            else:
                self.place(captured)
                self.emit(f"{result} = {captured.code.text}")
            if number:
                self.close()
        if failing:
            self.emit(f"if {error} and {still}: raise {error}")
            self.raises = True
        return Code(result, t.BOOL)

    def declare(self, error: str, result: str, number: int) -> None:
        """`error = None`, ahead of all terms: those before this one are inside of blocks or cannot raise."""
        self.flush()
        position = len(self.lines) - (1 if number else 0)
        self.lines.insert(position, (self.indent - (1 if number else 0), f"{error} = None"))

    def guarded(self, captured: Captured, result: str, otherwise: str, handler: str) -> None:
        self.emit("try:")
        self.place(captured, deeper=True)
        self.emit(f"    {result} = {captured.code.text}")
        self.emit("except ERRORS as x:")
        self.emit(f"    {result} = {otherwise}")
        self.emit(f"    {handler}")

    def ternary(self, expr: Call) -> Code:
        condition = self.write_bool(expr.args[0])
        self.flush()
        branches = [self.capture(partial(self.branch, each)) for each in expr.args[1:]]
        first, second = branches[0].code, branches[1].code
        same = first.decl is second.decl
        result = self.name()
        for header, captured in zip((f"if {condition.text}:", "else:"), branches, strict=True):
            self.emit(header)
            self.place(captured, deeper=True)
            self.emit(f"    {result} = {captured.code.text if same else self.value(captured.code)}")
        return Code(result, expr.type, first.decl if same else None)

    def branch(self, expr: Expr) -> Code:
        """A branch of `?:`: upstream does not charge for the beginning of a path here."""
        return self.attribute(expr, base=0) if is_attribute(expr) and not is_constant(expr) else self.write(expr)


def _terms(expr: Expr, function: str) -> list[Expr]:
    """The terms of a chain of one logical operator, in order."""
    out: list[Expr] = []
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.function == function:
            pending += [node.args[1], node.args[0]]
        else:
            out.append(node)
    return out
