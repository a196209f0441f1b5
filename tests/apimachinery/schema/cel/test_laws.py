"""Whatever stands in an expression: it compiles or not, and evaluates to a value or CEL's own error."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.apimachinery.schema.cel.errors import CelError, CompileError, CostLimitExceeded, EvaluationPanic
from steersman.apimachinery.schema.cel.program import ProgramError, Variable, compile_expression, object_types
from steersman.apimachinery.schema.cel.schema_types import declare
from steersman.apimachinery.schema.structural import read_schema

from ..strategies import json_values
from .grammar import Grammar
from .rig import OBJECT, compile_error, compiled

PIECES = [
    *"()[]{}.,:?!+-*/%<>|&=",
    *("'", '"', "'''", "r'", "b'", "`", "\\", "\n", "//", "==", "&&", "||", "in", "has", "self", "x", "1", "2u", "1e9"),
    *("1.5", "'a'", "true", "null", ".all(", "self.n", "self.l", "map(x, x)", ".?", "[?", "é", "\ud800", "\x00"),
]
ATOMS = ["self.n", "self.d", "self.s", "self.b", "self.l", "self.nums", "self.keyed", "self.m", "self.o", "self.open"]
ATOMS += [
    "self.at",
    "self.took",
    "self.raw",
    "self.port",
    "self.gone",
    "0",
    "1u",
    "-1.5",
    "''",
    "null",
    "[]",
    "{}",
    "x",
]


def _calls(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    operators = st.sampled_from(["+", "-", "*", "/", "%", "==", "<", ">=", "&&", "||", "in"])
    methods = st.sampled_from(["contains", "split", "indexOf", "join", "matches", "orValue", "format", "add", "find"])
    plain = st.sampled_from(["size", "int", "string", "dyn", "type", "double", "quantity", "isIP", "has", "duration"])
    macros = st.sampled_from(["all", "exists", "exists_one", "map", "filter", "sortBy", "transformList"])
    return st.one_of(
        st.builds(lambda op, two: f"({two[0]} {op} {two[1]})", operators, pair),
        st.builds(lambda name, two: f"dyn({two[0]}).{name}({two[1]})", methods, pair),
        st.builds(lambda name, two: f"{two[0]}.{name}({two[1]})", methods, pair),
        st.builds(lambda name, one: f"{name}({one})", plain, inner),
        st.builds(lambda name, two: f"dyn({two[0]}).{name}(x, {two[1]})", macros, pair),
        st.builds(lambda two: f"dyn({two[0]})[{two[1]}]", pair),
        st.builds(lambda two: f"({two[0]} ? {two[1]} : {two[0]})", pair),
        st.builds(lambda two: f"[{two[0]}, dyn({two[1]})]", pair),
        st.builds(lambda two: f"{{dyn({two[0]}): {two[1]}}}", pair),
        st.builds("{}.reverse()".format, inner),
        st.builds("self.?{}".format, st.sampled_from(["n", "gone", "l"])),
    )


expressions = st.recursive(st.sampled_from(ATOMS), _calls, max_leaves=8)


def attempt(source: str) -> None:
    """Compile and evaluate: what is wrong is told by CEL's own errors, and nothing else comes out."""
    try:
        checked = compiled(source)
        low, high = checked.cost()
        program = checked.program()
    except (CompileError, ProgramError):
        return
    assert 0 <= low <= high
    result, cost = program.evaluate(OBJECT, OBJECT)
    assert cost >= 0
    if isinstance(result, Exception):
        assert isinstance(result, (CelError, CostLimitExceeded, EvaluationPanic))
        assert isinstance(result, EvaluationPanic) or "internal error" not in str(result)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=20).map("".join))
def test_any_text(source: str) -> None:
    attempt(source)


@given(expressions)
@settings(max_examples=300, deadline=None)
def test_any_expression(source: str) -> None:
    attempt(source)


@given(st.integers(0, 2**32), st.integers(1, 5))
@settings(max_examples=200, deadline=None)
def test_what_is_well_typed_compiles(seed: int, depth: int) -> None:
    source = Grammar(Random(seed)).expression(depth)
    assert "overload" not in compile_error(source)
    attempt(source)


@given(st.integers(0, 2**32), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_what_is_broken_is_refused_or_runs(seed: int, depth: int) -> None:
    attempt(Grammar(Random(seed)).broken(depth))


SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "c": {"type": "object", "additionalProperties": {"type": "number"}},
        "d": {"x-kubernetes-int-or-string": True},
    },
}
RULES = [
    "self.a > 0 && self.b.all(x, x != 'a') && self.c.all(k, self.c[k] > 0.5) && self.d == 1",
    "self == oldSelf || self.b == oldSelf.b || self.b + oldSelf.b != []",
    "self.b.map(x, x).sort() == [] ? self.c == oldSelf.c : dyn(self.a) != self.d",
    "has(self.a) && size(self.b) > 1 || 'x' in self.c || self.?b[?0].orValue('') == 'a'",
]


def _programs() -> list[Any]:
    decl = declare(read_schema(SCHEMA))
    assert decl.type is not None
    variables = (Variable("self", decl.type, decl), Variable("oldSelf", decl.type, decl))
    return [compile_expression(rule, variables, object_types(decl)).program() for rule in RULES]


PROGRAMS = _programs()
data = st.dictionaries(st.sampled_from("abcd"), json_values, max_size=4)


@given(data, data)
def test_any_data_even_of_a_wrong_type(new: dict[str, Any], old: dict[str, Any]) -> None:
    for program in PROGRAMS:
        result, _ = program.evaluate(new, old)
        assert isinstance(result, (bool, CelError, EvaluationPanic))
