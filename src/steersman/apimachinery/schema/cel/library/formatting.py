"""string.format(): `%s %d %f %e %b %x %X %o`, with numbers as in the locale en_US.

Source: cel-go `ext/formatting.go`; golang.org/x/text/message for decimal and scientific numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from steersman._util.gotext import quote
from steersman.apimachinery.schema.cel.ast import Expr, ListExpr, MapExpr
from steersman.apimachinery.schema.cel.costs import MAX_TEXT
from steersman.apimachinery.schema.cel.errors import CelError, CostLimitExceeded
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.cel.library.standard import string_to_double, to_text
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import (
    Duration,
    Timestamp,
    Uint,
    is_list,
    is_map,
    items_of,
    pairs_of,
    type_of,
)

_DEFAULT_PRECISION = 6
_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_WRONG = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps, was given ",
    "d": "decimal clause can only be used on integers, was given ",
    "f": "fixed-point clause can only be used on doubles, was given ",
    "e": "scientific clause can only be used on doubles, was given ",
    "b": "only integers and bools can be formatted as binary, was given ",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on integers, was given ",
}
_KINDS = {
    "s": frozenset(
        [
            "list",
            "map",
            "int",
            "uint",
            "double",
            "bool",
            "string",
            "timestamp",
            "bytes",
            "duration",
            "type",
            "null_type",
        ]
    ),
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "o": frozenset({"int", "uint"}),
}
_NOT_NUMBERS = ("NaN", "Infinity", "-Infinity")


class FormatError(ValueError):
    """A format string that does not fit its arguments; `node` is the argument, if one is to blame."""

    def __init__(self, message: str, node: Expr | None = None) -> None:
        super().__init__(message)
        self.node = node


def format_string(text: str, args: Any) -> str:
    """text.format(args)."""
    values = items_of(args)

    room = MAX_TEXT

    def clause(index: int, verb: str, precision: int | None) -> str:
        nonlocal room
        room -= _size(values[index])
        if room < 0:
            raise CostLimitExceeded
        return _format_clause(values[index], verb, precision)

    try:
        return _interpolate(text, len(values), clause)
    except FormatError as error:
        raise CelError(str(error)) from None


def _size(value: Any) -> int:
    """The size of a value's text, roughly, and none too exact beyond the limit."""
    total = 0
    pending = [value]
    while pending and total <= MAX_TEXT:
        item = pending.pop()
        if is_list(item):
            pending.extend(items_of(item))
            total += len(item)
        elif is_map(item):
            pending.extend(part for pair in pairs_of(item) for part in pair)
            total += len(item)
        else:
            total += len(item) if item.__class__ in (str, bytes) else 1
    return total


def check_format(text: str, args: Sequence[Expr]) -> int:
    """Check a format string against the types of its arguments; how many of them it uses. Raises FormatError."""
    used = 0

    def clause(index: int, verb: str, precision: int | None) -> str:
        nonlocal used
        used += 1
        _check_clause(args[index], verb.lower())
        return ""

    _interpolate(text, len(args), clause, checking=True)
    return used


def _check_clause(arg: Expr, verb: str) -> None:
    culprit = _culprit(arg) if verb == "s" else None if _fits(arg, verb) else arg
    if culprit is not None:
        raise FormatError(f"error during formatting: {_WRONG[verb]}{culprit.type.name}", culprit)


def _fits(arg: Expr, verb: str) -> bool:
    return arg.type.kind == "dyn" or arg.type.kind in _KINDS[verb]


def _culprit(arg: Expr) -> Expr | None:
    """The part of an argument that %s cannot print."""
    if not _fits(arg, "s"):
        return arg
    if isinstance(arg, (ListExpr, MapExpr)):
        return next(filter(None, map(_culprit, arg.children())), None)
    return None


def _interpolate(
    text: str, count: int, clause: Callable[[int, str, int | None], str], *, checking: bool = False
) -> str:
    out = []
    at = used = 0
    while at < len(text):
        if text[at] != "%":
            out.append(text[at])
            at += 1
        elif text[at : at + 2] == "%%":
            out.append("%")
            at += 2
        else:
            problems = [f"index {used} out of range"] if used >= count else []
            if at + 1 >= len(text):
                problems.insert(0 if checking else len(problems), "unexpected end of string")
            if problems:
                raise FormatError(problems[0])
            verb, precision, at = _read_clause(text, at + 1)
            out.append(clause(used, verb, precision))
            used += 1
    return "".join(out)


