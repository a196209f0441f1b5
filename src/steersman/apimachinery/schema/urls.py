"""URLs as Go's net/url accepts them, where the API's rules depend on it.

Source: Go `net/url` (ParseRequestURI, Parse).
"""

from __future__ import annotations

import re
from typing import NamedTuple

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(.*)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_HOST = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=\[\]<>\"]|[^\x00-\x7f]|%25|%[89a-fA-F][0-9a-fA-F])*")
_PORT = re.compile(r"(?::[0-9]*)?")
_USERINFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")


class Url(NamedTuple):
    scheme: str
    user: str | None
    host: str
    path: str
    query: str
    fragment: str


def parse_url(text: str) -> Url:
    """A URL reference split up. Raises ValueError with Go's reason when it cannot be parsed."""
    body, _, fragment = text.partition("#")
    try:
        url = _parse(body)
    except ValueError as error:
        raise ValueError(f'parse "{text}": {error}') from None
    return url._replace(fragment=fragment)


def is_request_uri(text: str) -> bool:
    """Whether the text is an absolute URI or an absolute path (url.ParseRequestURI)."""
    if text == "*":
        return True
    try:
        url = _parse(text)
    except ValueError:
        return False
    return bool(text) and (bool(url.scheme) or text.startswith("/"))


def _parse(text: str) -> Url:
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    match = _SCHEME.fullmatch(text)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/") and scheme:
        return Url(scheme, None, "", rest, query, "")
    if not scheme and ":" in rest.partition("/")[0]:
        raise ValueError("first path segment in URL cannot contain colon")
    user, host = None, ""
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _parse_authority(authority)
    bad = _BAD_ESCAPE.search(rest)
    if bad:
        raise ValueError(f'invalid URL escape "{rest[bad.start() : bad.start() + 3]}"')
    return Url(scheme, user, host, rest, query, "")


def _parse_authority(authority: str) -> tuple[str | None, str]:
    user, at, host = authority.rpartition("@")
    if at and (not _USERINFO.fullmatch(user) or _BAD_ESCAPE.search(user)):
        raise ValueError("net/url: invalid userinfo")
    if host.startswith("["):
        name, bracket, port = host.rpartition("]")
        if not bracket:
            raise ValueError("missing ']' in host")
    else:
        name, colon, port = host.partition(":")
        port = colon + port
    if not _PORT.fullmatch(port):
        raise ValueError(f'invalid port "{port}" after host')
    bare = name.removeprefix("[").replace(":", "") if host.startswith("[") else name
    valid = _HOST.match(bare)
    if valid is not None and bare[valid.end() : valid.end() + 1] == "%":
        raise ValueError(f'invalid URL escape "{bare[valid.end() : valid.end() + 3]}"')
    if valid is None or valid.end() != len(bare):
        end = valid.end() if valid else 0
        raise ValueError(f'invalid character "{bare[end]}" in host name')
    return (user if at else None), host
