"""DELETE of one object, or of all that a selection names.

Source: apiserver `pkg/endpoints/handlers/delete.go`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from steersman._util import clock
from steersman._util.gotext import quote
from steersman.api.kinds import protobuf_schema, type_table
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import protobuf, yaml
from steersman.apimachinery.codec.negotiate import JSON, PROTOBUF, YAML, content_type
from steersman.apimachinery.errors import BadRequest, NotFound, UnsupportedMediaType
from steersman.apimachinery.go_values import DecodeError
from steersman.apimachinery.gvk import split_api_version
from steersman.apimachinery.options import DeleteOptions, delete_options, list_options
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, bodies, large
from steersman.apiserver.endpoints.list import Page, encode_list, list_meta, read
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.selection import select
from steersman.apiserver.strategy import Object

WORKERS = 16
_TYPE = "apimachinery/pkg/apis/meta/v1.DeleteOptions"


async def delete(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    choice = answers.accepted(x, answers.ONE, scope)
    options = await large.read(x, _options, x)
    ctx = core.write_context(x, "", dry_run=options.dry_run)
    entry, gone = await core.registry.delete(scope, x.info.namespace, x.info.name, options, ctx)
    if gone and not scope.strategy.returns_deleted:
        return answers.value(200, choice, answers.status_success(scope, x.info.name, entry.decode()["metadata"]["uid"]))
    status = 202 if not gone and options.orphan_dependents is False else 200
    return answers.entry(x, scope, entry, clock.now(), status)


async def delete_collection(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    answers.accepted(x, answers.MANY, scope)
    options = await large.read(x, _options, x)
    selecting = list_options(x.info)
    selection = await large.read(x, select, scope, x.info.namespace, selecting)
    page = await read(core, scope, selection, selecting)
    ctx = core.write_context(x, "", dry_run=options.dry_run)
    waiting = iter(page.entries)

    async def work() -> None:
        for entry in waiting:
            namespace, _, name = entry.key.rpartition("/")
            try:
                await core.registry.delete(scope, namespace, name, options, ctx, named=False)
            except NotFound:
                continue

    await asyncio.gather(*(work() for _ in range(min(WORKERS, len(page.entries)))))
    shown = Page(page.entries, page.revision, page.next_key, page.remaining)
    return answers.raw(200, JSON, encode_list(scope, shown.entries, list_meta(scope, shown)))


def _options(x: Exchange) -> DeleteOptions:
    body = bodies.read(x.request)
    raw: Any = None
    if body:
        raw = _checked(_decoded(body, content_type(x.request.headers.get("content-type", ""))))
        if x.audit is not None:
            x.audit.delete_options(raw)
    return delete_options(x.info, raw)


def _checked(raw: Any) -> Object:
    """The options in a decoded body, typed. Raises BadRequest."""
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise BadRequest(bodies.no_object(raw))
    if why := bodies.unreadable(raw.items()):
        raise BadRequest(why)
    version, kind = raw.get("apiVersion") or "meta.k8s.io/v1", raw.get("kind") or "DeleteOptions"
    try:
        split_api_version(version)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    if kind != "DeleteOptions":
        where = f'version {quote(version)} in scheme "pkg/runtime/scheme.go:111"'
        raise BadRequest(f"no kind {quote(kind)} is registered for {where}")
    try:
        options: Object = type_table().decode(_TYPE, raw)[0]
    except DecodeError as error:
        raise BadRequest(str(error)) from None
    return options


def _decoded(body: bytes, media: str) -> Any:
    """DeleteOptions may be sent in protobuf for every kind, custom resources included."""
    if media not in (JSON, YAML, PROTOBUF):
        raise UnsupportedMediaType(bodies.unknown_format())
    try:
        if media == PROTOBUF:
            unknown = protobuf.envelope(body)
            options = protobuf.Unknown("v1", unknown.kind or "DeleteOptions", unknown.raw)
            return protobuf.decode(options, protobuf_schema())
        return yaml.decode(body) if media == YAML else codec.decode(body)
    except (codec.JsonError, yaml.YamlError) as error:
        raise BadRequest(f"couldn't get version/kind; json parse error: {error} ({bodies.summary(body)})") from None
    except protobuf.UnknownKindError as error:
        raise BadRequest(f"decoded object cannot be converted to DeleteOptions: {error}") from None
    except protobuf.ProtobufError as error:
        raise BadRequest(str(error)) from None
