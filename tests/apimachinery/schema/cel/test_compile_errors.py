"""What is said about expressions that do not compile."""

import pytest

from steersman.apimachinery.schema.cel.program import ProgramError

from .rig import compile_error, compiled

ONE_ISSUE = [
    ("self.n >", 9, "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', "
     "'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"),
    ("self.n 1", 8, "Syntax error: extraneous input '1' expecting <EOF>"),
    ("(self.b", 8, "Syntax error: missing ')' at '<EOF>'"),
    ("self.", 6, "Syntax error: no viable alternative at input '.'"),
    ("self.b ? 1", 11, "Syntax error: mismatched input '<EOF>' expecting ':'"),
    ("nothing == 1", 1, "undeclared reference to 'nothing' (in container '')"),
    ("self.nothing == 1", 5, "undefined field 'nothing'"),
    ("self.n == 'a'", 8, "found no matching overload for '_==_' applied to '(int, string)'"),
    ("self.n + 1.0 > 0", 8, "found no matching overload for '_+_' applied to '(int, double)'"),
    ("self.s.size(1) > 0", 12, "found no matching overload for 'size' applied to 'string.(int)'"),
    ("foo(1)", 4, "undeclared reference to 'foo' (in container '')"),
    ("[1, 'a'] == []", 5, "expected type 'int' but found 'string'"),
    ("self.n ? true : false", 8, "found no matching overload for '_?_:_' applied to '(int, bool, bool)'"),
    ("self.n.x == 1", 7, "type 'int' does not support field selection"),
    ("self.l.all(x.y, true)", 13, "argument must be a simple name"),
    ("has(self)", 5, "invalid argument to has() macro"),
    ("self.n.all(x, true)", 5, "expression of type 'int' cannot be range of a comprehension "
     "(must be list, map, or dynamic)"),
    ("while", 1, "reserved identifier: while"),
    ("9223372036854775808", 1, "invalid int literal"),
    ("'\\q' == ''", 1, "Syntax error: token recognition error at: ''\\q'"),
    ("'a'.matches('(')", 13, "invalid matches argument"),
    ("duration('x') == self.took", 10, "invalid duration argument"),
    ("math.abs(1) == 1", 9, "undeclared reference to 'abs' (in container '')"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "column", "message"), ONE_ISSUE)
def test_place_and_message(source: str, column: int, message: str) -> None:
    expected = f"ERROR: <input>:1:{column}: {message}\n | {source}\n | {'.' * (column - 1)}^"
    assert expected in compile_error(source)


def test_several_lines_and_wide_characters() -> None:
    assert compile_error("true &&\n\tfoo") == (
        "ERROR: <input>:2:2: undeclared reference to 'foo' (in container '')\n |  foo\n | .^"
    )
    assert compile_error("'é' == foo") == (
        "ERROR: <input>:1:8: undeclared reference to 'foo' (in container '')\n | 'é' == foo\n | .．.....^"
    )


def test_all_type_errors_are_reported_in_order_of_place() -> None:
    found = compile_error("foo == 1 && self.zz == bar").split("ERROR: ")[1:]
    assert [each.split(" (")[0].split("\n")[0] for each in found] == [
        "<input>:1:1: undeclared reference to 'foo'",
        "<input>:1:17: undefined field 'zz'",
        "<input>:1:24: undeclared reference to 'bar'",
    ]


@pytest.mark.parametrize("opening", ["(", "[", "-", "!", "{1:", "self.n == 1 ? 1 : "])
def test_nesting_is_bounded(opening: str) -> None:
    closing = {"(": ")", "[": "]", "{1:": "}"}.get(opening, "")
    assert "recursion" not in compile_error(opening * 20 + "1" + closing * 20)
    assert compile_error(opening * 20_000 + "1" + closing * 20_000)


def test_size_is_bounded() -> None:
    size = 100_001
    assert f"expression code point size exceeds limit: size: {size}, limit 100000" in compile_error("1" * size)


def test_constants_that_never_evaluate() -> None:
    with pytest.raises(ProgramError, match="type conversion error from 'string' to 'int'"):
        compiled("int('x') == 1").program()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("self.n", "int"),
        ("self.l", "list(string)"),
        ("self.m", "map(string, string)"),
        ("self.?n", "optional_type(int)"),
        ("dyn(1)", "dyn"),
        ("self.keyed.map(e, e.v)", "list(int)"),
        ("self.port", "dyn"),
        ("quantity('1')", "kubernetes.Quantity"),
        ("[1, 2].transformMap(i, v, string(v))", "map(int, string)"),
    ],
)
def test_types(source: str, found: str) -> None:
    assert str(compiled(source).type) == found


@pytest.mark.parametrize(
    ("source", "issues"),
    [
        ("(self.n > 1 and true)", ["13: mismatched input 'and' expecting ')'"]),
        ("(1 self.n) + (2", ["4: mismatched input 'self' expecting ')'", "10: mismatched input ')' expecting <EOF>"]),
        ("((self.b", ["9: mismatched input '<EOF>' expecting ')'"]),
        ("[1,", ["4: missing ']' at '<EOF>'"]),
        ("self.b ? 1 : : 2", ["14: extraneous input ':' expecting"]),
        ("[1 2] == []", ["4: extraneous input '2' expecting {']', ','}"]),
        ("{'a' 1} == {}", ["6: missing ':' at '1'"]),
        ("self.true", ["6: mismatched input 'true' expecting IDENTIFIER"]),
        ("has(self.)", ["5: invalid argument to has() macro", "10: no viable alternative at input '.)'"]),
        ("self. * 2", ["7: no viable alternative at input '. *'"]),
        ("self.n & 1", ["8: token recognition error at: '& '", "10: extraneous input '1' expecting <EOF>"]),
        ("-", ["2: no viable alternative at input '-'", "2: mismatched input '<EOF>' expecting"]),
        ("!", ["2: extraneous input '<EOF>' expecting"]),
        ("!-true", ["3: mismatched input 'true' expecting IDENTIFIER"]),
        ("self.l.map(x y)", ["14: extraneous input 'y' expecting ')'"]),
        ("f(,)", ["3: extraneous input ',' expecting"]),
        ("while + 1 == foo +", ["1: reserved identifier: while", "19: mismatched input '<EOF>' expecting"]),
    ],
)  # fmt: skip
def test_parsing_goes_on_after_a_syntax_error(source: str, issues: list[str]) -> None:
    texts = compile_error(source).split("ERROR: <input>:1:")[1:]
    found = [text.split("\n")[0].replace("Syntax error: ", "") for text in texts]
    assert len(found) == len(issues), found
    assert all(text.startswith(issue) for text, issue in zip(found, issues, strict=True)), found


def test_attempts_to_go_on_are_bounded() -> None:
    assert "error recovery attempt limit exceeded: 30" in compile_error("f(1 2) + " * 40 + "1")
    assert "error recovery token lookahead limit exceeded: 256" in compile_error("1 " * 300)
