"""IP addresses, CIDR blocks and URLs.

Source: apiserver `pkg/cel/library/{ip,cidr,urls}.go`; Go `net/netip`, `net/url`.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from steersman._util.gotext import quote
from steersman.apimachinery.schema.addresses import AddressError, parse_address, parse_prefix
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError, no_such_overload
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.cel.values import Opaque
from steersman.apimachinery.schema.urls import GoUrl, UrlError, parse_request_uri, parse_url

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Ip(Opaque):
    """An IP address."""

    address: Address
    cel_type = t.IP
    go_type = "cel.IP"
    comparable = True

    def cost_size(self) -> int:
        return self.address.max_prefixlen // 8


@dataclass(frozen=True, slots=True)
class Cidr(Opaque):
    """An address with the length of its network's prefix."""

    address: Address
    bits: int
    cel_type = t.CIDR
    go_type = "cel.CIDR"
    comparable = True

    def cost_size(self) -> int:
        return (self.bits + 7) // 8

    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network((self.address, self.bits), strict=False)


@dataclass(frozen=True, slots=True)
class Url(Opaque):
    """A URL."""

    url: GoUrl
    cel_type = t.URL
    go_type = "cel.URL"

    def equals(self, other: Any) -> bool:
        if other.__class__ is not Url:
            return Opaque.equals(self, other)
        return str(self.url) == str(other.url)


def _parse_ip(text: str) -> Address:
    try:
        address, zone = parse_address(text)
    except AddressError as error:
        raise CelError(f"IP Address {quote(text)} parse error during conversion from string: {error}") from None
    if zone:
        raise CelError(f"IP address {quote(text)} with zone value is not allowed")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def _string_to_ip(text: str) -> Ip:
    return Ip(_parse_ip(text))


def _succeeds(parse: Function) -> Function:
    def test(*args: Any) -> bool:
        try:
            parse(*args)
        except CelError:
            return False
        return True

    return test


def _is_global_unicast(ip: Ip) -> bool:
    address = ip.address
    if address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local:
        return False
    return str(address) != "255.255.255.255"


def _is_link_local_multicast(ip: Ip) -> bool:
    packed = ip.address.packed
    if ip.address.version == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 2


def _string_to_cidr(text: str) -> Cidr:
    words = "network address parse error during conversion from string: "
    try:
        address, bits = parse_prefix(text)
    except AddressError as error:
        raise CelError(f"{words}{words}{error}") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f"{words}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Cidr(address, bits)


def _contains_ip(cidr: Cidr, ip: Ip) -> bool:
    return ip.address.version == cidr.address.version and ip.address in cidr.network()


def _contains_ip_text(cidr: Cidr, text: str) -> bool:
    try:
        return _contains_ip(cidr, _string_to_ip(text))
    except CelError:
        # upstream looks for an address in the error, and finds none
        raise no_such_overload() from None


def _contains_cidr(cidr: Cidr, other: Cidr) -> bool:
    if cidr.address.version != other.address.version:
        return False
    return cidr.bits <= other.bits and cidr.network().overlaps(other.network())


def _masked(cidr: Cidr) -> Cidr:
    return Cidr(cidr.network().network_address, cidr.bits)


def format_ip(address: Address) -> str:
    """The canonical text of an address."""
    return str(address)


def _string_to_url(text: str) -> Url:
    try:
        parse_request_uri(text)
        return Url(parse_url(text))
    except UrlError as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from None


def _request_uri(text: str) -> None:
    try:
        parse_request_uri(text)
    except UrlError as error:
        raise CelError(str(error)) from None


def _query(url: Url) -> dict[str, list[str]]:
    """Keys and values; parts with a semicolon or a bad escape do not count."""
    out: dict[str, list[str]] = {}
    for part in url.url.query.split("&"):
        if not part or ";" in part:
            continue
        key, _, value = part.partition("=")
        if not (_is_escaped(key) and _is_escaped(value)):
            continue
        out.setdefault(_unescape(key), []).append(_unescape(value))
    return out


def _is_escaped(text: str) -> bool:
    parts = text.split("%")[1:]
    return all(len(part) >= 2 and all(ch in "0123456789abcdefABCDEF" for ch in part[:2]) for part in parts)


def _unescape(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


OVERLOADS: dict[str, Function] = {
    "string_to_ip": _string_to_ip,
    "ip_family": lambda ip: ip.address.version,
    "ip_is_canonical": lambda text: format_ip(_parse_ip(text)) == text,
    "ip_is_unspecified": lambda ip: ip.address.is_unspecified,
    "ip_is_loopback": lambda ip: ip.address.is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": lambda ip: ip.address.is_link_local,
    "ip_is_global_unicast": _is_global_unicast,
    "is_ip": _succeeds(_parse_ip),
    "ip_to_string": lambda ip: format_ip(ip.address),
    "string_to_cidr": _string_to_cidr,
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_ip_ip": _contains_ip,
    "cidr_contains_cidr_string": lambda cidr, text: _contains_cidr(cidr, _string_to_cidr(text)),
    "cidr_contains_cidr": _contains_cidr,
    "cidr_ip": lambda cidr: Ip(cidr.address),
    "cidr_prefix_length": lambda cidr: cidr.bits,
    "cidr_masked": _masked,
    "is_cidr": _succeeds(_string_to_cidr),
    "cidr_to_string": lambda cidr: f"{format_ip(cidr.address)}/{cidr.bits}",
    "string_to_url": _string_to_url,
    "url_get_scheme": lambda url: url.url.scheme,
    "url_get_host": lambda url: url.url.host,
    "url_get_hostname": lambda url: url.url.hostname(),
    "url_get_port": lambda url: url.url.port(),
    "url_get_escaped_path": lambda url: url.url.escaped_path(),
    "url_get_query": _query,
    "is_url_string": _succeeds(_request_uri),
}
