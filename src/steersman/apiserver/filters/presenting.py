"""How an answer looks on the wire: indented for people, packed when it is large.

Source: apiserver `pkg/endpoints/handlers/negotiation/negotiate.go` (isPrettyPrint),
`pkg/endpoints/handlers/responsewriters/writers.go`.
"""

from __future__ import annotations

import asyncio
import zlib
from http import HTTPStatus

from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec.negotiate import JSON, parse_accept
from steersman.apiserver.exchange import Answer, Exchange
from steersman.net.http import Response

_PEOPLE = ("curl", "Wget", "Mozilla/5.0")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_ALWAYS_INDENTED = ("/", "/version")
_WITH_OWN_RULES = ("/openapi", "/openid", "/.well-known", "/metrics")
_LARGE = 128 * 1024
_LEVEL = 4
_GZIP = 31  # zlib's window bits for gzip's format


async def presented(x: Exchange, answer: Answer) -> Answer:
    """The answer as the client is to get it."""
    if type(answer) is not Response or not answer.body:
        return answer
    indent = _for_people(x, answer.status)
    if indent or _packs(x, answer):
        await _present(x, answer, indent)
    return answer


def _for_people(x: Exchange, status: int) -> bool:
    info, headers = x.info, x.request.headers
    if info.path in _ALWAYS_INDENTED and status == HTTPStatus.OK:
        return True
    if info.query and "pretty" in info.query:
        return info.first("pretty") in _TRUE
    if headers.get("user-agent", "").startswith(_PEOPLE):
        return True
    accept = headers.get("accept", "")
    return "pretty" in accept and any(term.parameters.get("pretty") == "1" for term in parse_accept(accept)[:1])


def _packs(x: Exchange, answer: Response) -> bool:
    header = x.request.headers.get("accept-encoding", "")
    if "gzip" not in header or _size(answer) <= _LARGE:
        return False
    return any(token.strip() == "gzip" for token in header.split(","))


def _size(answer: Response) -> int:
    body = answer.body
    return len(body) if isinstance(body, bytes) else sum(map(len, body))


async def _present(x: Exchange, answer: Response, indent: bool) -> None:
    names = dict(answer.headers)
    media = names.get("Content-Type", "")
    if not media.startswith("application/") or "Content-Encoding" in names or x.info.path.startswith(_WITH_OWN_RULES):
        return
    body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    indent = indent and media.startswith(JSON)
    packs = _packs(x, answer)
    if len(body) > _LARGE:
        answer.body = await asyncio.to_thread(_made, body, indent, packs)
    else:
        answer.body = _made(body, indent, packs)
    if packs:
        answer.headers = (*answer.headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))


def _made(body: bytes, indent: bool, packs: bool) -> bytes:
    if indent:
        body = codec.indented(body)
    if packs:
        packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
        body = packer.compress(body) + packer.flush()
    return body
