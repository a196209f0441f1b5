"""Strings.

Source: cel-go `ext/strings.go` (version 2), `common/types/string.go`.
"""

from __future__ import annotations

from typing import Any

from steersman._util.gotext import ESCAPES
from steersman.apimachinery.schema.cel.costs import MAX_TEXT
from steersman.apimachinery.schema.cel.errors import CelError, CostLimitExceeded
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.cel.values import items_of, show

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_QUOTED = str.maketrans(ESCAPES)


def _out_of_range(index: int) -> CelError:
    return CelError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _check_size(size: int) -> None:
    if size > MAX_TEXT:
        raise CostLimitExceeded


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    _check_size(len(text) + (len(new) - len(old)) * (text.count(old) if count < 0 else min(count, text.count(old))))
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if 0 < count < len(text):
        return [*text[: count - 1], text[count - 1 :]]
    return list(text)


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start,) if end is None else (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _join(items: Any, separator: str = "") -> str:
    parts = items_of(items)
    for part in parts:
        if part.__class__ is not str:
            raise CelError(f"join: invalid input: {show(part)}")
    _check_size(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _quote(text: str) -> str:
    clean = "".join("\ufffd" if "\ud800" <= ch <= "\udfff" else ch for ch in text)
    return f'"{clean.translate(_QUOTED)}"'


OVERLOADS: dict[str, Function] = {
    "contains_string": lambda text, part: part in text,
    "ends_with_string": str.endswith,
    "starts_with_string": str.startswith,
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_of,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring,
    "string_trim": lambda text: text.strip(_SPACE),
    "strings_quote": _quote,
    "list_join": _join,
    "list_join_string": _join,
}
