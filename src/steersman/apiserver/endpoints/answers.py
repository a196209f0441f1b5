"""Answers: objects, lists, tables and Status in the form that the client asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman.api import kinds
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import yaml
from steersman.apimachinery.codec.negotiate import JSON, PROTOBUF, YAML, Accepted, negotiate, routed
from steersman.apimachinery.errors import ApiError, NotAcceptable, details
from steersman.apiserver.endpoints import transform
from steersman.apiserver.exchange import Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import Entry
from steersman.net.http import Response

_HEADERS: dict[str, tuple[tuple[str, str], ...]] = {
    media: (("Cache-Control", "no-cache, private"), ("Content-Type", media)) for media in (JSON, YAML, PROTOBUF)
}
ONE = frozenset({"Table", "PartialObjectMetadata"})
MANY = frozenset({"Table", "PartialObjectMetadataList"})
_PRODUCED = (JSON, YAML, PROTOBUF)
_STREAMED = (*_PRODUCED, f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")


def accepted(x: Exchange, transforms: frozenset[str], scope: ResourceScope | None = None) -> Accepted:
    """How to answer this request. Raises NotAcceptable (406)."""
    accept = x.request.headers.get("accept", "")
    if scope is not None and not scope.custom:
        route(accept, _STREAMED if x.info.verb in ("list", "watch") else _PRODUCED)
    choice = negotiate(accept, transforms, protobuf=PROTOBUF in accept and _has_protobuf(scope))
    if choice is None:
        raise NotAcceptable(f"only the following media types are accepted: {', '.join(_PRODUCED)}")
    return choice


def route(accept: str, produced: Sequence[str] = _PRODUCED) -> None:
    """Raises NotAcceptable, in the words of upstream's router, for a client that takes nothing that is produced."""
    if not routed(accept, frozenset(produced)):
        offered = ", ".join(produced)
        raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {offered}", details={})


def _has_protobuf(scope: ResourceScope | None) -> bool:
    return scope is not None and not scope.custom and kinds.protobuf_encoder().knows(scope.api_version, scope.kind)


def raw(status: int, media_type: str, body: bytes | list[bytes]) -> Response:
    return Response(status, _HEADERS[media_type], body)


def value(status: int, choice: Accepted, content: Any) -> Response:
    """Any JSON value in the chosen media type; an object of a known kind for protobuf."""
    if choice.media_type == PROTOBUF:
        return raw(status, PROTOBUF, kinds.protobuf_encoder().encode(content))
    return raw(status, choice.media_type, yaml.encode(content) if choice.media_type == YAML else codec.encode(content))


def entry(x: Exchange, scope: ResourceScope, found: Entry, now: float, status: int = 200) -> Response:
    """One stored object."""
    choice = accepted(x, ONE, scope)
    if not choice.transform and choice.media_type == JSON:
        return raw(status, JSON, scope.view.wire(found))
    if not choice.transform and choice.media_type == PROTOBUF:
        return raw(status, PROTOBUF, protobuf_body(scope, found))
    obj = scope.view.tree(found)
    if choice.transform:
        obj = transform.versioned(transform.one(choice.transform, scope, obj, now, x.info), choice.version)
    return value(status, choice, obj)


def protobuf_message(scope: ResourceScope, found: Entry) -> bytes:
    """A stored object's message, without its envelope."""
    key = scope.view, PROTOBUF
    if found.views is None:
        found.views = {}
    message = found.views.get(key)
    if message is None:
        encoder = kinds.protobuf_encoder()
        message = found.views[key] = encoder.message(scope.api_version, scope.kind, scope.view.tree(found))
    return message


def protobuf_body(scope: ResourceScope, found: Entry) -> bytes:
    """A stored object in protobuf."""
    from steersman.apimachinery.codec.protobuf_encode import envelop  # few servers are asked for protobuf

    return envelop(scope.api_version, scope.kind, protobuf_message(scope, found))


def status_success(scope: ResourceScope, name: str, uid: str) -> Object:
    """The Status of a delete that is done."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details(scope.group, scope.resource, name, uid=uid),
    }


def error(failure: ApiError, accept: str) -> Response:
    """The Status of an error; JSON when the client accepts nothing that can be written."""
    choice = negotiate(accept, frozenset(), protobuf=PROTOBUF in accept)
    response = value(failure.code, choice or Accepted(JSON), failure.to_status())
    headers = failure.headers
    seconds = (failure.details or {}).get("retryAfterSeconds")
    if seconds and not any(name == "Retry-After" for name, _ in headers):
        headers = (*headers, ("Retry-After", str(seconds)))
    response.headers = (*response.headers, *headers)
    return response


def text(status: int, body: str) -> Response:
    headers = (
        ("Cache-Control", "no-cache, private"),
        ("Content-Type", "text/plain; charset=utf-8"),
        ("X-Content-Type-Options", "nosniff"),
    )
    return Response(status, headers, body.encode())


def page_not_found() -> Response:
    return text(404, "404 page not found\n")
