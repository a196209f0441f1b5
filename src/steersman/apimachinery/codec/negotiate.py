"""Content negotiation: which form an answer takes, and in which form a body came.

Source: apiserver `pkg/endpoints/handlers/negotiation`.
"""

from __future__ import annotations

from functools import lru_cache

from steersman._util.dataclass import dataclass

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_CONVERTING = frozenset({"as", "g", "v"})


@dataclass(frozen=True, slots=True)
class MediaType:
    """One term of an Accept header, or a Content-Type."""

    type: str
    parameters: dict[str, str]

    def __hash__(self) -> int:
        return hash(self.type)


@dataclass(frozen=True, slots=True)
class Accepted:
    """How to answer: `media_type` (JSON, YAML or PROTOBUF), `transform` ("", Table, PartialObjectMetadata...) with its
    `version` (v1 or v1beta1, which are equal but for their name), and `pretty`."""

    media_type: str
    transform: str = ""
    pretty: bool = False
    version: str = "v1"


def parse_media_type(text: str) -> MediaType:
    """A term of an Accept header. Upper and lower case count, as they do upstream."""
    name, *rest = text.split(";")
    parameters = {}
    for item in rest:
        key, separator, value = item.partition("=")
        if separator:
            parameters[key.strip()] = value.strip().strip('"')
    return MediaType(name.strip(), parameters)


@lru_cache(maxsize=256)
def parse_accept(header: str) -> tuple[MediaType, ...]:
    """The terms of an Accept header, best first."""
    terms = [parse_media_type(term) for term in header.split(",") if term.strip()]

    def quality(term: MediaType) -> float:
        try:
            return float(term.parameters.get("q", "1"))
        except ValueError:
            return 1.0

    return tuple(sorted(terms, key=quality, reverse=True))


@lru_cache(maxsize=256)
def negotiate(header: str, transforms: frozenset[str], *, yaml: bool = True, protobuf: bool = False) -> Accepted | None:
    """How to answer a request with this Accept header; None when nothing it names can be written.

    `transforms` are the kinds of meta.k8s.io that the endpoint can turn its answer into; tables have no protobuf.
    """
    if not header:
        return Accepted(JSON)
    for term in parse_accept(header):
        kind, version = term.parameters.get("as", ""), "v1"
        if _CONVERTING & term.parameters.keys():
            version = term.parameters.get("v", "")
            if term.parameters.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
                continue
            if kind not in transforms:
                continue
        if term.type in (JSON, "*/*", "application/*"):
            return Accepted(JSON, kind, term.parameters.get("pretty") == "1", version)
        if term.type == YAML and yaml:
            return Accepted(YAML, kind, version=version)
        if term.type == PROTOBUF and protobuf and kind != "Table":
            return Accepted(PROTOBUF, kind, version=version)
    return None


def routed(header: str, produced: frozenset[str]) -> bool:
    """Whether a route that produces these types is taken for an Accept header: partial wildcards do not count.

    Source: go-restful `route.go` (matchesAccept), which stands before the built-in resources.
    """
    if not header:
        return True
    return any(term.type == "*/*" or term.type in produced for term in parse_accept(header))


def patch_type(header: str) -> str:
    """The type of a patch: unlike that of other bodies it counts as it is written."""
    return header.partition(";")[0] or JSON


def content_type(header: str) -> str:
    """The media type of a body without its parameters; "" counts as JSON."""
    return header.partition(";")[0].strip().lower() or JSON
