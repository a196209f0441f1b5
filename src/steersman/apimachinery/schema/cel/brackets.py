"""What stands in brackets: arguments, indexes, lists, maps and messages.

Source: cel-go `parser/parser.go`, `parser/gen/CEL.g4`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Set
from typing import Final

from steersman.apimachinery.schema.cel.ast import Entry, Expr, ListExpr, MapExpr, Message
from steersman.apimachinery.schema.cel.token_reader import OPERAND, Mismatch, TokenReader, is_syntax_error

FIELD: Final = frozenset({"IDENTIFIER", "ESC_IDENTIFIER"})
_ELEMENT = OPERAND | {"?"}


class Brackets(TokenReader):
    """A parser of what stands in brackets. Each method begins after the opening bracket."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.heights: dict[Expr, int] = {}

    @abstractmethod
    def expression(self) -> Expr: ...

    def node(self, expr: Expr, *below: Expr, own: int = 1) -> Expr:
        """Remember how deeply a node nests."""
        heights = self.heights
        height = own
        for child in below:
            height = max(height, own + heights.get(child, 0))
        if height:
            heights[expr] = height
        return expr

    def within(self, *follow: str, postfix: bool = True) -> Expr:
        """An expression that `follow` may stand after."""
        self.enter(*follow, postfix=postfix)
        expr = self.expression()
        self.leave()
        return expr

    def take(self, kind: str) -> bool:
        if self.token.kind == kind:
            self.advance()
            return True
        return False

    def arguments(self, *, postfix: bool) -> tuple[list[Expr], bool]:
        """Arguments, and whether they are complete: otherwise parsing goes on after the call's operand."""
        args: list[Expr] = []
        try:
            self.require(OPERAND | {")"})
            if self.token.kind != ")":
                self.enter(")", ",", postfix=postfix)
                args.append(self.expression())
                while self.take(","):
                    args.append(self.expression())
                self.leave()
            self.expect(")", self.after_bracket())
        except Mismatch:
            return args, False
        return args, True

    def more(self, first: Set[str]) -> bool:
        """Between elements: whether another one, beginning with one of `first`, follows."""
        if self.token.kind == "," and self.second() in first:
            self.advance()
            return True
        return False

    def close(self, closer: str) -> None:
        """The end of a list, map or message, after an optional comma."""
        if not self.recovering:
            self.require({closer, ","})
        self.take(",")
        self.expect(closer, self.after_bracket())

    def list_of(self, opening: int) -> Expr:
        elements: list[Expr] = []
        optional: set[int] = set()
        try:
            self.require(OPERAND | {"]", ",", "?"})
            if self.token.kind not in ("]", ","):
                self.elements(elements, optional)
            self.close("]")
        except Mismatch:
            self.recover("list", postfix=True)
        return self.node(ListExpr(opening, elements, frozenset(optional)), *elements, own=0)

    def elements(self, elements: list[Expr], optional: set[int]) -> None:
        while not elements or self.more(_ELEMENT):
            if self.take("?"):
                optional.add(len(elements))
            elements.append(self.within("]", ","))

    def map_of(self, opening: int) -> Expr:
        entries: list[Entry] = []
        try:
            self.require(OPERAND | {"}", ",", "?"})
            if self.token.kind not in ("}", ","):
                self.entries(entries)
            self.close("}")
        except Mismatch:
            self.recover("map", postfix=True)
        below = [each for entry in entries for each in (entry.key, entry.value) if isinstance(each, Expr)]
        return self.node(MapExpr(opening, entries), *below, own=0)

    def entries(self, entries: list[Entry]) -> None:
        self.enter("}", ",")
        try:
            while not entries or self.more(_ELEMENT):
                optional = self.take("?")
                found = len(self.issues)
                self.enter(":", operators=False, postfix=False)
                key = self.expression()
                self.leave()
                try:
                    position = self.expect(":", OPERAND).pos
                except Mismatch:
                    # upstream looks at the keys only of entries that are complete
                    self.issues[found:] = [each for each in self.issues[found:] if is_syntax_error(each)]
                    raise
                entries.append(Entry(position, key, self.expression(), optional=optional))
        except Mismatch:
            self.recover("entries", operators=False)
        self.leave()

    def message(self, name: str, opening: int) -> Expr:
        fields: list[Entry] = []
        try:
            self.require(FIELD | {"}", ",", "?"})
            if self.token.kind not in ("}", ","):
                self.fields(fields)
            self.close("}")
        except Mismatch:
            self.recover("message", postfix=True)
        return self.node(Message(opening, name, fields), *[field.value for field in fields], own=0)

    def fields(self, fields: list[Entry]) -> None:
        self.enter("}", ",")
        try:
            while not fields or self.more(FIELD | {"?"}):
                optional, name = self.field_name()
                position = self.expect(":", OPERAND).pos
                if isinstance(name, str):
                    fields.append(Entry(position, name, self.expression(), optional=optional))
        except Mismatch:
            self.recover("fields", operators=False)
        self.leave()

    def field_name(self) -> tuple[bool, str]:
        optional = self.take("?")
        try:
            self.require(FIELD if optional else FIELD | {"?"})
        except Mismatch:
            self.enter(":", operators=False, postfix=False)
            self.recover("field", operators=False)
            self.leave()
            return optional, ""
        name = self.advance()
        return optional, name.text[1:-1] if name.kind == "ESC_IDENTIFIER" else name.text