def _read_clause(text: str, at: int) -> tuple[str, int | None, int]:
    """(verb, precision, where the clause ends)."""
    precision: int | None = None
    words = "could not parse formatting clause: "
    if text[at] == ".":
        start = at = at + 1
        while at < len(text) and "0" <= text[at] <= "9":
            at += 1
        if at >= len(text):
            raise FormatError(f"{words}error while parsing precision: could not find end of precision specifier")
        digits = text[start:at]
        if not digits or len(digits) > 18:
            reason = "invalid syntax" if not digits else "value out of range"
            converting = f'error while converting precision to integer: strconv.Atoi: parsing "{digits}": {reason}'
            raise FormatError(f"{words}error while parsing precision: {converting}")
        precision = int(digits)
    verb = text[at]
    if verb.lower() not in _KINDS or verb in "SDFEBO":
        raise FormatError(f'{words}unrecognized formatting clause "{verb}"')
    return verb, precision, at + 1


def _format_clause(value: Any, verb: str, precision: int | None) -> str:
    kind = type_of(value)
    lower = verb.lower()
    if kind.kind not in _KINDS[lower] or (lower in "fe" and value.__class__ is str and value not in _NOT_NUMBERS):
        raise FormatError(f"error during formatting: {_WRONG[lower]}{kind.name}")
    if lower == "s":
        return _plain(value)
    if lower == "d":
        return str(int(value))
    if lower in "fe":
        number = string_to_double(value) if value.__class__ is str else value
        places = _DEFAULT_PRECISION if precision is None else min(precision, 100_000)
        # no negative zero
        number += 0.0
        return _fixed(number, places) if lower == "f" else _scientific(number, places)
    if lower == "x":
        return _hexadecimal(value, upper=verb == "X")
    return f"{int(value):{lower}}"


def _hexadecimal(value: Any, *, upper: bool) -> str:
    if value.__class__ is str:
        value = value.encode("utf-8", "surrogatepass")
    text = value.hex() if value.__class__ is bytes else f"{int(value):x}"
    return text.upper() if upper else str(text)


def _not_finite(number: float) -> str:
    if number != number:
        return "NaN"
    return "∞" if number > 0 else "-∞"


def _is_finite(number: float) -> bool:
    return number - number == 0


def _fixed(number: float, places: int) -> str:
    return f"{number:,.{places % 256}f}" if _is_finite(number) else _not_finite(number)


def _scientific(number: float, width: int) -> str:
    """Always with six decimals; what the clause calls precision is the width."""
    if not _is_finite(number):
        return _not_finite(number).rjust(width)
    mantissa, _, exponent = f"{number:.6e}".partition("e")
    power = int(exponent)
    shown = f"{'-' if power < 0 else ''}{abs(power):02d}".translate(_SUPERSCRIPT)
    return f"{mantissa}×10{shown}".rjust(width)


def _plain(value: Any) -> str:
    """A value outside of containers."""
    if is_list(value):
        return f"[{', '.join(map(_nested, items_of(value)))}]"
    if is_map(value):
        entries = sorted((_nested_key(key), _nested(item)) for key, item in pairs_of(value))
        return "{" + ", ".join(f"{key}:{item}" for key, item in entries) + "}"
    if value.__class__ is bytes:
        try:
            return to_text(value)
        except CelError as error:
            raise FormatError(f'error during formatting: could not convert argument "{error}" to string') from None
    return "null" if value is None else to_text(value)


def _nested_key(key: Any) -> str:
    if key.__class__ not in (str, bool, int, Uint):
        raise FormatError(f"error during formatting: no formatting function for map key of type {type_of(key).name}")
    return _nested(key)


def _nested(value: Any) -> str:
    """A value inside a list or map, as a CEL literal."""
    kind = value.__class__
    if kind is str:
        return quote(value)
    if kind is bytes:
        return "b" + quote(to_text(value))
    if kind is float:
        return f"{Decimal(value):.6f}" if _is_finite(value) else f'"{_go_infinity(value)}"'
    if kind is Timestamp:
        return f"timestamp({quote(to_text(value))})"
    if kind is Duration:
        return f"duration({quote(to_text(value))})"
    if kind in (int, Uint, bool, Type) or value is None or is_list(value) or is_map(value):
        return _plain(value)
    raise FormatError(f"error during formatting: no formatting function for {type_of(value).name}")


def _go_infinity(value: float) -> str:
    if value != value:
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


OVERLOADS: dict[str, Function] = {"string_format": format_string}
