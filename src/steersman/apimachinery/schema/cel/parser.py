"""From text to trees: the grammar, and the errors that the API server reports where a text does not follow it.

Binary operators are parsed with an explicit stack, so that nesting costs few Python frames.

Source: cel-go `parser/parser.go`, `parser/gen/CEL.g4`.
"""

from __future__ import annotations

from typing import NamedTuple

from steersman.apimachinery.schema.cel.ast import Call, Expr, Ident, Literal, Select, walk
from steersman.apimachinery.schema.cel.brackets import FIELD, Brackets
from steersman.apimachinery.schema.cel.errors import UNPLACED, CompileError, Issue
from steersman.apimachinery.schema.cel.lexer import EOF
from steersman.apimachinery.schema.cel.literals import (
    LiteralError,
    parse_bytes,
    parse_double,
    parse_int,
    parse_string,
    parse_uint,
)
from steersman.apimachinery.schema.cel.macros import COPYING, MacroError, expand
from steersman.apimachinery.schema.cel.token_reader import (
    LITERALS,
    OPERAND,
    OPERATORS,
    RESERVED,
    Mismatch,
    Stop,
    expected,
    is_syntax_error,
    on_one_line,
)
from steersman.apimachinery.schema.cel.values import Uint

MAX_SIZE = 100_000
"""Most code points of an expression."""
MAX_DEPTH = 250
MAX_COPIED = 10_000
"""Most nodes that macros may copy. Upstream has no bound, and takes minutes at half of this."""
_PRIMARY = OPERAND - {"!"}


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


