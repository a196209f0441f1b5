"""What is wrong with literals in expressions that are well typed.

Source: cel-go `cel/validator.go`, `ext/formatting.go` (stringFormatValidator).
"""

from __future__ import annotations

from collections.abc import Iterator

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.ast import Call, Expr, ListExpr, Literal, MapExpr
from steersman.apimachinery.schema.cel.dispatch import dispatcher
from steersman.apimachinery.schema.cel.errors import CelError, Issue
from steersman.apimachinery.schema.cel.library.formatting import FormatError, check_format
from steersman.apimachinery.schema.cel.library.regex import RegexError, compile_regex
from steersman.apimachinery.schema.cel.types import Type


def literal_issues(expr: Expr) -> list[Issue]:
    """Bad literals of durations, timestamps, patterns and formats, and lists or maps of mixed types."""
    nodes = list(_with_exemption(expr))
    issues = []
    for function in ("duration", "timestamp", "matches"):
        for node, _ in nodes:
            if isinstance(node, Call) and node.function == function and node.args and not _is_valid(node):
                issues.append(Issue(node.args[0].pos, f"invalid {function} argument"))
    for node, exempt in nodes:
        if isinstance(node, ListExpr) and not exempt:
            issues += _mixed_list(node)
    for node, exempt in nodes:
        if isinstance(node, MapExpr) and not exempt:
            issues += _mixed_map(node)
    for node, _ in nodes:
        if isinstance(node, Call) and node.function == "format" and node.target is not None:
            issues += _format_issues(node)
    return issues


def _with_exemption(expr: Expr) -> Iterator[tuple[Expr, bool]]:
    """All nodes, and whether they are inside a call of format, whose arguments may be of mixed types."""
    pending = [(expr, False)]
    while pending:
        node, exempt = pending.pop()
        yield node, exempt
        below = exempt or (isinstance(node, Call) and node.function == "format")
        pending.extend((child, below) for child in reversed(list(node.children())))


def _is_valid(call: Call) -> bool:
    argument = call.args[0]
    if not isinstance(argument, Literal):
        return True
    try:
        if call.function != "matches":
            dispatcher(call.function, False)(argument.value)
        elif argument.value.__class__ is str:
            compile_regex(argument.value)
    except (CelError, RegexError):
        return False
    return True


def _mismatch(node: Expr, expected: Type, found: Type) -> Issue:
    return Issue(node.pos, f"expected type '{expected}' but found '{found}'")


def _mixed_list(node: ListExpr) -> Iterator[Issue]:
    expected: Type | None = None
    for index, element in enumerate(node.elements):
        found = t.unwrap_optional(element.type)[0] if index in node.optional else element.type
        if expected is None:
            expected = found
        elif found != expected:
            yield _mismatch(element, expected, found)
            return


def _mixed_map(node: MapExpr) -> Iterator[Issue]:
    first: tuple[Type, Type] | None = None
    for entry in node.entries:
        key, value = entry.key.type, entry.value.type
        if entry.optional:
            value = t.unwrap_optional(value)[0]
        if first is None:
            first = key, value
            continue
        if key != first[0]:
            yield _mismatch(entry.key, first[0], key)
        if value != first[1]:
            yield _mismatch(entry.value, first[1], value)


def _format_issues(call: Call) -> Iterator[Issue]:
    text, args = call.target, call.args[0] if call.args else None
    if not isinstance(text, Literal) or text.value.__class__ is not str or not isinstance(args, ListExpr):
        return
    try:
        used = check_format(text.value, args.elements)
    except FormatError as error:
        where = error.node if isinstance(error.node, Expr) else call
        yield Issue(where.pos, str(error))
        return
    if len(args.elements) > used:
        words = f"too many arguments supplied to string.format (expected {used}, got {len(args.elements)})"
        yield Issue(call.pos, words)
