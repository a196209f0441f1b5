"""Regular expressions: RE2's syntax, in linear time.

Source: cel-go `common/types/string.go` (Match); apiserver `pkg/cel/library/regex.go`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from steersman.apimachinery.schema.cel.errors import CelError
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.patterns import PatternError, compile_pattern


class RegexError(ValueError):
    """The pattern is no regular expression; the message is Go's."""


class Regex:
    """A compiled pattern."""

    __slots__ = ("_search", "matches")

    def __init__(self, pattern: str) -> None:
        try:
            self.matches = compile_pattern(pattern)
        except PatternError as error:
            raise RegexError(str(error)) from None
        options = re2.Options()
        options.log_errors = False
        self._search = re2.compile(pattern.encode("utf-8", "surrogatepass"), options).search

    def find(self, text: str) -> str:
        """The first match, "" if there is none."""
        found = self._search(text.encode("utf-8", "surrogatepass"))
        return found.group().decode("utf-8", "surrogatepass") if found is not None else ""

    def find_all(self, text: str, limit: int) -> list[str]:
        """Matches that do not overlap, at most `limit` if that is not negative.

        As in Go, an empty match right after another match does not count.
        """
        data = text.encode("utf-8", "surrogatepass")
        out: list[str] = []
        at, previous = 0, -1
        while at <= len(data) and (limit < 0 or len(out) < limit):
            found: Any = self._search(data, at)
            if found is None:
                break
            start, end = found.span()
            if end > start or start != previous:
                out.append(data[start:end].decode("utf-8", "surrogatepass"))
            previous = end
            at = end
            if end == start:
                at += 1
                while at < len(data) and data[at] & 0xC0 == 0x80:
                    at += 1
        return out


@lru_cache(maxsize=512)
def compile_regex(pattern: str) -> Regex:
    """Raises RegexError with Go's words."""
    return Regex(pattern)


def find_with(regex: Regex) -> Function:
    return regex.find


def find_all_with(regex: Regex) -> Function:
    return regex.find_all


def _compiled(pattern: str, words: str = "") -> Regex:
    try:
        return compile_regex(pattern)
    except RegexError as error:
        raise CelError(f"{words}{error}") from None


def _matches(text: str, pattern: str) -> bool:
    return _compiled(pattern).matches(text)


def _find(text: str, pattern: str) -> str:
    return _compiled(pattern, "Illegal regex: ").find(text)


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return _compiled(pattern, "Illegal regex: ").find_all(text, limit)


OVERLOADS: dict[str, Function] = {
    "matches": _matches,
    "matches_string": _matches,
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}
