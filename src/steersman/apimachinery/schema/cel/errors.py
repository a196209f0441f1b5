"""What goes wrong with expressions: while they are compiled, and while they run."""

from __future__ import annotations

from typing import NamedTuple

MAX_ISSUES = 100
UNPLACED = -2
_MAX_SNIPPET = 16384


class CelError(Exception):
    """An expression failed while it ran; the message is upstream's. `&&`, `||` and macros may absorb it."""


class CostLimitExceeded(Exception):
    """An expression was stopped because its run-time cost passed the limit; nothing absorbs this."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class EvaluationPanic(Exception):
    """Upstream's evaluator fails altogether here; nothing absorbs this."""


class Issue(NamedTuple):
    """Something wrong at an offset (in code points) of the source.

    Offset -1 is nowhere in particular, UNPLACED ahead of the first column.
    """

    offset: int
    message: str


class CompileError(Exception):
    """An expression does not compile; the message shows each issue with the line and a caret, as cel-go prints it."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        super().__init__(_display(source, issues))
        self.issues = issues


def no_such_overload(function: str = "", types: list[str] | None = None) -> CelError:
    """The error of a function that is not defined on the arguments' types."""
    if types is not None:
        return CelError(f"no such overload: {function}({', '.join(types)})")
    return CelError(f"no such overload: {function}" if function else "no such overload")


def _display(source: str, issues: list[Issue]) -> str:
    lines = source.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    shown = sorted(issues[:MAX_ISSUES], key=lambda issue: issue.offset)
    texts = [_show(issue, lines, starts) for issue in shown]
    if len(issues) > MAX_ISSUES:
        texts.append(f"{len(issues) - MAX_ISSUES} more errors were truncated")
    return "\n".join(texts)


def _show(issue: Issue, lines: list[str], starts: list[int]) -> str:
    if issue.offset == UNPLACED:
        return f"ERROR: <input>:1:0: {issue.message}\n | {lines[0].replace(chr(9), ' ')}\n | ^"
    if lines == [""]:
        return f"ERROR: <input>:1:0: {issue.message}"
    if issue.offset < 0:
        return f"ERROR: <input>:-1:0: {issue.message}"
    number = max(i for i, start in enumerate(starts[:-1]) if start <= issue.offset)
    column = issue.offset - starts[number]
    text = f"ERROR: <input>:{number + 1}:{column + 1}: {issue.message}"
    snippet = lines[number].replace("\t", " ")
    if len(snippet.encode("utf-8", "surrogatepass")) > _MAX_SNIPPET:
        return text
    marks = "".join("." if ch < "\x80" else "．" for ch in snippet[:column])
    here = snippet[column : column + 1]
    return f"{text}\n | {snippet}\n | {marks}{'＾' if here >= chr(128) else '^'}"
