"""From text to trees: the grammar, and the errors that the API server reports where a text does not follow it.

Binary operators are parsed with an explicit stack, so that nesting costs few Python frames.

Source: cel-go `parser/parser.go`, `parser/gen/CEL.g4`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from steersman.apimachinery.schema.cel.ast import Call, Entry, Expr, Ident, ListExpr, Literal, MapExpr, Message, Select
from steersman.apimachinery.schema.cel.errors import CompileError, Issue
from steersman.apimachinery.schema.cel.lexer import EOF
from steersman.apimachinery.schema.cel.literals import (
    LiteralError,
    parse_bytes,
    parse_double,
    parse_int,
    parse_string,
    parse_uint,
)
from steersman.apimachinery.schema.cel.macros import MacroError, expand
from steersman.apimachinery.schema.cel.token_reader import (
    LITERALS,
    OPERAND,
    OPERATORS,
    RESERVED,
    Stop,
    TokenReader,
    expected,
)
from steersman.apimachinery.schema.cel.values import Uint

MAX_SIZE = 100_000
"""Most code points of an expression."""
MAX_DEPTH = 250


class _Chain(NamedTuple):
    """Terms of one `&&` or `||` chain, to be balanced."""

    function: str
    terms: list[Expr]
    positions: list[int]


def parse(source: str) -> Expr:
    """The tree of an expression, macros expanded. Raises CompileError."""
    if len(source) > MAX_SIZE:
        message = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_SIZE}"
        raise CompileError(source, [Issue(-1, message)])
    return _Parser(source).parse()


class _Parser(TokenReader):
    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.source = source
        self.depth = 0
        self.heights: dict[Expr, int] = {}

    def parse(self) -> Expr:
        expr: Expr = Literal(0, False)
        try:
            expr = self.expression()
            self.expect(EOF, ())
        except Stop:
            pass
        if not self.issues and self.heights.get(expr, 0) > MAX_DEPTH:
            self.issues.append(Issue(-1, "max recursion depth exceeded"))
        if self.issues:
            raise CompileError(self.source, self.issues)
        return expr

    def node(self, expr: Expr, *below: Expr, own: int = 1) -> Expr:
        """Remember how deeply a node nests."""
        heights = self.heights
        height = own
        for child in below:
            height = max(height, own + heights.get(child, 0))
        if height:
            heights[expr] = height
        return expr

    # -- the grammar

    def expression(self, extra: Iterable[str] = ()) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.issues.append(Issue(-1, f"expression recursion limit exceeded: {MAX_DEPTH}"))
            raise Stop
        condition = self.binary(extra)
        if self.token.kind == "?":
            position = self.advance().pos
            self.closers.append(":")
            truthy = self.binary()
            self.closers.pop()
            self.expect(":", OPERAND)
            falsy = self.expression()
            call = Call(position, "_?_:_", [condition, truthy, falsy])
            condition = self.node(call, condition, truthy, falsy)
        self.depth -= 1
        return condition

    def binary(self, extra: Iterable[str] = ()) -> Expr:
        """Everything that binds more tightly than `?:`."""
        operands: list[Expr | _Chain] = [self.unary(extra)]
        operators: list[tuple[int, str, int]] = []
        while True:
            precedence, name = OPERATORS.get(self.token.kind, (0, ""))
            while operators and operators[-1][0] >= precedence:
                self.reduce(operands, *operators.pop())
            if not precedence:
                return self.finish(operands[0])
            operators.append((precedence, name, self.advance().pos))
            operands.append(self.unary())

    def reduce(self, operands: list[Expr | _Chain], precedence: int, name: str, position: int) -> None:
        right = operands.pop()
        left = operands.pop()
        if precedence > 2:
            first, second = self.finish(left), self.finish(right)
            operands.append(self.node(Call(position, name, [first, second]), first, second))
            return
        if not isinstance(left, _Chain) or left.function != name:
            left = _Chain(name, [self.finish(left)], [])
        left.terms.append(self.finish(right))
        left.positions.append(position)
        operands.append(left)

    def finish(self, operand: Expr | _Chain) -> Expr:
        if isinstance(operand, _Chain):
            return self.balance(operand, 0, len(operand.positions) - 1)
        return operand

    def balance(self, chain: _Chain, low: int, high: int) -> Expr:
        middle = (low + high + 1) // 2
        left = chain.terms[middle] if middle == low else self.balance(chain, low, middle - 1)
        right = chain.terms[middle + 1] if middle == high else self.balance(chain, middle + 1, high)
        return self.node(Call(chain.positions[middle], chain.function, [left, right]), left, right, own=0)

    def unary(self, extra: Iterable[str] = ()) -> Expr:
        if not self.operand_expected(extra):
            return Literal(self.token.pos, None)
        sign = self.token.kind
        if sign == "-" and self.second() in ("NUM_INT", "NUM_FLOAT"):
            return self.member()
        if sign not in ("-", "!"):
            return self.member()
        first = self.token.pos
        count = 0
        while self.token.kind == sign:
            self.advance()
            count += 1
        if self.token.kind is EOF or (sign == "-" and self.token.kind not in OPERAND):
            if sign == "-":
                self.syntax_error("no viable alternative at input '-'")
                self.recovering = False
                self.operand_expected()
            else:
                self.syntax_error(f"extraneous input '{self.token.text}' expecting {expected(OPERAND)}")
            raise Stop
        if not self.operand_expected():
            return Literal(self.token.pos, None)
        operand = self.member()
        if count % 2 == 0:
            return operand
        return self.node(Call(first, "-_" if sign == "-" else "!_", [operand]), operand, own=0)

    def member(self) -> Expr:
        expr = self.primary()
        while True:
            kind = self.token.kind
            if kind == ".":
                expr = self.field(expr)
            elif kind == "[":
                position = self.advance().pos
                optional = self.token.kind == "?"
                if optional:
                    self.advance()
                index = self.enclosed("]", () if optional else ("?",))
                call = Call(position, "_[?_]" if optional else "_[_]", [expr, index])
                expr = self.node(call, expr, index)
            else:
                return expr

    def field(self, operand: Expr) -> Expr:
        dot = self.advance()
        optional = self.token.kind == "?"
        if optional:
            self.advance()
        name = self.token
        if name.kind == "IDENTIFIER" and not optional and self.second() == "(":
            self.advance()
            opening = self.advance().pos
            args = self.arguments()
            return self.node(self.call(opening, name.text, args, operand), operand, *args)
        if name.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            if name.kind in ("true", "false", "null"):
                self.syntax_error(f"mismatched input '{name.text}' expecting IDENTIFIER")
            else:
                shown = "" if name.kind is EOF else name.text
                self.syntax_error(f"no viable alternative at input '.{'?' if optional else ''}{shown}'")
            raise Stop
        self.advance()
        text = name.text[1:-1] if name.kind == "ESC_IDENTIFIER" else name.text
        if optional:
            call = Call(dot.pos, "_?._", [operand, Literal(name.pos, text)])
            return self.node(call, operand)
        return self.node(Select(dot.pos, operand, text), operand)

    def call(self, position: int, function: str, args: list[Expr], target: Expr | None) -> Expr:
        try:
            expanded = expand(position, function, target, args)
        except MacroError as error:
            return self.error(error.pos, str(error))
        return expanded or Call(position, function, args, target)

    def enclosed(self, closer: str, extra: Iterable[str] = ()) -> Expr:
        """An expression, and the bracket that closes it."""
        self.closers.append(closer)
        expr = self.expression(extra)
        self.closers.pop()
        self.expect(closer, self.after())
        return expr

    def arguments(self) -> list[Expr]:
        if self.token.kind == ")":
            self.advance()
            return []
        self.closers += [")", ","]
        args = [self.expression((")",))]
        while self.token.kind == ",":
            self.advance()
            args.append(self.expression())
        del self.closers[-2:]
        self.expect(")", self.after())
        return args

    def primary(self) -> Expr:
        token = self.token
        if token.kind in LITERALS or token.kind == "-":
            return self.literal()
        if token.kind == "IDENTIFIER" or token.kind == ".":
            return self.name()
        self.advance()
        if token.kind == "(":
            return self.enclosed(")")
        return self.list(token.pos) if token.kind == "[" else self.map(token.pos)

    def literal(self) -> Expr:
        token = self.advance()
        sign = "-" if token.kind == "-" else ""
        body = self.advance() if sign else token
        try:
            if body.kind == "NUM_INT":
                return Literal(token.pos, parse_int(sign + body.text))
            if body.kind == "NUM_FLOAT":
                return Literal(token.pos, parse_double(sign + body.text))
            if body.kind == "NUM_UINT":
                return Literal(token.pos, Uint(parse_uint(body.text)))
            if body.kind == "STRING":
                return Literal(token.pos, parse_string(body.text))
            if body.kind == "BYTES":
                return Literal(token.pos, parse_bytes(body.text))
        except LiteralError as error:
            return self.error(token.pos, str(error))
        return Literal(token.pos, {"true": True, "false": False, "null": None}[body.kind])

    def name(self) -> Expr:
        start = self.token
        dot = "." if start.kind == "." else ""
        if dot:
            self.advance()
            if self.token.kind != "IDENTIFIER":
                self.syntax_error(
                    f"no viable alternative at input '.{'' if self.token.kind is EOF else self.token.text}'"
                )
                raise Stop
        fields = self.message_name()
        if fields:
            return self.message(dot + ".".join(fields))
        token = self.advance()
        if self.token.kind == "(":
            opening = self.advance().pos
            args = self.arguments()
            if token.text in RESERVED:
                return self.error(start.pos, f"reserved identifier: {token.text}")
            return self.node(self.call(opening, dot + token.text, args, None), *args, own=0)
        if token.text in RESERVED:
            return self.error(start.pos, f"reserved identifier: {token.text}")
        return Ident(token.pos, dot + token.text)

    def message_name(self) -> list[str]:
        """The names before the `{` of a message, if this is one."""
        names = []
        at = self.at
        while self.tokens[at].kind == "IDENTIFIER":
            names.append(self.tokens[at].text)
            following = self.tokens[at + 1].kind
            if following == "{":
                return names
            if following != ".":
                return []
            at += 2
        return []

    def message(self, name: str) -> Expr:
        while self.token.kind != "{":
            self.advance()
        opening = self.advance().pos
        fields: list[Entry] = []
        self.closers += ["}", ",", ":"]
        while self.token.kind not in ("}", ",") or (fields and self.more("}")):
            optional = self.take("?")
            field = self.token
            if field.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
                wanted = {"IDENTIFIER", "ESC_IDENTIFIER"} | (set() if optional else {"}", ",", "?"})
                self.syntax_error(f"mismatched input '{field.text}' expecting {expected(wanted)}")
                raise Stop
            self.advance()
            text = field.text[1:-1] if field.kind == "ESC_IDENTIFIER" else field.text
            position = self.expect(":", OPERAND).pos
            fields.append(Entry(position, text, self.expression(), optional=optional))
        self.close("}")
        del self.closers[-3:]
        return self.node(Message(opening, name, fields), *[field.value for field in fields], own=0)

    def take(self, kind: str) -> bool:
        if self.token.kind == kind:
            self.advance()
            return True
        return False

    def more(self, closer: str) -> bool:
        """Between elements: whether another one follows; a comma may also stand before the end."""
        if self.token.kind == "," and self.second() != closer:
            self.advance()
            return True
        return False

    def close(self, closer: str) -> None:
        """The end of a list or map, after an optional comma."""
        self.take(",")
        if self.token.kind == closer:
            self.advance()
            return
        wanted = {closer, ","} if self.tokens[self.at - 1].kind != "," else {closer}
        if self.token.kind is not EOF and self.second() in wanted:
            self.syntax_error(f"extraneous input '{self.token.text}' expecting {expected(wanted)}")
            self.at += 1
            self.close(closer)
            return
        self.syntax_error(f"mismatched input '{self.token.text}' expecting {expected(wanted)}")
        raise Stop

    def list(self, opening: int) -> Expr:
        elements: list[Expr] = []
        optional = set()
        self.closers += ["]", ","]
        while self.token.kind not in ("]", ",") or (elements and self.more("]")):
            if self.take("?"):
                optional.add(len(elements))
            elements.append(self.expression(() if elements else ("]", ",", "?")))
            if self.token.kind not in ("]", ","):
                break
        self.close("]")
        del self.closers[-2:]
        return self.node(ListExpr(opening, elements, frozenset(optional)), *elements, own=0)

    def map(self, opening: int) -> Expr:
        entries: list[Entry] = []
        below: list[Expr] = []
        self.closers += ["}", ",", ":"]
        while self.token.kind not in ("}", ",") or (entries and self.more("}")):
            optional = self.take("?")
            key = self.expression(() if entries else ("}", ",", "?"))
            position = self.expect(":", OPERAND).pos
            value = self.expression()
            entries.append(Entry(position, key, value, optional=optional))
            below += [key, value]
            if self.token.kind not in ("}", ","):
                break
        self.close("}")
        del self.closers[-3:]
        return self.node(MapExpr(opening, entries), *below, own=0)
