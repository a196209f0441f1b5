"""JSONPath in kubectl's dialect, as far as printer columns and selectable fields use it.

A path is compiled once to a function that lists its matches. Supported: `.key` (with `\\.` for a literal dot),
`['key']`, `[index]` and slices, `[*]` and `.*`, `..key`, and filters `[?(@.key == "value")]` with ==, !=, <, <=, >, >=.
Source: client-go `util/jsonpath/{parser,jsonpath}.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from steersman._util.lazily import lazily

Step = Callable[[Any], Iterator[Any]]
Path = Callable[[Any], list[Any]]

_KEY = lazily(re.compile, r"(?:\\.|[^.\[\]\\])+")
_SLICE = lazily(re.compile, r"(-?\d*):(-?\d*)(?::(-?\d*))?")
_FILTER = lazily(
    re.compile,
    r"""\?\(\s*@\.?(?P<path>[^\s=!<>)]*)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>"[^"]*"|'[^']*'|[^\s)]+)\s*)?\)""",
)


class JsonPathError(ValueError):
    """The path is malformed."""


def compile_path(text: str) -> Path:
    """The function of an object that lists all matches of a path, in order. Raises JsonPathError."""
    source = text.strip()
    if source.startswith("{") and source.endswith("}"):
        source = source[1:-1].strip()
    steps = list(_parse(source.removeprefix("$")))

    def run(obj: Any) -> list[Any]:
        found = [obj]
        for step in steps:
            found = [match for value in found for match in step(value)]
        return found

    return run


def keys_of(text: str) -> list[str | None]:
    """The keys on the way that a path takes: "[]" for whatever is taken of a list, None where any key may do.

    Raises JsonPathError.
    """
    source = text.strip()
    if source.startswith("{") and source.endswith("}"):
        source = source[1:-1].strip()
    return [_key_of(kind, value) for kind, value in _tokens(source.removeprefix("$"))]


def _key_of(kind: str, value: str) -> str | None:
    if kind == "field":
        return value
    if kind != "bracket":
        return None
    return value[1:-1] if _is_quoted(value) else "[]"


def _parse(text: str) -> Iterator[Step]:
    for kind, value in _tokens(text):
        match kind:
            case "descend":
                yield _descend(value)
            case "field":
                yield _field(value)
            case "any":
                yield _wildcard
            case _:
                yield _bracket(value)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """`..key` (descend), `.key` (field), `.*` (any), and what is in brackets (bracket)."""
    position = 0
    while position < len(text):
        if text.startswith("..", position):
            key, position = _read_key(text, position + 2)
            yield "descend", key
        elif text[position] == ".":
            if position + 1 == len(text):
                return
            if text[position + 1] == "[":
                position += 1
                continue
            key, position = _read_key(text, position + 1)
            yield ("any", key) if key == "*" else ("field", key)
        elif text[position] == "[":
            end = _closing(text, position)
            yield "bracket", text[position + 1 : end].strip()
            position = end + 1
        else:
            raise JsonPathError(f"unexpected {text[position]!r} at {position}")


def _read_key(text: str, position: int) -> tuple[str, int]:
    match = _KEY.match(text, position)
    if match is None:
        raise JsonPathError(f"a key is missing at {position}")
    return re.sub(r"\\(.)", r"\1", match[0]), match.end()


def _closing(text: str, start: int) -> int:
    depth, quote = 0, ""
    for position in range(start, len(text)):
        ch = text[position]
        if quote:
            quote = "" if ch == quote else quote
        elif ch in "\"'":
            quote = ch
        elif ch == "[":
            depth += 1
        elif ch == "]":
            depth -= 1
            if not depth:
                return position
    raise JsonPathError("unterminated array")


def _bracket(inner: str) -> Step:
    if inner == "*":
        return _wildcard
    if _is_quoted(inner):
        return _field(inner[1:-1])
    if re.fullmatch(r"-?\d+", inner):
        return _index(int(inner))
    if match := _SLICE.fullmatch(inner):
        return _slice(*(int(part) if part else None for part in match.groups()))
    if match := _FILTER.fullmatch(inner):
        return _filter(match["path"], match["op"], match["value"])
    raise JsonPathError(f"invalid array index {inner}")


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]


def _field(key: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and key in value:
            yield value[key]

    return step


def _wildcard(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _index(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _slice(start: int | None, stop: int | None = None, stride: int | None = None) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[start : stop : stride or 1]

    return step


def _descend(key: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            if key in value:
                yield value[key]
            children = list(value.values())
        else:
            children = value if isinstance(value, list) else []
        for child in children:
            yield from step(child)

    return step


def _filter(path: str, operator: str | None, literal: str | None) -> Step:
    left = compile_path(f".{path}" if path else "")
    wanted = _literal(literal) if literal is not None else None

    def holds(item: Any) -> bool:
        found = left(item)
        if operator is None:
            return bool(found)
        return bool(found) and _compare(found[0], operator, wanted)

    def step(value: Any) -> Iterator[Any]:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for item in items:
            if holds(item):
                yield item

    return step


def _literal(text: str) -> Any:
    if text[0] in "\"'":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise JsonPathError(f"unrecognized literal {text}") from None


def _compare(left: Any, operator: str, right: Any) -> bool:
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if type(left) is not type(right) and not (numbers and not isinstance(left, bool) and not isinstance(right, bool)):
        return operator == "!="
    match operator:
        case "==":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)
