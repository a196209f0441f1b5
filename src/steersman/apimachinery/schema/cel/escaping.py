"""Field names as identifiers of expressions: `a.b` is `a__dot__b` there.

Source: apiserver `pkg/cel/escaping.go`.
"""

from __future__ import annotations

import re

RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_VALID = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_SPECIAL = re.compile(r"__|[-./]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_UNESCAPES = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_ESCAPED = re.compile(r"__([^_]+)__")


def escape(name: str) -> str | None:
    """The identifier for a field, None when it has none."""
    if name in RESERVED:
        return f"__{name}__"
    if not _VALID.fullmatch(name):
        return None
    return _SPECIAL.sub(lambda match: _ESCAPES[match.group()], name)


def unescape(identifier: str) -> str | None:
    """The field that an identifier stands for, None when it is no escaped name."""
    valid = True

    def original(match: re.Match[str]) -> str:
        nonlocal valid
        word = match[1]
        if word in RESERVED:
            valid = valid and match.group() == identifier
            return word
        valid = valid and word in _UNESCAPES
        return _UNESCAPES.get(word, "")

    text = _ESCAPED.sub(original, identifier)
    return text if valid else None
