"""Reading tokens one by one, and what to do when another one was due.

Errors follow ANTLR's default strategy: drop one unexpected token, imagine one missing token, or skip to where parsing
can go on.

Source: cel-go `parser/parser.go`; ANTLR's DefaultErrorStrategy.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Final, NamedTuple

from steersman.apimachinery.schema.cel.ast import Expr, Literal
from steersman.apimachinery.schema.cel.errors import Issue
from steersman.apimachinery.schema.cel.lexer import EOF, TOKEN_NAMES, Token, tokenize

OPERATORS: Final = {
    "||": (1, "_||_"),
    "&&": (2, "_&&_"),
    "<": (3, "_<_"),
    "<=": (3, "_<=_"),
    ">=": (3, "_>=_"),
    ">": (3, "_>_"),
    "==": (3, "_==_"),
    "!=": (3, "_!=_"),
    "in": (3, "@in"),
    "+": (4, "_+_"),
    "-": (4, "_-_"),
    "*": (5, "_*_"),
    "/": (5, "_/_"),
    "%": (5, "_%_"),
}
"""Binary operators: how tightly they bind, and their functions."""
LITERALS: Final = frozenset({"NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "true", "false", "null"})
OPERAND: Final = LITERALS | {"[", "{", "(", ".", "-", "!", "IDENTIFIER"}
"""What an operand begins with."""

RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
"""Names that cannot be used for variables and functions."""

_MAX_ATTEMPTS: Final = 30
_MAX_SKIPPED: Final = 256
_UNKNOWN: Final = "Syntax error: token recognition error at: '"
_POSTFIX: Final = frozenset({".", "["})
_ORDER = {name.strip("'"): index for index, name in enumerate(TOKEN_NAMES)} | {EOF: -1}


class Stop(Exception):
    """Parsing cannot go on."""


class Mismatch(Exception):
    """What is being parsed breaks off here; the error is reported. Whoever parses it skips to what may follow."""


class _Level(NamedTuple):
    """An expression that is being parsed inside of something.

    `follow` is what may stand after it, `question` whether `?` may; `operators` and `postfix` say whether what is
    around it may be followed by an operator, or by a field or index.
    """

    follow: tuple[str, ...]
    question: bool
    operators: bool
    postfix: bool


class TokenReader:
    """The tokens of an expression, and the issues found so far."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens, self.issues = tokenize(source)
        self.at = 0
        self.levels = [_Level((EOF,), True, False, False)]
        self.recovering = False
        self._failed: set[str] = set()
        self._failed_at = -1
        self._attempts = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def advance(self) -> Token:
        token = self.tokens[self.at]
        self.matched()
        if token.kind is not EOF:
            self.at += 1
        return token

    def matched(self) -> None:
        """A token was as expected: errors are reported again."""
        if self.recovering or self._failed:
            self.recovering = False
            self._failed = set()
            self._failed_at = -1

    def second(self) -> str:
        """The kind of the token after this one."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)].kind

    # -- what may follow

    def enter(self, *follow: str, question: bool = True, operators: bool = True, postfix: bool = True) -> None:
        """From here on an expression is parsed that `follow` may stand after."""
        self.levels.append(_Level(follow, question, operators, postfix))

    def leave(self) -> None:
        self.levels.pop()

    def after_bracket(self) -> set[str]:
        """What may stand after an operand, or an index or call."""
        level = self.levels[-1]
        return {*OPERATORS, *_POSTFIX, *level.follow, *(("?",) if level.question else ())}

    def restart(self, *, operators: bool, postfix: bool) -> set[str]:
        """Where parsing goes on after an error."""
        out = {EOF}
        for level in reversed(self.levels):
            if operators:
                out.update(OPERATORS)
                if level.question:
                    out.add("?")
            if postfix:
                out |= _POSTFIX
            out.update(level.follow)
            operators, postfix = level.operators, level.postfix
        return out

    def recover(self, place: str, *, operators: bool = True, postfix: bool = False) -> None:
        """Skip to where parsing goes on; `place` tells apart what was being parsed."""
        self._attempt()
        before = self.at
        if self._failed_at == self.at and place in self._failed and self.token.kind is not EOF:
            self.at += 1
        self._failed_at = self.at
        self._failed.add(place)
        self.skip_to(self.restart(operators=operators, postfix=postfix))
        if self.at - before > _MAX_SKIPPED:
            self.issues.append(Issue(-1, f"error recovery token lookahead limit exceeded: {_MAX_SKIPPED}"))
            raise Stop

    def _attempt(self) -> None:
        if self._attempts == _MAX_ATTEMPTS:
            message = f"Syntax error: error recovery attempt limit exceeded: {_MAX_ATTEMPTS}"
            self.issues.append(Issue(self.token.pos, message))
            raise Stop
        self._attempts += 1

    def skip_to(self, kinds: Set[str]) -> None:
        while self.token.kind not in kinds and self.token.kind is not EOF:
            self.at += 1

    # -- errors

    def syntax_error(self, message: str) -> None:
        if not self.recovering:
            self.issues.append(Issue(self.token.pos, f"Syntax error: {message}"))
        self.recovering = True

    def error(self, pos: int, message: str) -> Expr:
        self.issues.append(Issue(pos, message))
        return Literal(pos, None)

    def no_alternative(self, last: int) -> Mismatch:
        """No rule begins with the tokens from this one to the one at `last`."""
        if not self.recovering:
            last = min(last, len(self.tokens) - 1)
            text = self._text(self.at, last)
            message = f"no viable alternative at input '{text}'"
            if text[1:] in ("true", "false", "null"):
                message = f"mismatched input '{text[1:]}' expecting IDENTIFIER"
            self.issues.append(Issue(self.tokens[last].pos, f"Syntax error: {message}"))
        self.recovering = True
        return Mismatch()

    def _text(self, first: int, last: int) -> str:
        """The source from one token to another, without what is no token, on one line."""
        unknown = {
            issue.offset + at
            for issue in self.issues
            for at in range(len(issue.message.partition(_UNKNOWN)[2].replace("\\n", "\n")) - 1)
        }
        text = ""
        end = self.tokens[first].pos
        for token in self.tokens[first : last + 1]:
            text += "".join(self.source[at] for at in range(end, token.pos) if at not in unknown)
            if token.kind is not EOF:
                text += token.text
            end = token.pos + len(token.text)
        return on_one_line(text)

    def expect(self, kind: str, follow: Iterable[str]) -> Token:
        """Take a token of a kind; if another stands there, drop it or go on as if it stood, where that helps.

        `follow` is what may stand after the token.
        """
        if self.token.kind == kind:
            return self.advance()
        self._attempt()
        if self._drop({kind}):
            return self.advance()
        if self.token.kind in follow:
            self.syntax_error(f"missing {expected({kind})} at '{on_one_line(self.token.text)}'")
            return Token(kind, "", self.token.pos)
        raise self.mismatch({kind})

    def _drop(self, wanted: Set[str]) -> bool:
        """Drop an unexpected token that stands before an expected one."""
        if self.token.kind is EOF or self.second() not in wanted:
            return False
        self.syntax_error(f"extraneous input '{on_one_line(self.token.text)}' expecting {expected(wanted)}")
        self.at += 1
        self.matched()
        return True

    def mismatch(self, wanted: Iterable[str]) -> Mismatch:
        self.syntax_error(f"mismatched input '{on_one_line(self.token.text)}' expecting {expected(wanted)}")
        return Mismatch()

    def require(self, wanted: Set[str]) -> None:
        """See that one of several tokens stands here, after an unexpected one was dropped if need be."""
        if self.token.kind not in wanted and (self.recovering or not self._drop(wanted)):
            raise self.mismatch(wanted)


def is_syntax_error(issue: Issue) -> bool:
    """Whether an issue is about the grammar, not about what a well-formed text says."""
    return issue.message.startswith("Syntax error")


def on_one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def expected(kinds: Iterable[str]) -> str:
    """Kinds of tokens as messages list them."""
    ordered = sorted(kinds, key=_ORDER.__getitem__)
    names = [EOF if kind is EOF else TOKEN_NAMES[_ORDER[kind]] for kind in ordered]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
