"""Checks that many built-in kinds share. Each gives the errors it found, with upstream's words.

Source: kubernetes `pkg/apis/core/validation/validation.go`; apimachinery `pkg/util/validation/{validation,ip}.go`.
"""

from __future__ import annotations

import ipaddress
import string
from collections.abc import Collection, Sequence
from typing import Any

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError

MAX_INT32 = 2**31 - 1
_PORT_NAME = frozenset(string.ascii_lowercase + string.digits + "-")
_NOT_NEGATIVE = "must be greater than or equal to 0"
_PERCENT = "a valid percent string must be a numeric string followed by an ending '%'"
_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def nonnegative(value: int | None, field: str) -> list[FieldError]:
    """A number that may not be below zero; None is no number."""
    return [fe.invalid(field, value, _NOT_NEGATIVE)] if value is not None and value < 0 else []


def in_range(value: int, low: int, high: int, field: str) -> list[FieldError]:
    if low <= value <= high:
        return []
    return [fe.invalid(field, value, f"must be between {low} and {high}, inclusive")]


def port_number(value: int, field: str) -> list[FieldError]:
    return in_range(value, 1, 65535, field)


def port_name(value: str, field: str) -> list[FieldError]:
    """A port's name by RFC 6335."""
    found = []
    if len(value.encode()) > 15:
        found.append("must be no more than 15 characters")
    if not value or not _PORT_NAME.issuperset(value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any(char in string.ascii_lowercase for char in value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return [fe.invalid(field, value, text) for text in found]


def port(value: Any, field: str) -> list[FieldError]:
    """An IntOrString that names a port."""
    return port_name(value, field) if isinstance(value, str) else port_number(value or 0, field)


def one_of(value: str | None, supported: Sequence[str], field: str) -> list[FieldError]:
    """A value that must be there, and be one of those supported."""
    if not value:
        return [fe.required(field)]
    return [] if value in supported else [fe.not_supported(field, value, supported)]


def supported(value: str | None, allowed: Sequence[str], field: str) -> list[FieldError]:
    """A value that must be one of those allowed, even when it is empty."""
    return [] if (value or "") in allowed else [fe.not_supported(field, value or "", allowed)]


def dns_label(value: str, field: str) -> list[FieldError]:
    return [fe.invalid(field, value, text) for text in names.dns1123_label(value)]


def dns_subdomain(value: str, field: str) -> list[FieldError]:
    return [fe.invalid(field, value, text) for text in names.dns1123_subdomain(value)]


def qualified_name(value: str, field: str) -> list[FieldError]:
    return [fe.invalid(field, value, text) for text in names.qualified_name(value)]


def is_percent(value: str) -> bool:
    return value[-1:] == "%" and value[:-1].isascii() and value[:-1].isdigit()


def int_or_percent(value: Any, field: str) -> list[FieldError]:
    """A non-negative number, or a percentage."""
    if not isinstance(value, str):
        return nonnegative(value, field)
    if is_percent(value):
        return []
    return [fe.invalid(field, value, names.regex_message(_PERCENT, "[0-9]+%", "1%", "93%"))]


def at_most_100_percent(value: Any, field: str) -> list[FieldError]:
    if isinstance(value, str) and is_percent(value) and int(value[:-1]) > 100:
        return [fe.invalid(field, value, "must not be greater than 100%")]
    return []


def amount(value: Any) -> int:
    """The number of an IntOrString, that of a percentage too; 0 for other text."""
    if isinstance(value, str):
        digits = value.removesuffix("%")
        return int(digits) if digits.isascii() and digits.isdigit() else 0
    return value or 0


def parse_ip(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address as Go's lenient parser takes it: leading zeros are dropped, zones are not allowed."""
    if "%" in value:
        return None
    if ":" not in value:
        parts = value.split(".")
        if not all(part.isascii() and part.isdigit() for part in parts):
            return None
        value = ".".join(part.lstrip("0") or "0" for part in parts)
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None


def ip(value: str, field: str, known: Collection[str] = ()) -> list[FieldError]:
    """An IP address, strictly written; those `known` were accepted before, and stay."""
    parsed = parse_ip(value)
    if value in known:
        return []
    if parsed is None:
        return [fe.invalid(field, value, _IP)]
    if _has_zeros(value, parsed):
        return [fe.invalid(field, value, "must not have leading 0s")]
    if is_mapped(parsed):
        return [fe.invalid(field, value, "must not be an IPv4-mapped IPv6 address")]
    return []


def is_mapped(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an IPv6 address stands for an IPv4 one."""
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def _has_zeros(text: str, parsed: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return parsed.version == 4 and str(parsed) != text


def cidr(value: str, field: str, known: Collection[str] = ()) -> list[FieldError]:
    """An IP network, strictly written; those `known` were accepted before, and stay."""
    if value in known:
        return []
    parsed = parse_network(value)
    if parsed is None:
        return [fe.invalid(field, value, _CIDR)]
    address, bits = parsed
    text, _, digits = value.partition("/")
    if _has_zeros(text, address) or digits != str(bits):
        return [fe.invalid(field, value, "must not have leading 0s in IP or prefix length")]
    if is_mapped(address):
        return [fe.invalid(field, value, "must not have an IPv4-mapped IPv6 address")]
    if ipaddress.ip_network((address, bits), strict=False).network_address != address:
        return [fe.invalid(field, value, "must not have bits set beyond the prefix length")]
    return []


def parse_network(value: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int] | None:
    """An address and the length of its prefix, as Go's lenient parser takes a network."""
    address, slash, bits = value.partition("/")
    parsed = parse_ip(address)
    if parsed is None or not slash or not (bits.isascii() and bits.isdigit()) or int(bits) > parsed.max_prefixlen:
        return None
    return parsed, int(bits)


def immutable(new: Any, old: Any, field: str) -> list[FieldError]:
    """A value that may not change; null and empty are the same."""
    return [] if (new or None) == (old or None) else [fe.invalid(field, new, "field is immutable")]
