"""Calls as Python code: operators in place where the types are known, functions of the libraries otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.ast import Call, Expr, Literal
from steersman.apimachinery.schema.cel.codegen import is_dyn
from steersman.apimachinery.schema.cel.codegen_containers import ContainerWriter
from steersman.apimachinery.schema.cel.constants import constant_value, is_constant
from steersman.apimachinery.schema.cel.costs import CALL_LIMIT, QUADRATIC, call_cost, regex_cost
from steersman.apimachinery.schema.cel.dispatch import dispatcher
from steersman.apimachinery.schema.cel.library import implementation
from steersman.apimachinery.schema.cel.library.regex import compile_regex, find_all_with, find_with
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import Uint
from steersman.apimachinery.schema.cel.writer import Code

_INT_LIMITS = ("-9223372036854775808", "9223372036854775807")
_IDENTICAL = frozenset({"int", "string", "bool", "uint", "bytes", "double", "timestamp", "duration"})
_ONE_UNIT = frozenset({"int", "bool", "uint", "double", "timestamp", "duration", "null_type", "type"})
_HASHED = frozenset({int, Uint, float, str, bool})
_OPAQUE = frozenset({t.QUANTITY, t.URL, t.NAMED_FORMAT, t.SEMVER, t.IP, t.CIDR})
_COMPARISONS = {
    "_<_": ("<", "less"),
    "_<=_": ("<=", "less_equal"),
    "_>_": (">", "greater"),
    "_>=_": (">=", "greater_equal"),
}
_ARITHMETIC = {"_+_": "add", "_-_": "subtract", "_*_": "multiply", "_/_": "divide", "_%_": "modulo"}


class CallWriter(ContainerWriter):
    """Adds operators and function calls."""

    def call(self, expr: Call) -> Code:
        # one unit ahead of the arguments, which may raise: upstream charges for the call all the same
        self.charge(1)
        special = _SPECIAL.get(expr.function)
        if special is not None:
            done = special(self, expr)
            if done is not None:
                return done
        return self.general_call(expr)

    def price(self, units: int) -> None:
        """What the current call costs; one unit is charged already."""
        self.charge(units - 1)

    def price_text(self, text: str) -> None:
        self.emit(f"c += {text} - 1")

    def general_call(self, expr: Call) -> Code:
        """Call the implementation of the overload, or have it chosen by the arguments at run time."""
        exprs = [expr.target, *expr.args] if expr.target is not None else expr.args
        exact = len(expr.overloads) == 1 and not self.nulls and not any(_is_vague(each.type) for each in exprs)
        if compares_itself(expr):
            args = self.list_arguments(exprs)
        elif expr.function == "flatten" and len(exprs) == 2:
            args = self.depth_arguments(exprs)
        else:
            args = [self.write_value(each) for each in exprs]
        self.raises = True
        function = implementation(expr.overloads[0]) if exact else dispatcher(expr.function, expr.target is not None)
        invocation = f"{self.constant(function, 'F')}({', '.join(args)})"
        if exact and expr.overloads[0] in QUADRATIC:
            self.charge_call(expr, args, "None")
            self.emit(f"if c > {CALL_LIMIT}: raise CostLimitExceeded()")
            return Code(self.let(invocation), expr.type)
        result = self.let(invocation)
        self.charge_call(expr, args, result)
        return Code(result, expr.type)

    def list_arguments(self, exprs: list[Expr]) -> list[str]:
        """Arguments of functions whose cost upstream reckons before it looks for errors in them: it panics then."""
        args = [self.name() for _ in exprs]
        self.open("try:", counts=True)
        for name, each in zip(args, exprs, strict=True):
            self.emit(f"{name} = {self.write_value(each)}")
        self.close(counts=True)
        self.emit("except ERRORS:")
        self.emit("    raise EvaluationPanic(NO_LIST)")
        if any(is_dyn(each.type) for each in exprs):
            self.emit(f"check_list({args[0]})")
        return args

    def depth_arguments(self, exprs: list[Expr]) -> list[str]:
        """Arguments of flatten: upstream panics, too, where the depth is no integer or cannot be told."""
        args = [self.name() for _ in exprs]
        error = self.let("None", "e")
        for name, each in zip(reversed(args), reversed(exprs), strict=True):
            self.open("try:", counts=True)
            self.emit(f"{name} = {self.write_value(each)}")
            self.close(counts=True)
            self.emit("except ERRORS as x:")
            self.emit(f"    {error}, {name} = x, x")
        self.emit(f"check_depth({args[1]})")
        self.emit(f"if {error}: raise {error}")
        return args

    def charge_call(self, expr: Call, args: list[str], result: str) -> None:
        cost = call_cost(expr.function, expr.overloads[0] if len(expr.overloads) == 1 else "")
        if isinstance(cost, int):
            self.price(cost)
        else:
            self.price_text(f"{self.constant(cost, 'C')}({result}{''.join(f', {arg}' for arg in args)})")
            if expr.type.kind not in _ONE_UNIT:
                # what may be large is not made any larger beyond the limit
                self.emit(f"if c > {CALL_LIMIT}: raise CostLimitExceeded()")

    # -- equality and order

    def equality(self, expr: Call) -> Code:
        first, second = expr.args
        left, right = self.write(first), self.write(second)
        kind = first.type.kind
        equal = expr.function == "_==_"
        if kind == second.type.kind and kind in _IDENTICAL and not (self.nulls and kind in ("string", "bytes")):
            self.charge_sizes(first, second, left.text, right.text)
            return Code(f"({left.text} {'==' if equal else '!='} {right.text})", t.BOOL)
        a, b = self.value(left), self.value(right)
        if left.decl is not None or right.decl is not None:
            a, b = self.let(a), self.let(b)
        self.raises = True
        result = self.let(f"{'equal' if equal else 'not_equal'}({a}, {b})")
        if equal and first.type in _OPAQUE:
            self.price(1)
        else:
            self.price_text(f"smaller_size({a}, {b})")
        return Code(result, t.BOOL)

    def charge_sizes(self, first: Expr, second: Expr, left: str, right: str) -> None:
        """A tenth of the smaller size, rounded up, for strings and bytes; 1 for all else."""
        if first.type.kind not in ("string", "bytes"):
            self.price(1)
            return
        known = [len(each.value) if isinstance(each, Literal) else None for each in (first, second)]
        if known[0] is not None and known[1] is not None:
            self.price((min(known[0], known[1]) + 9) // 10)
            return
        if known[0] is None and known[1] is None:
            a, b = self.let(f"len({left})"), self.let(f"len({right})")
            # short texts are the most, and cost the one unit that is charged already
            self.emit(f"if {a} > 10 < {b}: c += (({a} if {a} < {b} else {b}) - 1) // 10")
            self.emit(f"elif not ({a} and {b}): c -= 1")
            return
        length = known[0] if known[0] is not None else known[1] or 0
        other = right if known[0] is not None else left
        if length <= 10:
            if length:
                self.price_text(f"(len({other}) > 0)")
            else:
                self.price(0)
            return
        self.price_text(f"(min(len({other}), {length}) + 9) // 10")

    def comparison(self, expr: Call) -> Code:
        first, second = expr.args
        left, right = self.write_value(first), self.write_value(second)
        symbol, function = _COMPARISONS[expr.function]
        kinds = {first.type.kind, second.type.kind}
        if len(kinds) == 1 and kinds <= {"int", "uint", "string"} and not self.nulls:
            self.charge_sizes(first, second, left, right)
            self.raises = self.raises or not is_constant(first) or not is_constant(second)
            return Code(f"({left} {symbol} {right})", t.BOOL)
        self.raises = True
        result = self.let(f"{function}({left}, {right})")
        if kinds <= _ONE_UNIT:
            self.price(1)
        else:
            self.price_text(f"smaller_size({left}, {right})")
        return Code(result, t.BOOL)

    # -- arithmetic

    def arithmetic(self, expr: Call) -> Code:
        first, second = expr.args
        left, right = self.write_value(first), self.write_value(second)
        kinds = {first.type.kind, second.type.kind}
        self.raises = True
        symbol = expr.function[1]
        if kinds == {"int"} and symbol in "+-*" and not self.nulls:
            self.price(1)
            result = self.let(f"{left} {symbol} {right}")
            low, high = _INT_LIMITS
            self.emit(f"if not {low} <= {result} <= {high}: checked_int({result})")
            return Code(result, expr.type)
        if kinds <= {"string", "bytes"} and len(kinds) == 1 and not self.nulls:
            result = self.let(f"{left} + {right}")
            self.price_text(f"(len({result}) + 9) // 10")
            self.emit(f"if c > {CALL_LIMIT}: raise CostLimitExceeded()")
            return Code(result, expr.type)
        result = self.let(f"{_ARITHMETIC[expr.function]}({left}, {right})")
        if symbol == "+" and any(map(is_dyn, (first.type, second.type))) and len(expr.overloads) > 1:
            self.price(1)
        else:
            self.charge_call(expr, [left, right], result)
        return Code(result, expr.type)

    def negation(self, expr: Call) -> Code:
        text = self.write_value(expr.args[0])
        self.price(1)
        if expr.function == "!_" and expr.args[0].type.kind == "bool":
            return Code(f"(not {text})", t.BOOL)
        self.raises = True
        return Code(self.let(f"{'logical_not' if expr.function == '!_' else 'negate'}({text})"), expr.type)

    # -- containers and strings

    def membership(self, expr: Call) -> Code:
        needle, haystack = expr.args
        if is_constant(haystack) and haystack.type.kind == "list":
            members = constant_value(haystack)
            if all(each.__class__ in _HASHED for each in members):
                return self.constant_membership(needle, members)
        text = self.write_value(needle)
        container = self.write(haystack)
        self.raises = True
        decl = container.decl
        if decl is not None and decl.element is not None and not decl.element.nullable and needle.type.kind != "dyn":
            plain = decl.kind == "map" or decl.element.kind in ("int", "string")
            if plain and needle.type.kind in ("int", "string"):
                if decl.kind == "list":
                    self.price_text(f"len({container.text})")
                else:
                    self.price(1)
                return Code(f"({text} in {container.text})", t.BOOL)
        value = self.let(self.value(container))
        result = self.let(f"contains({text}, {value})")
        if haystack.type.kind == "list":
            self.price_text(f"actual_size({value})")
        else:
            self.price(1)
        return Code(result, t.BOOL)

    def constant_membership(self, needle: Expr, members: list[Any]) -> Code:
        """Upstream makes a set of such members, which costs nothing to ask."""
        self.price(0)
        if not members:
            return Code("False", t.BOOL)
        text = self.write_value(needle)
        if needle.type.kind in ("int", "string") and all(each.__class__ in (int, str) for each in members):
            return Code(f"({text} in {self.constant(frozenset(members))})", t.BOOL)
        self.raises = True
        if is_dyn(needle.type):
            self.emit(f"map_key({text})")
        return Code(self.let(f"contains({text}, {self.constant(members)})"), t.BOOL)

    def size(self, expr: Call) -> Code | None:
        operand = expr.target or expr.args[0]
        if self.nulls or operand.type.kind not in ("string", "bytes", "list", "map"):
            return None
        code = self.write(operand)
        self.price(1)
        self.raises = True
        return Code(f"len({code.text})", t.INT)

    def affix(self, expr: Call) -> Code | None:
        """startsWith, endsWith and contains on strings."""
        if self.nulls or expr.target is None:
            return None
        if expr.target.type.kind != "string" or expr.args[0].type.kind != "string":
            return None
        text, part = self.write_value(expr.target), self.write_value(expr.args[0])
        self.raises = True
        if expr.function == "contains":
            self.price_text(f"((len({text}) + 9) // 10) * ((len({part}) + 9) // 10)")
            return Code(f"({part} in {text})", t.BOOL)
        literal = expr.args[0]
        if isinstance(literal, Literal):
            self.price((len(literal.value) + 9) // 10)
        else:
            self.price_text(f"(len({part}) + 9) // 10")
        return Code(f"{text}.{'startswith' if expr.function == 'startsWith' else 'endswith'}({part})", t.BOOL)

    def regex(self, expr: Call) -> Code | None:
        """matches, find and findAll with a constant pattern, compiled ahead."""
        args = [expr.target, *expr.args] if expr.target is not None else expr.args
        subject, pattern = args[0], args[1]
        if not is_constant(pattern) or constant_value(pattern).__class__ is not str or len(expr.overloads) != 1:
            return None
        regex = compile_regex(constant_value(pattern))
        text = self.write_value(subject)
        if subject.type.kind != "string" or self.nulls:
            text = self.let(f"subject({text})")
        self.raises = True
        self.price_text(f"((len({text}) + 10) // 10) * {regex_cost(len(constant_value(pattern)))}")
        if expr.function == "matches":
            return Code(self.let(f"{self.constant(regex.matches, 'F')}({text})"), t.BOOL)
        if expr.function == "find":
            return Code(self.let(f"{self.constant(find_with(regex), 'F')}({text})"), t.STRING)
        limit = self.write_value(args[2]) if len(args) > 2 else "-1"
        if len(args) > 2 and (args[2].type.kind != "int" or self.nulls):
            self.emit(f"if {limit}.__class__ is not int: raise no_such_overload()")
        return Code(self.let(f"{self.constant(find_all_with(regex), 'F')}({text}, {limit})"), expr.type)

    def optional_or(self, expr: Call) -> Code | None:
        """or and orValue: the second is evaluated only if need be, and neither costs anything."""
        if expr.target is None or len(expr.args) != 1:
            return None
        self.price(0)
        operand = self.write_value(expr.target)
        if is_dyn(expr.target.type):
            self.emit(f"if {operand}.__class__ is not Optional: raise no_such_overload()")
        self.raises = True
        result = self.let(operand if expr.function == "or" else f"{operand}.item")
        self.open(f"if {operand}.item is MISSING:")
        self.emit(f"{result} = {self.write_value(expr.args[0])}")
        self.close()
        return Code(result, expr.type)

    def conversion(self, expr: Call) -> Code | None:
        """dyn() and conversions of a value to the type that it has."""
        operand = expr.args[0]
        kind = operand.type.kind
        if expr.function != "dyn" and (kind != expr.function or kind not in _IDENTICAL):
            return None
        code = self.write(operand)
        return Code(self.value(code), expr.type)


def compares_itself(expr: Expr) -> bool:
    """Whether a call is one of a function that compares a list's elements with each other."""
    if not isinstance(expr, Call) or len(expr.overloads) != 1:
        return False
    return expr.overloads[0] == "list_distinct" or expr.overloads[0].endswith(("_sort", "_sortByAssociatedKeys"))


