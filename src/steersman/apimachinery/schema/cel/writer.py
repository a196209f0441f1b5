"""Python source under construction: lines, names, constants, and the cost that is yet to be charged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from steersman.apimachinery.schema.cel.outlines import Outlines
from steersman.apimachinery.schema.cel.schema_types import Decl
from steersman.apimachinery.schema.cel.types import Type

_MAX_BLOCKS = 12
"""Python refuses more than 20 nested loops and try statements."""
_MAX_INDENT = 40


class Code(NamedTuple):
    """The result of an expression: Python text without side effects.

    With `decl` it is data of that declaration (an object, map or list), otherwise a value. `type` is the CEL type.
    """

    text: str
    type: Type
    decl: Decl | None = None


class Captured(NamedTuple):
    """Lines that were generated aside, the result, and whether they may raise."""

    lines: list[tuple[int, str]]
    code: Code
    raises: bool


class Round(NamedTuple):
    """A fold's round being written: its own variables, and reads of others' fields, which are done once ahead of it."""

    own: frozenset[str]
    reads: dict[str, str]


class Writer:
    """Lines of the function being written, and of those that are finished."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self.finished: list[str] = []
        self.scope: dict[str, Code] = {}
        self.nulls = False  # whether texts in data may be null
        self.lines: list[tuple[int, str]] = []
        self.indent = 2
        self.blocks = 1
        self.raises = False
        self.rounds: list[Round] = []
        self.outlines = Outlines({}, frozenset())
        self.items: set[str] = set()  # iteration variables that are objects of data
        self._pending = 0
        self._mark: int | None = None
        self._names = 0
        self._known: dict[int, str] = {}

    def name(self, prefix: str = "v") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def emit(self, text: str) -> None:
        self.lines.append((self.indent, text))

    def constant(self, value: Any, prefix: str = "K") -> str:
        """The global name of a constant; the same object has one name."""
        known = self._known.get(id(value))
        if known is None:
            known = self.name(prefix)
            self.constants[known] = value
            self._known[id(value)] = known
        return known

    def let(self, text: str, prefix: str = "v") -> str:
        """Compute something into a new variable."""
        name = self.name(prefix)
        self.emit(f"{name} = {text}")
        return name

    def charge(self, units: int) -> None:
        """Add a known cost, ahead of what may raise: upstream charges for steps that an error came from, too."""
        self.mark()
        self._pending += units

    def mark(self) -> None:
        """What is charged from now on is added here."""
        if self._mark is None:
            self._mark = len(self.lines)

    def flush(self) -> None:
        if self._pending and self._mark is not None:
            self.lines.insert(self._mark, (self.indent, f"c += {self._pending}"))
        self._pending, self._mark = 0, None

    def open(self, header: str, *, counts: bool = False) -> None:
        """Begin a block; `counts`: a loop or try statement, whose nesting is limited."""
        self.flush()
        self.emit(header)
        self.indent += 1
        self.blocks += counts

    def close(self, *, counts: bool = False) -> None:
        self.flush()
        if self.lines[-1][0] < self.indent:
            self.emit("pass")
        self.indent -= 1
        self.blocks -= counts

    def capture(self, generate: Callable[[], Code]) -> Captured:
        """Generate lines without writing them yet; they may be placed inside of one more block."""
        self.flush()
        outer, raised = self.lines, self.raises
        self.lines, self.raises = [], False
        self.blocks += 1
        code = generate()
        self.flush()
        self.blocks -= 1
        captured = Captured(self.lines, code, self.raises)
        self.lines, self.raises = outer, raised or self.raises
        return captured

    def place(self, captured: Captured, *, deeper: bool = False) -> None:
        self.lines += [(level + deeper, text) for level, text in captured.lines]

    def too_deep(self) -> bool:
        return self.blocks > _MAX_BLOCKS or self.indent > _MAX_INDENT

    def outline(self, generate: Callable[[], Code]) -> Code:
        """Generate into a function of its own and call it, so that blocks do not nest too deeply."""
        self.mark()
        outer = (self.lines, self.indent, self.blocks, self.rounds, self._pending, self._mark)
        self._pending, self._mark = 0, None
        params = "".join(f", {code.text}" for code in dict.fromkeys(self.scope.values()))
        self.lines, self.indent, self.blocks, self.rounds = [], 2, 1, []
        code = generate()
        function = self.name("f")
        self.finish(function, params, code)
        self.lines, self.indent, self.blocks, self.rounds, self._pending, self._mark = outer
        self.raises = True
        result = self.name()
        self.emit("try:")
        self.emit(f"    {result} = {function}(c, box{params})")
        self.emit("finally:")
        self.emit("    c = box[0]")
        return code._replace(text=result)

    def finish(self, function: str, params: str, code: Code) -> None:
        """End the current function with its result. Its cost, also up to an error, is left in `box`."""
        self.flush()
        self.emit(f"return {code.text}")
        body = "\n".join("    " * level + text for level, text in self.lines)
        self.finished.append(f"def {function}(c, box{params}):\n    try:\n{body}\n    finally:\n        box[0] = c\n")
        self.lines = []
