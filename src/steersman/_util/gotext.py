"""Values as Go prints them: the API quotes them in its messages."""

from __future__ import annotations

from decimal import Decimal

ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
"""What Go writes with a backslash between double quotes."""


def quote(text: str) -> str:
    """Text in double quotes as Go's %q prints it. A byte that is no UTF-8 is a lone surrogate (surrogateescape)."""
    out = ['"']
    for ch in text:
        if ch in ESCAPES:
            out.append(ESCAPES[ch])
        elif ch.isprintable():
            out.append(ch)
        elif ord(ch) < 0x80 or 0xDC80 <= ord(ch) <= 0xDCFF:
            out.append(f"\\x{ord(ch) & 0xFF:02x}")
        elif ord(ch) < 0x10000:
            out.append(f"\\u{ord(ch):04x}")
        else:
            out.append(f"\\U{ord(ch):08x}")
    out.append('"')
    return "".join(out)


def format_float(value: float) -> str:
    """A float as Go's %v prints it: shortest digits, with an exponent from 1e+06 and below 1e-04."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[str(value)]
    return _shortest(value, -4, 6)


def format_json_float(value: float, *, padded: bool = False) -> str:
    """A finite float as Go's encoding/json writes it: shortest digits, with an exponent from 1e+21 and below 1e-6.

    Exponents have as few digits as they need, or (`padded`, as other encoders of JSON write them) two at least.
    """
    text = _shortest(value, -6, 21)
    return f"{text[:-2]}{text[-1]}" if text[-4:-1] == "e-0" and not padded else text


def _shortest(value: float, least: int, most: int) -> str:
    """The fewest digits that mean this float, with an exponent below `least` and from `most` on."""
    if value == 0:
        return str(value).removesuffix(".0")
    sign, digit_tuple, power = Decimal(repr(value)).normalize().as_tuple()
    digits = "".join(map(str, digit_tuple))
    exponent = len(digits) - 1 + int(power)
    if exponent < least or exponent >= most:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        text = f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    elif exponent < 0:
        text = f"0.{'0' * (-exponent - 1)}{digits}"
    elif len(digits) > exponent + 1:
        text = f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    else:
        text = digits.ljust(exponent + 1, "0")
    return "-" + text if sign else text