def _is_vague(cel_type: Type) -> bool:
    """Whether values may be of other types than a function takes that the checker let pass."""
    return cel_type.kind == "null_type" or is_dyn(cel_type) or any(map(_is_vague, cel_type.params))


_Special = Callable[[CallWriter, Call], Code | None]
_SPECIAL: dict[str, _Special] = {
    "_==_": CallWriter.equality,
    "_!=_": CallWriter.equality,
    **dict.fromkeys(_COMPARISONS, CallWriter.comparison),
    **dict.fromkeys(_ARITHMETIC, CallWriter.arithmetic),
    "!_": CallWriter.negation,
    "-_": CallWriter.negation,
    "@in": CallWriter.membership,
    "size": CallWriter.size,
    "startsWith": CallWriter.affix,
    "endsWith": CallWriter.affix,
    "contains": CallWriter.affix,
    "matches": CallWriter.regex,
    "find": CallWriter.regex,
    "findAll": CallWriter.regex,
    "or": CallWriter.optional_or,
    "orValue": CallWriter.optional_or,
    "dyn": CallWriter.conversion,
    "int": CallWriter.conversion,
    "string": CallWriter.conversion,
    "bool": CallWriter.conversion,
    "double": CallWriter.conversion,
    "bytes": CallWriter.conversion,
}
