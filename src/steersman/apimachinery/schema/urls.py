"""URLs, taken apart and put together as Go's net/url does.

Source: Go `net/url/url.go` (Parse, ParseRequestURI).
"""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import unquote_to_bytes

from steersman._util.dataclass import dataclass
from steersman._util.gotext import quote
from steersman._util.lazily import lazily
from steersman.apimachinery.schema.addresses import AddressError, parse_address

_HEX = "0123456789abcdefABCDEF"
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_SCHEME = lazily(re.compile, r"([A-Za-z][A-Za-z0-9+.-]*):")
_USERINFO = lazily(re.compile, r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_HOST_EXTRA = frozenset("!$&'()*+,;=:[]<>\"")


class UrlError(ValueError):
    """The text is no URL; the message is Go's."""


@dataclass(frozen=True, slots=True)
class GoUrl:
    """The parts of a URL; `raw_path` is the path as it was written, `path` without escapes."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    force_query: bool = False
    query: str = ""
    fragment: str = ""
    omit_host: bool = False

    def hostname(self) -> str:
        return _split_port(self.host)[0]

    def port(self) -> str:
        return _split_port(self.host)[1]

    def escaped_path(self) -> str:
        if self.raw_path and _valid_path(self.raw_path):
            return self.raw_path
        return "*" if self.path == "*" else escape_path(self.path)

    def __str__(self) -> str:
        out = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            out += self.opaque
        else:
            if self.scheme or self.host or self.user is not None:
                if self.host or self.user is not None or (self.scheme and self.path and not self.omit_host):
                    out += "//"
                if self.user is not None:
                    out += self.user + "@"
                out += self.host
            path = self.escaped_path()
            if path and path[0] != "/" and self.host:
                out += "/"
            out += path
        if self.force_query or self.query:
            out += "?" + self.query
        return f"{out}#{self.fragment}" if self.fragment else out


def parse_url(text: str) -> GoUrl:
    """A URL reference (url.Parse). Raises UrlError."""
    body, _, fragment = text.partition("#")
    url = _told(body, via_request=False)
    if not fragment:
        return url
    try:
        _check_escapes(fragment)
    except UrlError as error:
        raise UrlError(f"parse {quote(text)}: {error}") from None
    return replace(url, fragment=fragment)


def parse_request_uri(text: str) -> GoUrl:
    """An absolute URI or path (url.ParseRequestURI). Raises UrlError."""
    return _told(text, via_request=True)


def _told(text: str, *, via_request: bool) -> GoUrl:
    """A URL; what is wrong with it is told with its text."""
    try:
        return _parse(text, via_request=via_request)
    except UrlError as error:
        raise UrlError(f"parse {quote(text)}: {error}") from None


def _parse(text: str, *, via_request: bool) -> GoUrl:
    if any(ch < " " or ch == "\x7f" for ch in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and via_request:
        raise UrlError("empty url")
    if text == "*":
        return GoUrl(path="*")
    scheme, rest = _scheme(text)
    force_query = rest.endswith("?") and rest.count("?") == 1
    query = ""
    if force_query:
        rest = rest[:-1]
    else:
        rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return GoUrl(scheme=scheme, opaque=rest, force_query=force_query, query=query)
        if via_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user: str | None = None
    host = ""
    omit_host = False
    if (scheme or (not via_request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _authority(authority, scheme)
    elif scheme and rest.startswith("/"):
        omit_host = True
    _check_escapes(rest)
    path = unquote_to_bytes(rest).decode("utf-8", "surrogateescape")
    raw_path = "" if rest == escape_path(path) else rest
    return GoUrl(scheme, "", user, host, path, raw_path, force_query, query, "", omit_host)


def _scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    return (match[1].lower(), text[match.end() :]) if match else ("", text)


def _check_escapes(text: str) -> None:
    at = text.find("%")
    while at >= 0:
        if not _is_escape(text, at):
            raise _bad_escape(text, at)
        at = text.find("%", at + 3)


def _is_escape(text: str, at: int) -> bool:
    return len(text) >= at + 3 and text[at + 1] in _HEX and text[at + 2] in _HEX


def _bad_escape(text: str, at: int) -> UrlError:
    """The error that quotes what stands at the percent sign: three bytes, even of longer characters."""
    said = text[at : at + 3].encode("utf-8", "surrogateescape")[:3].decode("utf-8", "surrogateescape")
    return UrlError(f"invalid URL escape {quote(said)}")


def _authority(authority: str, scheme: str) -> tuple[str | None, str]:
    userinfo, at, hostport = authority.rpartition("@")
    host = _host(hostport, scheme)
    if not at:
        return None, host
    if not _USERINFO.fullmatch(userinfo):
        raise UrlError("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(":")
    _check_escapes(name)
    _check_escapes(password)
    return colon.join(
        _escaped(unquote_to_bytes(part), "$&+,;=") for part in ((name, password) if colon else (name,))
    ), host


def _host(text: str, scheme: str) -> str:
    opening = text.rfind("[")
    if opening > 0:
        raise UrlError("invalid IP-literal")
    if opening == 0:
        return _literal_host(text)
    if ":" in text:
        # other schemes may list hosts with ports
        _check_port(text[text.index(":") if scheme in ("http", "https") else text.rindex(":") :])
    _check_host(text)
    return _unescaped(text)


def _literal_host(text: str) -> str:
    """A host in brackets: an IPv6 address, maybe with a zone."""
    end = text.rfind("]")
    if end < 0:
        raise UrlError("missing ']' in host")
    _check_port(text[end + 1 :])
    name, zone, rest = text[1:end].partition("%25")
    _check_host(name)
    _check_escapes(rest)
    host = _unescaped(name) + ("%" + _unescaped(rest) if zone else "")
    try:
        address, _ = parse_address(host)
    except AddressError as error:
        raise UrlError(f"invalid host: {error}") from None
    if address.version == 4:
        raise UrlError("invalid IP-literal")
    return f"[{host}]{text[end + 1 :]}"


def _check_port(text: str) -> None:
    if not _valid_port(text):
        raise UrlError(f"invalid port {quote(text)} after host")


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")


def _check_host(text: str) -> None:
    """The first thing that is wrong, from the left; of what is ASCII only a percent sign may be escaped."""
    at = 0
    while at < len(text):
        ch = text[at]
        if ch == "%":
            if not _is_escape(text, at) or (text[at + 1] in "01234567" and text[at : at + 3] != "%25"):
                raise _bad_escape(text, at)
            at += 3
            continue
        if ch < "\x80" and ch not in _UNRESERVED and ch not in _HOST_EXTRA:
            raise UrlError(f"invalid character {quote(ch)} in host name")
        at += 1


def _valid_port(port: str) -> bool:
    return not port or (port[0] == ":" and (not port[1:] or (port[1:].isascii() and port[1:].isdigit())))


def _split_port(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if colon and _valid_port(":" + port):
        host = name
    else:
        port = ""
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, port


def escape_path(path: str) -> str:
    """A path with escapes for what may not stand in one."""
    return _escaped(path.encode("utf-8", "surrogateescape"), "$&+,/:;=@")


def _escaped(data: bytes, kept: str) -> str:
    """Bytes with escapes for all but unreserved characters and those that are kept."""
    return "".join(chr(byte) if chr(byte) in _UNRESERVED or chr(byte) in kept else f"%{byte:02X}" for byte in data)


def _valid_path(path: str) -> bool:
    """Whether a path may stay as it was written."""
    kept = _UNRESERVED | frozenset("!$&'()*+,;=:@[]%/")
    return all(ch in kept for ch in path)
