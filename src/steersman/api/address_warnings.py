"""Warnings about addresses and networks that are accepted, but not written as they should be.

Source: apimachinery `pkg/util/validation/ip.go` (GetWarningsForIP, GetWarningsForCIDR).
"""

from __future__ import annotations

import ipaddress

from steersman._util.gotext import quote
from steersman.api import checks

_MAPPED_BITS = 96  # of an IPv6 address that stands for an IPv4 one


def ip_warnings(field: str, value: str) -> list[str]:
    """What to say of an address at `field`; nothing of text that is none."""
    parsed = checks.parse_ip(value)
    if parsed is None or str(parsed) == value:
        return []
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else parsed
    if mapped is not None:
        return [f"{field}: non-standard IP address {quote(value)} is invalid: use {quote(str(mapped))}"]
    return [
        f"{field}: IPv6 address {quote(value)} should be in RFC 5952 canonical format ({quote(str(parsed))})",
    ]


def cidr_warnings(field: str, value: str) -> list[str]:
    """What to say of a network at `field`: bits after its prefix, leading zeros, mapped addresses, long forms."""
    given = checks.parse_network(value)
    if given is None:
        return []
    parsed, length = given
    address, _, bits = value.partition("/")
    network = ipaddress.ip_network(given, strict=False)
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    found = []
    if network.network_address != parsed:
        single = f"{mapped or parsed}/{parsed.max_prefixlen}"
        text = f"is ambiguous in this context (should be {quote(_shown(network))} or {quote(single)}?)"
        found.append(f"{field}: CIDR value {quote(value)} {text}")
    zeros = bits != str(length) or (parsed.version == 4 and str(parsed) != address)
    if zeros or mapped is not None:
        found.append(f"{field}: non-standard CIDR value {quote(value)} is invalid: use {quote(_shown(network))}")
    if not found and f"{parsed}/{bits}" != value:
        text = f"should be in RFC 5952 canonical format ({quote(f'{parsed}/{bits}')})"
        found.append(f"{field}: IPv6 CIDR value {quote(value)} {text}")
    return found


def _shown(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> str:
    """A network as Go writes it: a mapped one as the IPv4 network that it is."""
    start = network.network_address
    mapped = start.ipv4_mapped if isinstance(start, ipaddress.IPv6Address) else None
    return str(network) if mapped is None else f"{mapped}/{network.prefixlen - _MAPPED_BITS}"
