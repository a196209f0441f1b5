"""Deep nests, long chains and what grows: all of it ends, with a value or one of CEL's errors."""

from __future__ import annotations

import re
import sys
from random import Random
from typing import Any

import pytest

from steersman.apimachinery.schema.cel import outlines, program
from steersman.apimachinery.schema.cel.errors import CelError, CompileError, CostLimitExceeded
from steersman.apimachinery.schema.cel.program import ProgramError

from .grammar import Grammar
from .recordings import EXPRESSIONS
from .rig import OBJECT, compiled
from .test_laws import attempt

# what stands before and after a core, again and again
NESTS = [
    ("(", "1", ")"), ("[", "", "]"), ("{1: ", "1", "}"), ("dyn(", "1", ")"), ("-(", "self.n", ")"),
    ("!(", "self.b", ")"), ("(", "self.b", " == true)"), ("(", "1", " + self.n)"), ("(", "1", " in [1] ? 1 : 2)"),
    ("self.b ? ", "1", " : 2"), ("self.b ? 1 : ", "2", ""), ("(self.b && ", "true", ")"), ("(self.b || ", "true", ")"),
    ("self.l.all(x, ", "true", ")"), ("self.l.map(x, ", "x", ")"), ("self.?n.optMap(x, ", "x", ")"),
    ("", "self.?n", ".optMap(x, x)"), ("", "self.l", ".map(x, x)"), ("", "self.l", ".sortBy(x, x)"),
    ("", "self.s", ".trim()"), ("", "self", ".a"), ("", "self.l", "[0]"), ("", "self", ".?n"), ("size([", "1", "])"),
    ("self.nums[", "0", "]"), ("optional.none().orValue(", "1", ")"), ("a{b: ", "1", "}"), ("", "1", " + 1"),
    ("", "self.b", " && self.b"), ("", "self.b", " && self.b || self.b"), ("!", "true", ""), ("-", "1", ""),
    ("(", "", ""), ("[", "", ""), ("f(", "", ""), ("'", "", ""), ('"', "", ""), ("\\", "", ""), ("@", "", ""),
    ("1 ", "", ""), ("?", "", ""), ("'''\\", "", ""), ("//", "", ""), ("\n", "foo", ""), ("9", "", ""),
    ("0x", "", "f"), ("1e", "", "9"), ("1.", "", "1"), ("foo && ", "foo", ""), ("has(", "a.b", ")"),
]  # fmt: skip


@pytest.mark.parametrize("count", [100, 248, 1500])
@pytest.mark.parametrize(("before", "core", "after"), NESTS)
def test_deep_nests_and_long_chains(before: str, core: str, after: str, count: int) -> None:
    attempt(before * count + core + after * count)
    # where calls go through C, a thread's stack holds some 5,000
    assert sys.getrecursionlimit() <= 4_800


@pytest.mark.parametrize(
    ("frame", "step"),
    [
        ("['a']{}.size()", ".map(x, x + x)"),
        ("['a']{}.size()", ".map(x, '%s%s'.format([x, x]))"),
        ("['a']{}.size()", ".map(x, [x, x].join('-'))"),
        ("[[1]]{}.size()", ".map(x, x + x)"),
        ("[[1]]{}[0].all(x, x == 1)", ".map(x, x + x)"),
        ("'aaaaaaaa'{}.size()", ".replace('a', 'aa')"),
        ("lists.range(9){}.size()", ".map(x, [x, x]).flatten()"),
    ],
)
def test_what_doubles_seventy_times_is_stopped(frame: str, step: str) -> None:
    result, _ = compiled(frame.format(step * 70)).program().evaluate(OBJECT, OBJECT)
    assert isinstance(result, (CostLimitExceeded, CelError))


@pytest.mark.parametrize(
    "source",
    [
        "lists.range(100000).distinct().size() == 1",
        "sets.contains(lists.range(100000), lists.range(100000))",
        "sets.intersects(lists.range(100000), lists.range(100000))",
        "lists.range(100000).sort() == []",
        "lists.range(2000000).size() == 1",
        "lists.range(3000).all(x, x in lists.range(3000))",
        "lists.range(3000).all(x, lists.range(3000).all(y, x + y >= 0))",
    ],
)
def test_what_would_take_long_is_stopped_before(source: str) -> None:
    result, _ = compiled(source).program().evaluate(OBJECT, OBJECT)
    assert isinstance(result, CostLimitExceeded)


@pytest.mark.parametrize("most", [1, 3])
def test_parts_that_become_functions_of_their_own_change_no_result(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def result_of(source: str) -> str:
        try:
            result, _ = compiled(source).program().evaluate(OBJECT, OBJECT)
        except (CompileError, ProgramError) as error:
            return str(error)
        return f"error: {result}" if isinstance(result, Exception) else re.sub(" at 0x[0-9a-f]+", "", repr(result))

    grammar = Grammar(Random(most))
    sources = EXPRESSIONS.expressions()[most::5] + [grammar.expression(5) for _ in range(200)]
    whole = [result_of(each) for each in sources]
    monkeypatch.setattr(outlines, "_MOST", most)
    assert [result_of(each) for each in sources] == whole


@pytest.mark.parametrize(
    ("before", "term", "join", "after"),
    [
        ("", "self.nums.exists(x, x + {} == 0)", " || ", ""),
        ("", "!self.nums.exists(x, x + {} == 0)", " && ", ""),
        ("[", "self.nums.map(x, x + {})", ", ", "].size() > 0"),
        ("{", "'k{}': self.nums.map(x, x + self.n)", ", ", "}.size() > 0"),
    ],
)
def test_no_function_of_a_long_expression_is_large(
    before: str, term: str, join: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = []

    def measuring(source: str, *args: Any) -> Any:
        lengths.append(len(source))
        return compile(source, *args)

    monkeypatch.setattr(program, "compile", measuring, raising=False)
    source = before + join.join(term.format(index + 100) for index in range(300)) + after
    outcome = compiled(source).program().evaluate(OBJECT, OBJECT)
    assert len(lengths) > 5
    assert max(lengths) < 60_000
    monkeypatch.setattr(outlines, "_MOST", 10**9)
    assert compiled(source).program().evaluate(OBJECT, OBJECT) == outcome
    assert lengths[-1] > 100_000


def test_macros_that_copy_are_bounded() -> None:
    with pytest.raises(Exception, match="expansion of macros exceeds limit: 10000 copied expressions"):
        compiled("self.?n" + ".optMap(x, x)" * 30)
