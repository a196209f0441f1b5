"""IP addresses and prefixes, accepted and refused as Go's net/netip does.

Source: Go `net/netip/netip.go` (ParseAddr, ParsePrefix).
"""

from __future__ import annotations

import ipaddress

from steersman._util.gotext import quote

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressError(ValueError):
    """The text is no address; the message is Go's."""


def parse_address(text: str) -> tuple[Address, str]:
    """The address, and its zone. Raises AddressError."""
    for ch in text:
        if ch == ".":
            return ipaddress.IPv4Address(_octets(text, text)), ""
        if ch == ":":
            return _parse_ipv6(text)
        if ch == "%":
            raise _fail(text, "missing IPv6 address")
    raise _fail(text, "unable to parse IP")


def parse_prefix(text: str) -> tuple[Address, int]:
    """The address and the number of bits. Raises AddressError."""

    def fail(why: str) -> AddressError:
        return AddressError(f"netip.ParsePrefix({quote(text)}): {why}")

    head, slash, tail = text.rpartition("/")
    if not slash:
        raise fail("no '/'")
    try:
        address, zone = parse_address(head)
    except AddressError as error:
        raise fail(str(error)) from None
    if zone:
        raise fail("IPv6 zones cannot be present in a prefix")
    if not (tail.isascii() and tail.isdigit()) or (len(tail) > 1 and tail[0] == "0"):
        raise fail("bad bits after slash: " + quote(tail))
    if len(tail) > 3 or int(tail) > address.max_prefixlen:
        raise fail("prefix length out of range")
    return address, int(tail)


def _fail(text: str, why: str, at: str = "") -> AddressError:
    where = f" (at {quote(at)})" if at else ""
    return AddressError(f"ParseAddr({quote(text)}): {why}{where}")


def _octets(text: str, whole: str) -> bytes:
    """The four fields of an IPv4 address."""
    fields: list[int] = []
    value = digits = 0
    for index, ch in enumerate(text):
        if "0" <= ch <= "9":
            if digits == 1 and value == 0:
                raise _fail(whole, "IPv4 field has octet with leading zero")
            value = value * 10 + int(ch)
            digits += 1
            if value > 255:
                raise _fail(whole, "IPv4 field has value >255")
        elif ch == ".":
            if index in (0, len(text) - 1) or text[index - 1] == ".":
                raise _fail(whole, "IPv4 field must have at least one digit", text[index:])
            if len(fields) == 3:
                raise _fail(whole, "IPv4 address too long")
            fields.append(value)
            value = digits = 0
        else:
            raise _fail(whole, "unexpected character", text[index:])
    if len(fields) < 3:
        raise _fail(whole, "IPv4 address too short")
    return bytes([*fields, value])


def _parse_ipv6(text: str) -> tuple[Address, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _fail(text, "zone must be a non-empty string")
    ellipsis = -1
    out = bytearray()
    if rest.startswith("::"):
        ellipsis = 0
        rest = rest[2:]
        if not rest:
            return ipaddress.IPv6Address(bytes(16)), zone
    while len(out) < 16:
        length = _hex_length(rest, text)
        if rest[length : length + 1] == ".":
            if ellipsis < 0 and len(out) != 12:
                raise _fail(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
            if len(out) + 4 > 16:
                raise _fail(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            out += _octets(rest, text)
            rest = ""
            break
        out += int(rest[:length], 16).to_bytes(2, "big")
        rest = rest[length:]
        if not rest:
            break
        rest = _after_colon(rest, text)
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _fail(text, "multiple :: in address", rest)
            ellipsis = len(out)
            rest = rest[1:]
            if not rest:
                break
    if rest:
        raise _fail(text, "trailing garbage after address", rest)
    return ipaddress.IPv6Address(_expanded(out, ellipsis, text)), zone


def _after_colon(rest: str, text: str) -> str:
    if rest[0] != ":":
        raise _fail(text, "unexpected character, want colon", rest)
    if len(rest) == 1:
        raise _fail(text, "colon must be followed by more characters", rest)
    return rest[1:]


def _hex_length(rest: str, text: str) -> int:
    """How many digits a field has."""
    length = 0
    while length < len(rest) and rest[length] in "0123456789abcdefABCDEF":
        length += 1
        if length > 4:
            raise _fail(text, "each group must have 4 or less digits", rest)
    if not length:
        raise _fail(text, "each colon-separated field must have at least one digit", rest)
    return length


def _expanded(out: bytearray, ellipsis: int, text: str) -> bytes:
    if len(out) < 16:
        if ellipsis < 0:
            raise _fail(text, "address string too short")
        return bytes(out[:ellipsis]) + bytes(16 - len(out)) + bytes(out[ellipsis:])
    if ellipsis >= 0:
        raise _fail(text, "the :: must expand to at least one field of zeros")
    return bytes(out)
