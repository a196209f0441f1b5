"""What a request asks for, read from its method, path and query.

Source: apiserver `pkg/endpoints/request/requestinfo.go`.
"""

from __future__ import annotations

from urllib.parse import unquote, unquote_plus

from steersman._util.dataclass import dataclass

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


@dataclass(slots=True)
class RequestInfo:
    """`is_resource` tells objects (/api, /apis/GROUP with a resource) from other paths (/healthz, discovery).

    `path` is decoded, `parts` what follows the version: resource, name, subresource. `query` keeps every value.
    """

    method: str
    path: str
    query: dict[str, list[str]]
    is_resource: bool = False
    verb: str = ""
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    parts: tuple[str, ...] = ()

    def first(self, key: str, default: str = "") -> str:
        values = self.query.get(key)
        return values[0] if values else default

    def flag(self, key: str) -> bool:
        """A boolean parameter, as upstream converts one: absent, "false" and "0" are false, all else true."""
        values = self.query.get(key)
        return values is not None and values[0].lower() not in ("false", "0")


def parse_query(raw: str) -> dict[str, list[str]]:
    """Every value of every key of a query. Pairs with a semicolon or a wrong escape do not count.

    Source: Go `src/net/url/url.go` (ParseQuery).
    """
    found: dict[str, list[str]] = {}
    for pair in raw.split("&"):
        if not pair or ";" in pair or ("%" in pair and _wrong_escape(pair)):
            continue
        key, _, value = pair.partition("=")
        found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return found


def _wrong_escape(text: str) -> bool:
    return any(len(part) < 2 or not _HEX_DIGITS.issuperset(part[:2]) for part in text.split("%")[1:])


def parse_request(method: str, raw_path: str, raw_query: str) -> RequestInfo:
    """RequestInfo of a request; `raw_path` and `raw_query` are percent-encoded as they came."""
    query = parse_query(raw_query) if raw_query else {}
    path = unquote(raw_path) if "%" in raw_path else raw_path
    info = RequestInfo(method, path, query)
    info.verb = method.lower()
    # An escaped slash separates like any other. Slashes around the path mean nothing for who may do what.
    segments = path.strip("/").split("/")
    if segments[0] == "api" and len(segments) >= 3:
        info.version = segments[1]
        rest = segments[2:]
    elif segments[0] == "apis" and len(segments) >= 4:
        info.group, info.version = segments[1], segments[2]
        rest = segments[3:]
    else:
        return info
    if len(segments) < 3:
        return info
    info.is_resource = True
    info.verb = _VERBS.get(method, "")
    if rest[0] in ("watch", "proxy") and len(rest) > 1:
        info.verb = rest[0]
        rest = rest[1:]
    _locate(info, rest)
    _refine_verb(info)
    return info


def _locate(info: RequestInfo, rest: list[str]) -> None:
    if rest[0] == "namespaces" and len(rest) > 1:
        info.namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    info.parts = tuple(rest)
    info.resource = rest[0]
    if len(rest) > 1:
        info.name = rest[1]
    if len(rest) > 2:
        info.subresource = rest[2]


def _refine_verb(info: RequestInfo) -> None:
    if info.name:
        return
    if info.verb == "get":
        info.verb = "watch" if info.flag("watch") else "list"
    elif info.verb == "delete":
        info.verb = "deletecollection"
    if info.verb in ("list", "watch", "deletecollection") and "fieldSelector" in info.query:
        info.name = _name_of_selector(info.first("fieldSelector"))


def _name_of_selector(selector: str) -> str:
    """The name that `metadata.name=NAME` pins, so that permission for one name is enough."""
    for term in selector.split(","):
        key, separator, value = term.partition("=")
        if separator and key == "metadata.name" and value.strip("="):
            return value.lstrip("=")
    return ""
