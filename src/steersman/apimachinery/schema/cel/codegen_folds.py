"""Folds (what macros expand to) as Python loops.

An error in one round does not end `all` and `exists`: another round may decide. It does not end the other folds
either, which go on counting their cost; which of several errors they report is upstream's choice.

Source: cel-go `interpreter/interpretable.go` (evalFold), `parser/macro.go`.
"""

from __future__ import annotations

from functools import partial

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.ast import Call, Comprehension, Expr, Ident, ListExpr, MapExpr, walk
from steersman.apimachinery.schema.cel.codegen import CONTAINERS
from steersman.apimachinery.schema.cel.codegen_calls import CallWriter, compares_itself
from steersman.apimachinery.schema.cel.codegen_containers import LIST_COST
from steersman.apimachinery.schema.cel.constants import is_constant
from steersman.apimachinery.schema.cel.costs import CALL_LIMIT
from steersman.apimachinery.schema.cel.schema_types import Decl
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.writer import Captured, Code, Round

_CLASSES = {
    "int": "int",
    "string": "str",
    "bool": "bool",
    "double": "float",
    "object": "dict",
    "map": "dict",
    "list": "list",
}
# what the condition and the accumulator cost in each round
_ROUND = {"all": 3, "exists": 4}


class FoldWriter(CallWriter):
    """Adds folds."""

    def fold(self, expr: Comprehension) -> Code:
        if expr.is_binding:
            return self.binding(expr)
        step = expr.step
        assert isinstance(step, Call)
        if step.function in ("_&&_", "_||_"):
            return self.quantifier(expr, step)
        if isinstance(expr.result, Call):
            return self.exactly_one(expr, step)
        return self.transformation(expr, step)

    def binding(self, expr: Comprehension) -> Code:
        """A variable that is computed once, if it is used at all."""
        if not any(isinstance(node, Ident) and node.name == expr.accumulator for node in walk(expr.result)):
            return self.write(expr.result)
        if compares_itself(expr.result):
            (name,) = self.list_arguments([expr.initial])
            return self.within({expr.accumulator: Code(name, expr.initial.type)}, expr.result)
        code = self.write(expr.initial)
        name = self.let(code.text, "x")
        return self.within({expr.accumulator: code._replace(text=name)}, expr.result)

    def within(self, names: dict[str, Code], expr: Expr) -> Code:
        outer = self.scope
        self.scope = {**outer, **names}
        code = self.write(expr)
        self.scope = outer
        return code

    # -- the loop

    def loop(self, expr: Comprehension) -> tuple[str, dict[str, Code], list[str]]:
        """The loop's header, the iteration variables, and lines that convert data at the start of each round."""
        source = self.write(expr.source)
        first, second = self.name("x"), self.name("x")
        decl = source.decl
        kinds = self.variable_types(expr)
        if decl is None or decl.element is None:
            self.raises = True
            if expr.var2:
                return (
                    f"for {first}, {second} in pairs_of({self.value(source)}):",
                    {expr.var: Code(first, kinds[0]), expr.var2: Code(second, kinds[1])},
                    [],
                )
            return f"for {first} in items_of({self.value(source)}):", {expr.var: Code(first, kinds[0])}, []
        if not expr.var2:
            if decl.kind == "map":
                return f"for {first} in {source.text}:", {expr.var: Code(first, t.STRING)}, []
            item, lines = self.element(first, decl.element, kinds[0])
            return f"for {first} in {source.text}:", {expr.var: item}, lines
        item, lines = self.element(second, decl.element, kinds[1])
        pairs = f"enumerate({source.text})" if decl.kind == "list" else f"{source.text}.items()"
        return f"for {first}, {second} in {pairs}:", {expr.var: Code(first, kinds[0]), expr.var2: item}, lines

    def variable_types(self, expr: Comprehension) -> tuple[Type, Type]:
        source = expr.source.type
        if source.kind == "list":
            element = source.params[0]
            return (t.INT, element) if expr.var2 else (element, element)
        if source.kind == "map":
            return source.params[0], source.params[1]
        return t.DYN, t.DYN

    def element(self, name: str, decl: Decl, cel_type: Type) -> tuple[Code, list[str]]:
        """An element of data with a schema."""
        constant = self.constant(decl, "D")
        wanted = _CLASSES.get(decl.kind)
        if wanted is None or decl.nullable:
            return Code(name, cel_type), [f"{name} = convert({constant}, {name})"]
        check = f"if {name}.__class__ is not {wanted}: {name} = convert({constant}, {name})"
        if decl.kind == "object":
            self.items.add(name)
        return Code(name, cel_type, decl if decl.kind in CONTAINERS else None), [check]

    def round(self, names: dict[str, Code], expr: Expr) -> Captured:
        """One round's condition, generated aside for the place inside of loop and try."""
        self.flush()
        outer = self.scope
        self.scope = {**outer, **names}
        self.indent += 2
        self.blocks += 1
        self.rounds.append(Round(frozenset(code.text for code in names.values()), {}))
        captured = self.capture(partial(self.write_bool, expr))
        for read, name in self.rounds.pop().reads.items():
            self.lines.append((self.indent - 2, f"{name} = {read}"))
        self.blocks -= 1
        self.indent -= 2
        self.scope = outer
        return captured

    def begin(self, header: str, lines: list[str], units: int) -> None:
        self.open(header, counts=True)
        self.charge(units)
        self.flush()
        self.emit("try:")
        self.lines += [(self.indent + 1, line) for line in lines]

    def end(self, handler: str) -> None:
        self.emit("except ERRORS as x:")
        self.emit(f"    {handler}")
        self.emit(f"if c > {CALL_LIMIT}: raise CostLimitExceeded()")
        self.close(counts=True)

    # -- kinds of folds

    def quantifier(self, expr: Comprehension, step: Call) -> Code:
        every = step.function == "_&&_"
        header, names, lines = self.loop(expr)
        variables, _, source = header.removeprefix("for ").removesuffix(":").partition(" in ")
        rounds, result, error = self.let(f"iter({source})", "i"), self.name(), self.name("e")
        captured = self.round(names, step.args[1])
        units = _ROUND["all" if every else "exists"]
        self.emit(f"{result}, {error} = {every}, None")
        self.begin(f"for {variables} in {rounds}:", lines, units)
        self.place(captured)
        level = self.indent + 1
        test = f"not {captured.code.text}" if every else captured.code.text
        self.lines += [
            (level, f"if {test}:"),
            (level + 1, f"{result} = {not every}"),
            # upstream asks its condition once more if a round is left
            (level + 1, f"if next({rounds}, MISSING) is not MISSING: c += {units - 1}"),
            (level + 1, "break"),
        ]
        self.end(f"{error} = {error} or x")
        self.charge(1)
        self.emit(f"if {error} and {result if every else f'not {result}'}: raise {error}")
        self.raises = True
        return Code(result, t.BOOL)

    def exactly_one(self, expr: Comprehension, step: Call) -> Code:
        header, names, lines = self.loop(expr)
        count, error = self.name(), self.name("e")
        captured = self.round(names, step.args[0])
        self.emit(f"{count}, {error} = 0, None")
        self.begin(header, lines, 0)
        self.place(captured)
        self.lines += [
            (self.indent + 1, f"if {captured.code.text}:"),
            (self.indent + 2, f"{count} += 1"),
            (self.indent + 2, "c += 2"),
        ]
        self.end(f"{error} = x")
        self.charge(2)
        self.emit(f"if {error}: raise {error}")
        self.raises = True
        return Code(f"({count} == 1)", t.BOOL)

    def transformation(self, expr: Comprehension, step: Call) -> Code:
        """map, filter, transformList, transformMap and transformMapEntry."""
        header, names, lines = self.loop(expr)
        condition: Captured | None = None
        if step.function == "_?_:_":
            condition = self.round(names, step.args[0])
            inner = step.args[1]
            assert isinstance(inner, Call)
            step = inner
        result, error, judging = self.name(), self.name("e"), self.name()
        self.emit(f"{result} = {'{}' if isinstance(expr.initial, MapExpr) else '[]'}")
        self.emit(f"{error} = None")
        self.begin(header, lines, 0)
        self.indent += 1
        self.blocks += 1
        if condition is not None:
            self.emit(f"{judging} = True")
            self.place(condition)
            self.emit(f"{judging} = False")
            self.open(f"if {condition.code.text}:")
        self.append(result, step, names)
        if condition is not None:
            self.close()
        self.flush()
        self.indent -= 1
        self.blocks -= 1
        # an error of the condition replaces the one before, others do not
        replaces = "" if condition is None else f" if {judging} or not {error} else {error}"
        self.end(f"{error} = {error} or x" if condition is None else f"{error} = x{replaces}")
        self.charge(1)
        self.emit(f"if {error}: raise {error}")
        self.raises = True
        return Code(result, expr.type)

    def append(self, result: str, step: Call, names: dict[str, Code]) -> None:
        """Add a round's outcome to the accumulator."""
        outer = self.scope
        self.scope = {**outer, **names}
        self.charge(2)
        if step.function == "_+_":
            element = step.args[1]
            assert isinstance(element, ListExpr)
            text = self.write_value(element.elements[0])
            self.charge(0 if is_constant(element) else LIST_COST)
            self.emit(f"{result}.append({text})")
        elif len(step.args) == 3:
            key = step.args[1]
            assert isinstance(key, Ident)
            self.charge(1)
            text = self.write_value(step.args[2])
            self.emit(f"insert_key({result}, {self.scope[key.name].text}, {text})")
        else:
            text = self.write_value(step.args[1])
            self.emit(f"insert_all({result}, {text})")
        self.scope = outer
