"""Field selectors: `metadata.name=a,status.phase!=Running`, over whatever reads a field of an object.

Source: apimachinery `pkg/fields/selector.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steersman._util.dataclass import dataclass
from steersman.apimachinery.selectors import SelectorError

FieldGetter = Callable[[str], str]
"""The text of a field of one object; "" for a field that it lacks."""

Transform = Callable[[str, str], tuple[str, str]]
"""Renames a field (or refuses it with SelectorError); ("", "") drops the term."""


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: the field equals the value, or, if `negated`, it does not."""

    field: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.field}{'!=' if self.negated else '='}{escape_value(self.value)}"


class FieldSelector:
    """All of its terms must hold; without any it selects everything. `str` gives the canonical text."""

    __slots__ = ("terms",)

    def __init__(self, terms: Sequence[Term] = ()) -> None:
        self.terms = tuple(terms)

    def matches(self, get: FieldGetter) -> bool:
        """Whether an object whose fields `get` reads is selected."""
        return all((get(term.field) == term.value) != term.negated for term in self.terms)

    def exact(self, field: str) -> str | None:
        """The only value that it allows for the field, if it demands one."""
        return next((term.value for term in self.terms if term.field == field and not term.negated), None)

    def transform(self, rename: Transform) -> FieldSelector:
        """The selector over the fields that `rename` gives; its SelectorError passes through."""
        renamed = [(rename(term.field, term.value), term.negated) for term in self.terms]
        return FieldSelector([Term(field, value, negated) for (field, value), negated in renamed if field or value])

    def __bool__(self) -> bool:
        """Whether it restricts anything."""
        return bool(self.terms)

    def __str__(self) -> str:
        return ",".join(str(term) for term in self.terms)

    def __eq__(self, other: object) -> bool:
        return self.terms == other.terms if isinstance(other, FieldSelector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.terms)


EVERYTHING = FieldSelector()


def escape_value(value: str) -> str:
    """The value with backslashes before what would end it."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def parse(text: str) -> FieldSelector:
    """The selector that `text` writes; SelectorError with upstream's words otherwise."""
    return FieldSelector([_term(part, text) for part in sorted(_split(text)) if part])


def _split(text: str) -> list[str]:
    """The terms between commas that no backslash escapes."""
    parts: list[str] = []
    start = 0
    escaped = False
    for index, ch in enumerate(text):
        if escaped:
            escaped = False
        elif ch == "\\":
            escaped = True
        elif ch == ",":
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return parts


def _term(part: str, text: str) -> Term:
    for index, ch in enumerate(part):
        if ch == "!" and part[index + 1 : index + 2] == "=":
            return Term(part[:index], _unescape(part[index + 2 :]), True)
        if ch == "=":
            value = part[index + 2 :] if part[index + 1 : index + 2] == "=" else part[index + 1 :]
            return Term(part[:index], _unescape(value))
    raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")


def _unescape(value: str) -> str:
    out: list[str] = []
    escaped = False
    for ch in value:
        if escaped:
            if ch not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{ch}")
            out.append(ch)
            escaped = False
        elif ch == "\\":
            escaped = True
        elif ch in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(ch)}")
        else:
            out.append(ch)
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(out)
