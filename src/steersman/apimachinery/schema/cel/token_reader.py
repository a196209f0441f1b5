"""Reading tokens one by one, and what to do when another one was due.

Errors follow ANTLR's default strategy: drop one unexpected token, imagine one missing token, or skip to where parsing
can go on.

Source: cel-go `parser/parser.go`; ANTLR's DefaultErrorStrategy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

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

_AFTER_OPERAND = frozenset(OPERATORS) | {"?", ".", "[", EOF}
_ORDER = {name.strip("'"): index for index, name in enumerate(TOKEN_NAMES)} | {EOF: -1}


class Stop(Exception):
    """Parsing cannot go on."""


class TokenReader:
    """The tokens of an expression, and the issues found so far. `closers` are the brackets that are open."""

    def __init__(self, source: str) -> None:
        self.tokens, self.issues = tokenize(source)
        self.at = 0
        self.closers: list[str] = []
        self.recovering = False

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def advance(self) -> Token:
        token = self.tokens[self.at]
        self.recovering = False
        if token.kind is not EOF:
            self.at += 1
        return token

    def second(self) -> str:
        """The kind of the token after this one."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)].kind

    def syntax_error(self, message: str) -> None:
        if not self.recovering:
            self.issues.append(Issue(self.token.pos, f"Syntax error: {message}"))
        self.recovering = True

    def error(self, pos: int, message: str) -> Expr:
        self.issues.append(Issue(pos, message))
        return Literal(pos, None)

    def expect(self, kind: str, follow: Iterable[str]) -> Token:
        """Take a token of a kind; if another stands there, drop it or go on as if it stood, where that helps.

        `follow` is what may stand after the token.
        """
        if self.token.kind == kind:
            return self.advance()
        shown = expected({kind})
        if self.token.kind is not EOF and self.second() == kind:
            self.syntax_error(f"extraneous input '{self.token.text}' expecting {shown}")
            self.at += 1
            return self.advance()
        if self.token.kind in follow:
            self.syntax_error(f"missing {shown} at '{self.token.text}'")
            return Token(kind, "", self.token.pos)
        self.syntax_error(f"mismatched input '{self.token.text}' expecting {shown}")
        raise Stop

    def operand_expected(self, extra: Iterable[str] = ()) -> bool:
        """Whether an operand can be parsed here, after an unexpected token was dropped if need be."""
        wanted = OPERAND | set(extra)
        if self.token.kind in wanted:
            return True
        problem = "extraneous" if self.second() in wanted and self.token.kind is not EOF else "mismatched"
        self.syntax_error(f"{problem} input '{self.token.text}' expecting {expected(wanted)}")
        if problem == "extraneous":
            self.at += 1
            return True
        while self.token.kind not in _AFTER_OPERAND and self.token.kind not in self.closers:
            self.at += 1
        return False

    def after(self) -> frozenset[str]:
        return _AFTER_OPERAND | frozenset(self.closers)


def expected(kinds: Iterable[str]) -> str:
    """Kinds of tokens as messages list them."""
    ordered = sorted(kinds, key=_ORDER.__getitem__)
    names = [EOF if kind is EOF else TOKEN_NAMES[_ORDER[kind]] for kind in ordered]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
