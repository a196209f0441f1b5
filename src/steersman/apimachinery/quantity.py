"""Resource quantities (`100m`, `1.5Gi`, `2e3`): exact values, and the canonical text in which the API answers them.

Source: apimachinery `pkg/api/resource/{quantity,amount,math,suffix}.go`.
"""

from __future__ import annotations

from functools import lru_cache, total_ordering

import re2

from steersman._util.dataclass import dataclass

DECIMAL_SI = "DecimalSI"
BINARY_SI = "BinarySI"
DECIMAL_EXPONENT = "DecimalExponent"

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {exponent: name for name, exponent in _DECIMAL.items()}
_BINARY_NAMES = {exponent: name for name, exponent in _BINARY.items()} | {0: ""}
_MAX_DIGITS = 18
_MAX_BINARY = (1 << 63) - 1
_MAX_EXPONENT = 1 << 17
_MAX_TEXT = 1024
_DIGITS_PER_BIT = 0.30103
_SPLIT = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"

_parts = re2.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_exponent = re2.compile(r"[eE]([-+]?[0-9]+)")


class QuantityError(ValueError):
    """Text that is no quantity; the message is upstream's."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """`unscaled * 10**scale`, written in one of three formats; `text` is kept when it was canonical already."""

    unscaled: int
    scale: int
    format: str
    text: str = ""

    def __str__(self) -> str:
        return self.text or _canonical(self)

    def __eq__(self, other: object) -> bool:
        return self._compare(other) == 0 if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self._compare(other) < 0

    def __hash__(self) -> int:
        return hash(_normalized(self.unscaled, self.scale))

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, in this quantity's format; in the other's when this is zero."""
        low = min(self.scale, other.scale)
        unscaled: int = self.unscaled * 10 ** (self.scale - low) + other.unscaled * 10 ** (other.scale - low)
        return Quantity(unscaled, low, self.format if self.unscaled else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return self + Quantity(-other.unscaled, other.scale, other.format)

    def rounded_up(self, scale: int) -> int:
        """The quantity in units of `10**scale` (0: whole ones, -3: thousandths), rounded up."""
        if self.scale >= scale:
            whole: int = self.unscaled * 10 ** (self.scale - scale)
            return whole
        down: int = -self.unscaled // 10 ** (scale - self.scale)
        return -down

    def _compare(self, other: Quantity) -> int:
        if abs(self.scale - other.scale) > _MAX_TEXT:
            order = _by_size(self, other)
            if order:
                return order
        low = min(self.scale, other.scale)
        mine: int = self.unscaled * 10 ** (self.scale - low)
        theirs: int = other.unscaled * 10 ** (other.scale - low)
        return (mine > theirs) - (mine < theirs)


def parse(text: str) -> Quantity:
    """The quantity that `text` names; QuantityError with upstream's words otherwise, and for more than 1024 digits."""
    if len(text) > _MAX_TEXT:
        raise QuantityError("unable to parse numeric part of quantity")
    return _parse(text)


@lru_cache(maxsize=1024)
def _parse(text: str) -> Quantity:
    match = _parts.fullmatch(text)
    if not text or not match:
        raise QuantityError(f"quantities must match the regular expression '{_SPLIT}'")
    sign, whole, fraction, suffix = (group or "" for group in match.groups())
    base, exponent, form = _suffix(suffix)
    digits = whole + fraction
    unscaled = int(digits or "0") * (2**exponent if base == 2 else 1)
    scale = -len(fraction) + (exponent if base == 10 else 0)
    if sign == "-":
        unscaled = -unscaled
    if not unscaled:
        return Quantity(0, 0, form)
    if _fits_fast(whole or "0", fraction, base, exponent, scale):
        return Quantity(
            unscaled, scale, form, text if _is_canonical(whole or "0", fraction, form, exponent, scale) else ""
        )
    return _capped(unscaled, scale, form)


def canonical(text: str) -> str:
    """The text in which the API answers the quantity `text`."""
    return str(parse(text))


def _suffix(suffix: str) -> tuple[int, int, str]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], DECIMAL_SI
    if suffix in _BINARY:
        return 2, _BINARY[suffix], BINARY_SI
    match = _exponent.fullmatch(suffix)
    if not match or abs(int(match.group(1))) > _MAX_EXPONENT:
        raise QuantityError("unable to parse quantity's suffix")
    return 10, int(match.group(1)), DECIMAL_EXPONENT


def _fits_fast(whole: str, fraction: str, base: int, exponent: int, scale: int) -> bool:
    """Whether upstream keeps the amount in an int64, and so the text it was given in."""
    if base == 2:
        if fraction:
            return False
        return 15 - len(whole) - exponent * 3 // 10 - 1 >= 0
    return _MAX_DIGITS - len(whole) - len(fraction) >= 0 and scale >= -9


def _is_canonical(whole: str, fraction: str, form: str, exponent: int, scale: int) -> bool:
    shifted = whole + fraction
    if form == BINARY_SI:
        return exponent % 10 == 0 and int(shifted) & 7 != 0
    return scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"


def _capped(unscaled: int, scale: int, form: str) -> Quantity:
    """Rounded away from zero to a billionth; binary amounts end at 2**63-1."""
    if scale < -9:
        quotient, remainder = divmod(abs(unscaled), 10 ** (-9 - scale))
        quotient += 1 if remainder else 0
        unscaled, scale = (quotient if unscaled > 0 else -quotient), -9
    if form == BINARY_SI:
        magnitude = Quantity(abs(unscaled), scale, form)
        if magnitude > Quantity(_MAX_BINARY, 0, form):
            unscaled, scale = (_MAX_BINARY if unscaled > 0 else -_MAX_BINARY), 0
        elif magnitude < Quantity(1, 0, form):
            form = DECIMAL_SI
    return Quantity(unscaled, scale, form)


def _by_size(left: Quantity, right: Quantity) -> int:
    """The order of quantities as far as their signs and numbers of digits tell it, else 0."""
    signs = [(each.unscaled > 0) - (each.unscaled < 0) for each in (left, right)]
    if signs[0] != signs[1] or not signs[0]:
        return signs[0] - signs[1]
    digits = [each.unscaled.bit_length() * _DIGITS_PER_BIT + each.scale for each in (left, right)]
    if abs(digits[0] - digits[1]) < 2:
        return 0
    return signs[0] if digits[0] > digits[1] else -signs[0]


def _normalized(unscaled: int, scale: int) -> tuple[int, int]:
    if not unscaled:
        return 0, 0
    while unscaled % 10 == 0:
        unscaled //= 10
        scale += 1
    return unscaled, scale


def _canonical(quantity: Quantity) -> str:
    if not quantity.unscaled:
        return "0"
    unscaled, scale = _normalized(quantity.unscaled, quantity.scale)
    form = quantity.format
    if form == BINARY_SI:
        if scale >= 0 and abs(unscaled * 10**scale) >= 1024:
            return _binary(unscaled * 10**scale)
        form = DECIMAL_SI
    shift = scale % 3
    unscaled *= 10**shift
    scale -= shift
    if form == DECIMAL_SI:
        return f"{unscaled}{_DECIMAL_NAMES.get(scale, '')}"
    return f"{unscaled}e{scale}" if scale else str(unscaled)


def _binary(value: int) -> str:
    exponent = 0
    while value % 1024 == 0 and exponent < 60:
        value //= 1024
        exponent += 10
    return f"{value}{_BINARY_NAMES[exponent]}"
