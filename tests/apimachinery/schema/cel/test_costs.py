"""What expressions cost: by estimate, and when they run."""

import pytest

from steersman.apimachinery.schema.cel.costs import CALL_LIMIT
from steersman.apimachinery.schema.cel.errors import CostLimitExceeded
from steersman.apimachinery.schema.cel.program import compile_expression

from .rig import OBJECT, compile_error, compiled, declared


@pytest.mark.parametrize(
    ("source", "low", "high", "spent"),
    [
        ("true", 0, 0, 0),
        ("self.n == 7", 2, 2, 3),
        ("self.n + 1 > self.n", 6, 6, 6),
        ("self.b && self.n > 0", 2, 5, 5),
        ("self.b ? self.n : self.n + 1", 4, 5, 3),
        ("self.s == 'Gear'", 3, 3, 3),
        ("self.s.startsWith('Ge')", 3, 3, 3),
        ("self.s.contains('e')", 2, 10, 3),
        ("self.s + self.s", 4, 20, 5),
        ("self.s.matches('^G[a-z]+$')", 5, 29, 5),
        ("self.l.all(x, x == 'a' || true)", 3, 53, 18),
        ("self.l.map(x, x)", 13, 143, 42),
        ("self.keyed.exists(e, e.k == 'two')", 3, 73, 17),
        ("'a' in self.l", 2, 12, 5),
        ("has(self.gone)", 1, 1, 1),
        ("[1, 2].size()", 11, 11, 1),
        ("{1: 2}.size()", 31, 31, 1),
        ("self.s.lowerAscii()", 2, 10, 3),
        ("self.nums.sum()", 2, 12, 5),
    ],
)
def test_costs(source: str, low: int, high: int, spent: int) -> None:
    checked = compiled(source)
    assert (*checked.cost(), checked.program().evaluate(OBJECT, OBJECT)[1]) == (low, high, spent)


def test_unbounded_strings_and_lists_have_estimates_by_request_size() -> None:
    assert compiled("self.open.x == 1 && self.gone.contains('x')").cost().high == 13
    variables, objects = declared({"s": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}})
    assert compile_expression("self.s.contains('x')", variables, objects).cost().high == 314_575
    assert compile_expression("self.l.all(x, x == 'a')", variables, objects).cost().high > 5_000_000


def test_evaluation_stops_at_the_limit() -> None:
    program = compiled("lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))").program()
    result, cost = program.evaluate(OBJECT, OBJECT)
    assert isinstance(result, CostLimitExceeded)
    assert CALL_LIMIT < cost < CALL_LIMIT + 10


def test_absorbing_operators_do_not_absorb_the_limit() -> None:
    program = compiled("true || lists.range(100).all(x, true)").program()
    assert program.evaluate(OBJECT, OBJECT, limit=10)[0] is True
    program = compiled("lists.range(100).all(x, x >= 0) || true").program()
    assert isinstance(program.evaluate(OBJECT, OBJECT, limit=10)[0], CostLimitExceeded)


def test_names_of_macros_hide_nothing() -> None:
    assert compile_error("[1].all(x, true) && x == 1").startswith("ERROR: <input>:1:21: undeclared reference to 'x'")
