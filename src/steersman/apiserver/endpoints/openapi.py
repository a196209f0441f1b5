"""GET /openapi/v2 and /openapi/v3: documents of what is served now, built when they are first asked for.

Source: kube-openapi `pkg/handler/handler.go`, `pkg/handler3/handler.go`; kube-aggregator
`pkg/controllers/openapiv3/aggregator`, whose index this is.
"""

from __future__ import annotations

import time

from steersman.apimachinery.codec.negotiate import JSON, parse_accept
from steersman.apiserver.core import Core
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.openapi import Document, OpenAPI
from steersman.net.http import Response
from steersman.net.wire import http_date

V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2_PROTOBUF_OLD = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_ANY = frozenset({"*/*", "application/*"})
_YEAR = 365 * 24 * 60 * 60
_NO_CACHE = ("Cache-Control", "no-cache, private")
_VARY = ("Vary", "Accept, Accept-Encoding")


async def v2(core: Core, x: Exchange) -> Answer:
    """GET /openapi/v2: JSON, or the protobuf form that client-go asks for; 406 for anything else."""
    choice = _choose(x, {JSON: JSON, V2_PROTOBUF: V2_PROTOBUF, _V2_PROTOBUF_OLD: V2_PROTOBUF})
    if choice is None:
        return _not_acceptable()
    documents = _documents(core)
    document = await (documents.v2_protobuf() if choice == V2_PROTOBUF else documents.v2_json())
    return _answer(x, document, choice, (_NO_CACHE, _VARY))


async def v3(core: Core, x: Exchange, rest: str) -> Answer:
    """GET /openapi/v3, the index (`rest` ""), or the document of `rest`, such as `apis/apps/v1`.

    The index is JSON whatever Accept says, with upstream's text/plain. A document asked for by its hash may be cached
    for good; by another hash, the answer is 301 to the right one.
    """
    documents = _documents(core)
    if not rest:
        content_type = ("Content-Type", "text/plain; charset=utf-8")
        return Response(200, (_NO_CACHE, content_type), await documents.v3_index())
    if _choose(x, {JSON: JSON}) is None:
        return _not_acceptable()
    document = documents.v3(rest)
    if document is None:
        return Response(404, (_NO_CACHE,))
    wanted = x.info.first("hash")
    if not wanted:
        return _answer(x, document, JSON, (_NO_CACHE, _VARY))
    if wanted != document.hash:
        location = f"/openapi/v3/{rest}?hash={document.hash}"
        headers = (_NO_CACHE, ("Content-Type", JSON), ("ETag", _etag(document)), ("Location", location), _VARY)
        return Response(301, headers)
    expires = ("Expires", http_date(time.time() + _YEAR))
    return _answer(x, document, JSON, (("Cache-Control", "public, immutable"), expires, _VARY))


def _documents(core: Core) -> OpenAPI:
    if core.openapi is None:
        core.openapi = OpenAPI(core.catalog)
    return core.openapi


def _choose(x: Exchange, offered: dict[str, str]) -> str | None:
    """The media type to answer in: that of the best term of Accept that can be met."""
    for term in parse_accept(x.request.headers.get("accept") or "*/*"):
        if term.type in _ANY:
            return JSON
        if term.type in offered:
            return offered[term.type]
    return None


def _answer(x: Exchange, document: Document, media_type: str, headers: tuple[tuple[str, str], ...]) -> Response:
    etag = _etag(document)
    if _matches(x.request.headers.get("if-none-match", ""), etag):
        return Response(304, (*headers, ("ETag", etag)))
    headers = (*headers, ("Content-Type", media_type), ("ETag", etag))
    if _accepts_gzip(x.request.headers.get("accept-encoding", "")):
        return Response(200, (*headers, ("Content-Encoding", "gzip")), document.packed)
    return Response(200, headers, document.body)


def _accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding header names gzip, and does not refuse it."""
    for term in parse_accept(header):
        if term.type == "gzip":
            return term.parameters.get("q", "1").strip("0.") != ""
    return False


def _matches(condition: str, etag: str) -> bool:
    terms = [term.strip().removeprefix("W/") for term in condition.split(",")]
    return etag in terms or "*" in terms


def _etag(document: Document) -> str:
    return f'"{document.hash}"'


def _not_acceptable() -> Response:
    return Response(406, (_NO_CACHE, _VARY))