class _Parser(Brackets):
    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.depth = 0
        self.copied = 0

    def parse(self) -> Expr:
        expr: Expr = Literal(0, False)
        try:
            expr = self.expression()
            try:
                self.expect(EOF, ())
            except Mismatch:
                self.recover("start", operators=False)
        except Stop:
            # upstream looks for other errors only in a whole tree
            self.issues = [each for each in self.issues if each.offset < 0 or is_syntax_error(each)]
        if not self.issues and self.heights.get(expr, 0) > MAX_DEPTH:
            self.issues.append(Issue(-1, "max recursion depth exceeded"))
        if self.issues:
            raise CompileError(self.source, self.issues)
        return expr

    # -- the grammar

    def expression(self) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.issues.append(Issue(-1, f"expression recursion limit exceeded: {MAX_DEPTH}"))
            raise Stop
        condition = self.binary()
        if self.token.kind == "?":
            condition = self.ternary(condition)
        self.depth -= 1
        return condition

    def ternary(self, condition: Expr) -> Expr:
        position = self.advance().pos
        level = self.levels[-1]
        self.enter(":", question=False, operators=False, postfix=False)
        truthy = self.binary()
        self.leave()
        try:
            self.expect(":", OPERAND)
        except Mismatch:
            self.recover("expression", operators=False)
            return Literal(position, None)
        self.levels.append(level._replace(question=True))
        falsy = self.expression()
        self.leave()
        return self.node(Call(position, "_?_:_", [condition, truthy, falsy]), condition, truthy, falsy)

    def binary(self) -> Expr:
        """Everything that binds more tightly than `?:`."""
        operands: list[Expr | _Chain] = [self.unary()]
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

    def unary(self) -> Expr:
        kind = self.token.kind
        try:
            if kind not in OPERAND:
                self.require(OPERAND)
                kind = self.token.kind
            if kind == "!" or (kind == "-" and self.second() not in ("NUM_INT", "NUM_FLOAT")):
                return self.negation(kind)
        except Mismatch:
            position = self.token.pos
            self.recover("unary")
            return Literal(position, None)
        return self.member()

    def negation(self, sign: str) -> Expr:
        start = self.token.pos
        count = 0
        while self.tokens[self.at + count].kind == sign:
            count += 1
        for _ in range(count - 1):
            self.advance()
        if sign == "-" and self.second() not in _PRIMARY:
            raise self.no_alternative(self.at + 1)
        self.advance()
        if self.token.kind not in _PRIMARY:
            self.syntax_error(f"extraneous input '{on_one_line(self.token.text)}' expecting {expected(OPERAND)}")
            self.skip_to(OPERAND | self.restart(operators=True, postfix=False))
        operand = self.member()
        if count % 2 == 0:
            return operand
        function = "-_" if sign == "-" else "!_"
        return self.node(Call(start, function, [operand]), operand, own=0)

    def member(self) -> Expr:
        expr = self.primary()
        try:
            while True:
                if self.token.kind == ".":
                    expr, complete = self.field(expr)
                elif self.token.kind == "[":
                    expr, complete = self.index(expr)
                else:
                    return expr
                if not complete:
                    raise Mismatch
        except Mismatch:
            self.recover("member")
        return expr

    def index(self, operand: Expr) -> tuple[Expr, bool]:
        position = self.advance().pos
        try:
            self.require(OPERAND | {"?"})
        except Mismatch:
            return Call(position, "_[_]", [operand, Literal(position, None)]), False
        optional = self.take("?")
        index = self.within("]", postfix=False)
        call = self.node(Call(position, "_[?_]" if optional else "_[_]", [operand, index]), operand, index)
        try:
            self.expect("]", self.after_bracket())
        except Mismatch:
            return call, False
        return call, True

    def field(self, operand: Expr) -> tuple[Expr, bool]:
        dot = self.token
        optional = self.second() == "?"
        name = self.tokens[min(self.at + 1 + optional, len(self.tokens) - 1)]
        if not optional and name.kind not in FIELD:
            raise self.no_alternative(self.at + 1)
        for _ in range(1 + optional):
            self.advance()
        if name.kind == "IDENTIFIER" and not optional and self.second() == "(":
            self.advance()
            opening = self.advance().pos
            args, complete = self.arguments(postfix=False)
            return self.node(self.call(opening, name.text, args, operand), operand, *args), complete
        if optional:
            try:
                self.require(FIELD)
            except Mismatch:
                position = self.token.pos
                self.recover("identifier", postfix=True)
                self.error(position, "unsupported ident kind")
                return Literal(dot.pos, None), True
            name = self.token
        self.advance()
        text = name.text[1:-1] if name.kind == "ESC_IDENTIFIER" else name.text
        if optional:
            call = Call(dot.pos, "_?._", [operand, Literal(name.pos, text)])
            return self.node(call, operand), True
        return self.node(Select(dot.pos, operand, text), operand), True

    def call(self, position: int, function: str, args: list[Expr], target: Expr | None) -> Expr:
        if target is not None and function in COPYING:
            self.count_copies(target)
        try:
            expanded = expand(position, function, target, args)
        except MacroError as error:
            return self.error(error.pos, str(error))
        return expanded or Call(position, function, args, target)

    def count_copies(self, target: Expr) -> None:
        """Bound what macros copy: it doubles with each of them in a chain."""
        self.copied += sum(1 for _ in walk(target))
        if self.copied > MAX_COPIED:
            self.issues.append(Issue(-1, f"expansion of macros exceeds limit: {MAX_COPIED} copied expressions"))
            raise Stop

    def primary(self) -> Expr:
        token = self.token
        try:
            if token.kind not in _PRIMARY:
                self.require(_PRIMARY)
                token = self.token
            if token.kind == "-" and self.second() not in ("NUM_INT", "NUM_FLOAT"):
                raise self.no_alternative(self.at + 1)
            if token.kind in LITERALS or token.kind == "-":
                return self.literal()
            if token.kind == "IDENTIFIER" or token.kind == ".":
                return self.name()
        except Mismatch:
            self.recover("primary", postfix=True)
            return Literal(UNPLACED if token.kind == "." else token.pos, None)
        self.advance()
        if token.kind == "(":
            return self.parenthesis()
        return self.list_of(token.pos) if token.kind == "[" else self.map_of(token.pos)

    def parenthesis(self) -> Expr:
        expr = self.within(")")
        try:
            self.expect(")", self.after_bracket())
        except Mismatch:
            self.recover("parenthesis", postfix=True)
        return expr

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
            if self.second() != "IDENTIFIER":
                raise self.no_alternative(self.at + 1)
            self.advance()
        fields = self.message_name()
        if fields:
            while self.token.kind != "{":
                self.advance()
            return self.message(dot + ".".join(fields), self.advance().pos)
        token = self.advance()
        if self.token.kind == "(":
            opening = self.advance().pos
            args, complete = self.arguments(postfix=True)
            if not complete:
                self.recover("call", postfix=True)
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
