"""Types of every part of an expression, and what is wrong with them.

Source: cel-go `checker/{checker,types,env,errors}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.ast import (
    UNDEFINED,
    Call,
    Comprehension,
    Entry,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Message,
    Select,
)
from steersman.apimachinery.schema.cel.declarations import OPTIONAL_FUNCTIONS, TYPE_NAMES, Overload, functions
from steersman.apimachinery.schema.cel.errors import CompileError, Issue
from steersman.apimachinery.schema.cel.messages import ENUMS, MESSAGES, Constructs, Field
from steersman.apimachinery.schema.cel.schema_types import Decl
from steersman.apimachinery.schema.cel.types import Bindings, Type
from steersman.apimachinery.schema.cel.values import type_of


@dataclass(slots=True)
class Environment:
    """What names an expression may use: `variables` and their types, and object types by name.

    `constructs` has the types whose values it may build, `extra` those functions that not every environment has.
    """

    variables: Mapping[str, Type] = field(default_factory=dict)
    objects: Mapping[str, Decl] = field(default_factory=dict)
    constructs: Constructs = lambda name: None
    extra: frozenset[str] = frozenset()


def check(source: str, expr: Expr, env: Environment) -> Expr:
    """Write the types into a tree, and return it: its root may be replaced. Raises CompileError."""
    checker = _Checker(env)
    checker.check(expr)
    if checker.issues:
        raise CompileError(source, checker.issues)
    checker.settle(expr)
    return expr


class _Checker:
    def __init__(self, env: Environment) -> None:
        self.env = env
        self.issues: list[Issue] = []
        self.bindings = Bindings()
        self.variables = 0
        self.scopes: list[dict[str, Type]] = []

    def settle(self, expr: Expr) -> None:
        """Replace what is left of type variables."""
        pending = [expr]
        while pending:
            node = pending.pop()
            node.type = self.bindings.resolve(node.type, free_to_dyn=True)
            pending.extend(node.children())

    def issue(self, node: Expr, message: str) -> None:
        self.issues.append(Issue(node.pos, message))

    def undeclared(self, node: Expr, name: str) -> None:
        self.issue(node, f"undeclared reference to '{name}' (in container '')")

    def mismatch(self, node: Expr, expected: Type, actual: Type) -> None:
        self.issue(node, f"expected type '{expected}' but found '{actual}'")

    def new_variable(self) -> Type:
        self.variables += 1
        return t.type_param(f"_var{self.variables - 1}")

    def check(self, node: Expr) -> None:
        node.type = _CHECKS[type(node)](self, node)  # type: ignore[operator]

    def literal(self, node: Literal) -> Type:
        return type_of(node.value)

    # -- names

    def local(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def ident(self, node: Ident) -> Type:
        local = self.local(node.name)
        found = local or self.global_name(node, node.name.removeprefix("."))
        if found is not None:
            return found
        self.undeclared(node, node.name)
        return t.ERROR

    def global_name(self, node: Ident, name: str) -> Type | None:
        """The type of a variable or of a type's name; the latter is a constant."""
        variable = self.env.variables.get(name)
        if variable is not None:
            node.name = name
            return variable
        named = self.construct_name(name) or _NAMED.get(name)
        if named is None:
            return None
        node.name = name
        node.constant = named[1]
        return named[0]

    def construct_name(self, name: str) -> tuple[Type, Any] | None:
        found = self.env.constructs(name)
        return None if found is None else (t.type_of_type(found.type), UNDEFINED)

    def qualified(self, node: Select) -> Type | None:
        """The type of `a.b.c` if that is one name."""
        parts: list[str] = []
        current: Expr = node
        while isinstance(current, Select) and not current.test:
            parts.append(current.field)
            current = current.operand
        if not isinstance(current, Ident) or self.local(current.name) is not None:
            return None
        stand_in = Ident(node.pos, ".".join([current.name.removeprefix("."), *reversed(parts)]))
        found = self.global_name(stand_in, stand_in.name)
        if found is not None:
            node.named = stand_in
            stand_in.type = found
        return found

    def select(self, node: Select) -> Type:
        if not node.test:
            named = self.qualified(node)
            if named is not None:
                return named
        result = self.field(node, node.operand, node.field, optional=False)
        return t.BOOL if node.test else self.bindings.resolve(result)

    def field(self, node: Expr, operand: Expr, name: str, *, optional: bool) -> Type:
        self.check(operand)
        target, was_optional = t.unwrap_optional(self.bindings.resolve(operand.type))
        result = t.ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == t.OBJECT:
            result = self.object_field(node, target.name, name)
        elif target.kind == t.PARAM:
            self.bindings.assignable([t.DYN], [target])
            result = t.DYN
        else:
            if not t.is_dyn_or_error(target):
                self.issue(node, f"type '{target}' does not support field selection")
            result = t.DYN
        return t.optional_of(result) if was_optional or optional else result

    def object_field(self, node: Expr, type_name: str, name: str) -> Type:
        construct = self.env.constructs(type_name)
        if construct is not None and (known := construct.field(name)) is not None:
            return known.type
        decl = self.env.objects.get(type_name)
        if decl is None and type_name in MESSAGES:
            self.issue(node, f"undefined field '{name}'")
            return t.ERROR
        if decl is None:
            self.issue(node, f"unexpected failed resolution of '{type_name}'")
            return t.ERROR
        found = decl.field(name)
        if found is None or found.decl.type is None:
            self.issue(node, f"undefined field '{name}'")
            return t.ERROR
        return found.decl.type

    # -- calls

    def call(self, node: Call) -> Type:
        if node.function == "_?._":
            return self.optional_select(node)
        for arg in node.args:
            self.check(arg)
        known = functions()
        if node.target is None:
            name = node.function.removeprefix(".")
            if not self.knows(name):
                self.undeclared(node, node.function)
                return t.ERROR
            node.function = name
            return self.resolve(node, known[name], [])
        prefix = _qualified_name(node.target)
        if prefix is not None and self.knows(f"{prefix}.{node.function}"):
            node.function = f"{prefix}.{node.function}"
            node.target = None
            return self.resolve(node, known[node.function], [])
        self.check(node.target)
        if node.function in known:
            return self.resolve(node, known[node.function], [node.target])
        self.undeclared(node, node.function)
        return t.ERROR

    def knows(self, function: str) -> bool:
        return function in functions() and (function not in OPTIONAL_FUNCTIONS or function in self.env.extra)

    def optional_select(self, node: Call) -> Type:
        operand, name = node.args
        if not isinstance(name, Literal) or name.value.__class__ is not str:
            self.issue(name, "unsupported optional field selection: " + str(name))
            return t.ERROR
        name.type = t.STRING
        node.overloads = ("select_optional_field",)
        return self.bindings.resolve(self.field(node, operand, name.value, optional=True))

    def resolve(self, node: Call, overloads: tuple[Overload, ...], target: list[Expr]) -> Type:
        types = [each.type for each in target + node.args]
        if node.function in ("_&&_", "_||_"):
            return self.logical(node, overloads[0])
        result: Type | None = None
        matched = []
        for overload in overloads:
            if overload.member != bool(target) or len(overload.args) != len(types):
                continue
            args, outcome = self.instantiate(overload)
            if not self.bindings.assignable(types, args):
                continue
            matched.append(overload.id)
            outcome = self.bindings.resolve(outcome)
            if result is None:
                result = outcome
            elif result.kind != "dyn" and outcome != result:
                result = t.DYN
        node.overloads = tuple(matched)
        if result is not None:
            return result
        shown = [str(self.bindings.resolve(each, free_to_dyn=True)) for each in types]
        receiver = shown.pop(0) + "." if target else ""
        signature = f"{receiver}({', '.join(shown)})"
        self.issue(node, f"found no matching overload for '{node.function}' applied to '{signature}'")
        return t.ERROR

    def logical(self, node: Call, overload: Overload) -> Type:
        node.overloads = (overload.id,)
        result = t.BOOL
        for arg in node.args:
            if not self.bindings.assignable([arg.type], [t.BOOL]):
                self.mismatch(arg, t.BOOL, arg.type)
                result = t.ERROR
        return result

    def instantiate(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """An overload's types with variables of their own."""
        if not overload.params:
            return overload.args, overload.result
        fresh = Bindings({name: self.new_variable() for name in sorted(overload.params)})
        return tuple(map(fresh.resolve, overload.args)), fresh.resolve(overload.result)

    # -- containers

    def join(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self.bindings.assignable([previous], [current]):
            return t.most_general(previous, current)
        return t.DYN

    def unwrap(self, node: Expr) -> Type:
        """The type inside an optional element."""
        inner, was_optional = t.unwrap_optional(node.type)
        if not was_optional and inner.kind != "dyn":
            self.mismatch(node, t.optional_of(inner), inner)
        return inner

    def list(self, node: ListExpr) -> Type:
        element: Type | None = None
        for index, each in enumerate(node.elements):
            self.check(each)
            element = self.join(element, self.unwrap(each) if index in node.optional else each.type)
        return t.list_of(element if element is not None else self.new_variable())

    def map(self, node: MapExpr) -> Type:
        key_type: Type | None = None
        value_type: Type | None = None
        for entry in node.entries:
            self.check(entry.key)
            key_type = self.join(key_type, entry.key.type)
            self.check(entry.value)
            found = self.unwrap(entry.value) if entry.optional else entry.value.type
            value_type = self.join(value_type, found)
        if key_type is None or value_type is None:
            return t.map_of(self.new_variable(), self.new_variable())
        return t.map_of(key_type, value_type)

    def message(self, node: Message) -> Type:
        """Of messages, those of protobuf itself and of the environment: data has no type that expressions can name."""
        name = node.name.removeprefix(".")
        construct = self.env.constructs(name)
        known = construct or MESSAGES.get(name)
        node.name = name if known is not None else node.name
        named = TYPE_NAMES.get(name)
        if named is None and known is None:
            self.undeclared(node, node.name)
            return t.ERROR
        if known is None and named is not None:
            self.issue(node, f"'{named[1].name}' is not a message type")
        for each in node.fields:
            self.check(each.value)
            self.message_field(each, known.field(each.key) if known is not None else None)
        node.make = construct.make if construct is not None else None
        return t.ERROR if known is None else known.type

    def message_field(self, entry: Entry, declared: Field | None) -> None:
        found = self.unwrap(entry.value) if entry.optional else entry.value.type
        if declared is None:
            self.issues.append(Issue(entry.pos, f"undefined field '{entry.key}'"))
        elif not self.bindings.assignable([declared.type], [found]):
            words = f"expected type of field '{entry.key}' is '{declared.type}' but provided type is '{found}'"
            self.issues.append(Issue(entry.pos, words))

    def comprehension(self, node: Comprehension) -> Type:
        self.check(node.source)
        self.check(node.initial)
        first, second = self.range(node)
        accumulated = node.initial.type
        self.scopes.append({node.accumulator: accumulated})
        self.scopes.append({node.var: first} | ({node.var2: second} if node.var2 else {}))
        for part, expected in ((node.condition, t.BOOL), (node.step, accumulated)):
            self.check(part)
            if not self.bindings.assignable([expected], [part.type]):
                self.mismatch(part, expected, part.type)
        self.scopes.pop()
        self.check(node.result)
        self.scopes.pop()
        return self.bindings.resolve(node.result.type)

    def range(self, node: Comprehension) -> tuple[Type, Type]:
        """The types of the iteration variables."""
        source = self.bindings.resolve(node.source.type)
        if source.kind == "list":
            element = source.params[0]
            return (t.INT, element) if node.var2 else (element, element)
        if source.kind == "map":
            return source.params[0], source.params[1]
        if source.kind in ("dyn", "error", t.PARAM):
            self.bindings.assignable([t.DYN], [source])
            return t.DYN, t.DYN
        words = "cannot be range of a comprehension (must be list, map, or dynamic)"
        self.issue(node.source, f"expression of type '{source}' {words}")
        return t.ERROR, t.ERROR


def _named() -> dict[str, tuple[Type, Any]]:
    """The names that are no variables: their types and values."""
    out: dict[str, tuple[Type, Any]] = {name: (t.INT, value) for name, value in ENUMS.items()}
    for name, message in MESSAGES.items():
        out[name] = t.type_of_type(message.type), message.type if message.type.kind == t.OBJECT else UNDEFINED
    for name, alias in (("duration", t.DURATION), ("timestamp", t.TIMESTAMP)):
        out[name] = t.type_of_type(alias), UNDEFINED
    return out | {name: (t.type_of_type(each), value) for name, (each, value) in TYPE_NAMES.items()}


_NAMED = _named()


def _qualified_name(expr: Expr) -> str | None:
    parts: list[str] = []
    while isinstance(expr, Select):
        if expr.test:
            return None
        parts.append(expr.field)
        expr = expr.operand
    if not isinstance(expr, Ident):
        return None
    return ".".join([expr.name.removeprefix("."), *reversed(parts)])


_CHECKS = {
    Literal: _Checker.literal,
    Ident: _Checker.ident,
    Select: _Checker.select,
    Call: _Checker.call,
    ListExpr: _Checker.list,
    MapExpr: _Checker.map,
    Message: _Checker.message,
    Comprehension: _Checker.comprehension,
}
