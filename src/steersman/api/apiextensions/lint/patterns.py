"""Regular expressions (RE2) as texts: they are looked at, not run."""

from __future__ import annotations

from collections.abc import Iterator


def is_anchored(pattern: str) -> bool:
    """Whether every alternative of a pattern begins at the text's start and goes on to its end.

    So does one that lets anything come before or after (`.*`).
    """
    pattern = _without_flags(pattern)
    if pattern.startswith("(") and _closing(pattern, 0) == len(pattern) - 1:
        return is_anchored(_body(pattern))
    return all(part.startswith(("^", r"\A", ".*")) and _ends(part) for part in _alternatives(pattern))


def _ends(part: str) -> bool:
    if not part.endswith(("$", r"\z", ".*")):
        return False
    before = part[: -1 if part.endswith("$") else -2]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 0  # not a dollar sign or a dot that is meant


def _without_flags(pattern: str) -> str:
    if pattern.startswith("(?") and ")" in pattern:
        flags = pattern[2 : pattern.index(")")]
        if flags and set(flags) <= set("imsU-"):
            return pattern[len(flags) + 3 :]
    return pattern


def _body(group: str) -> str:
    inner = group[1:-1]
    if inner.startswith("?:"):
        return inner[2:]
    if inner.startswith(("?P<", "?<")):
        return inner[inner.index(">") + 1 :] if ">" in inner else inner
    return inner


def _alternatives(pattern: str) -> list[str]:
    """The parts between the bars that stand in no group and no class."""
    parts, start = [], 0
    for at, depth in _depths(pattern):
        if pattern[at] == "|" and depth == 0:
            parts.append(pattern[start:at])
            start = at + 1
    return [*parts, pattern[start:]]


def _closing(pattern: str, start: int) -> int:
    """Where the group that opens at `start` closes; -1 if it does not."""
    for at, depth in _depths(pattern[start:]):
        if pattern[start + at] == ")" and depth == 0:
            return start + at
    return -1


def _depths(pattern: str) -> Iterator[tuple[int, int]]:
    """The places of all characters that are neither escaped nor in a class, each with the groups around it.

    A parenthesis that closes counts as outside its group.
    """
    at, depth, in_class = 0, 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 2
            continue
        if in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
            at += len(pattern[at + 1 : at + 3]) - len(pattern[at + 1 : at + 3].lstrip("^]"))
        else:
            depth -= char == ")"
            yield at, depth
            depth += char == "("
        at += 1
