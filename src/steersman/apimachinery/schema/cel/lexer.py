"""The tokens of an expression.

Source: cel-go `parser/gen/CEL.g4`; ANTLR's lexer for what happens where no token begins.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from steersman.apimachinery.schema.cel.errors import Issue

# in the grammar's order, in which messages list what was expected
TOKEN_NAMES = (
    "'=='",
    "'!='",
    "'in'",
    "'<'",
    "'<='",
    "'>='",
    "'>'",
    "'&&'",
    "'||'",
    "'['",
    "']'",
    "'{'",
    "'}'",
    "'('",
    "')'",
    "'.'",
    "','",
    "'-'",
    "'!'",
    "'?'",
    "':'",
    "'+'",
    "'*'",
    "'/'",
    "'%'",
    "'true'",
    "'false'",
    "'null'",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
    "IDENTIFIER",
    "ESC_IDENTIFIER",
)
EOF = "<EOF>"
KEYWORDS = frozenset({"in", "true", "false", "null"})

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING = (
    rf'"""(?:{_ESCAPE}|[^\\])*?"""|\'\'\'(?:{_ESCAPE}|[^\\])*?\'\'\''
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"|\'(?:{_ESCAPE}|[^\\\'\n\r])*\''
    r"|[rR](?:\"\"\"(?:.|\n)*?\"\"\"|'''(?:.|\n)*?'''|\"[^\"\n\r]*\"|'[^'\n\r]*')"
)
_TOKEN = re.compile(
    r"(?P<skip>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<BYTES>[bB](?:{_STRING}))"
    rf"|(?P<STRING>{_STRING})"
    r"|(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])"
    r"|(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_./ -]+`)"
    r"|(?P<op>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
)
_PARTIAL_ESCAPE = re.compile(r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?")
_BODY = {
    quote: re.compile(rf"(?:{_ESCAPE}|[^\\{quote}\n\r])*") if quote != "r" else re.compile(r"[^\n\r]*")
    for quote in ("'", '"', "r")
}
_PREFIX = re.compile(r"[bB]?[rR]?(?=['\"])")
_BACKTICKED = re.compile(r"`[A-Za-z0-9_./ -]*")


class Token(NamedTuple):
    """A token: `kind` is one of TOKEN_NAMES without quotes, or EOF."""

    kind: str
    text: str
    pos: int


def tokenize(source: str) -> tuple[list[Token], list[Issue]]:
    """The tokens, EOF last, and what could not be made into tokens."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    pos, end = 0, len(source)
    match = _TOKEN.match
    while pos < end:
        found = match(source, pos)
        if found is None:
            stop = min(_dead_end(source, pos) + 1, end)
            issues.append(Issue(pos, f"Syntax error: token recognition error at: '{source[pos:stop]}'"))
            pos = stop
            continue
        kind = found.lastgroup or ""
        text = found.group()
        if kind != "skip":
            if kind == "op" or (kind == "IDENTIFIER" and text in KEYWORDS):
                kind = text
            tokens.append(Token(kind, text, pos))
        pos = found.end()
    tokens.append(Token(EOF, EOF, end))
    return tokens, issues


def _dead_end(source: str, start: int) -> int:
    """Where the longest beginning of a token ends that is none: the index of the first character that does not fit."""
    prefix = _PREFIX.match(source, start)
    if prefix:
        raw = "r" in prefix.group().lower()
        opening = prefix.end()
        body = _BODY["r" if raw else source[opening]].match(source, opening + 1)
        stop = body.end() if body else opening + 1
        if not raw and source[stop : stop + 1] == "\\":
            partial = _PARTIAL_ESCAPE.match(source, stop)
            stop = partial.end() if partial else stop + 1
        return stop
    if source[start] == "`":
        partial = _BACKTICKED.match(source, start)
        return partial.end() if partial else start + 1
    return start + 1 if source[start] in "=&|" else start
