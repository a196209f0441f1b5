"""The scale subresource of custom resources: replicas and selector as autoscaling/v1 Scale.

Source: apiextensions-apiserver `pkg/registry/customresource/etcd.go`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Any

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.codec.negotiate import Accepted, content_type
from steersman.apimachinery.errors import ApiError, BadRequest, invalid, not_found
from steersman.apimachinery.options import write_options
from steersman.apiserver import rest
from steersman.apiserver.builtins import field_description
from steersman.apiserver.core import Core
from steersman.apiserver.crd.columns import AGE, columns
from steersman.apiserver.endpoints import answers, bodies, transform
from steersman.apiserver.endpoints.patch import Patch, check_media_type, read_patch
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import Column, ResourceScope, ScaleMapping, look_up
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import Entry

AUTOSCALING = "autoscaling/v1"
_MAX_INT32 = 2**31 - 1
DESIRED, ACTUAL = "Number of desired replicas", "Number of actual replicas"


async def scale(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    """GET, PUT and PATCH on /scale."""
    mapping = scope.scale
    assert mapping is not None
    choice = answers.accepted(x, answers.ONE, scope)
    info = x.info
    if info.verb == "get":
        found = scope.cache.get(scope.key(info.namespace, info.name))
        if found is None:
            raise not_found(scope.group, scope.resource, info.name)
        return _answer(scope, x, choice, to_scale(scope.view.tree(found), mapping))
    entry = await _write(core, scope, x, mapping)
    return _answer(scope, x, choice, to_scale(scope.view.tree(entry), mapping))


def _answer(scope: ResourceScope, x: Exchange, choice: Accepted, obj: Object) -> Answer:
    if choice.transform:
        obj = transform.one(choice.transform, replace(scope, columns=_columns()), obj, time.time(), x.info)
    return answers.value(200, choice, obj)


@cache
def _columns() -> tuple[Column, ...]:
    return columns(
        [
            {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas", "description": DESIRED},
            {"name": "Available", "type": "integer", "jsonPath": ".status.replicas", "description": ACTUAL},
            {**AGE, "description": field_description("creationTimestamp")},
        ]
    )


async def _write(core: Core, scope: ResourceScope, x: Exchange, mapping: ScaleMapping) -> Entry:
    info = x.info
    if info.verb == "update":
        options = write_options(info, "UpdateOptions")
        change: Patch = _replacement(_decode(x))
    else:
        options = write_options(info, "PatchOptions")
        media = content_type(x.request.headers.get("content-type", ""))
        check_media_type(scope, media)
        change, _ = read_patch(x, scope, media, options)
    ctx = core.write_context(x, options.field_manager, dry_run=options.dry_run, subresource="scale")

    def apply(old: Object | None) -> Object:
        assert old is not None
        proposed = change(to_scale(old, mapping, lenient=True))
        return _with_scale(scope, old, proposed, mapping, info.name)

    entry, _ = await core.registry.update(scope, scope.strategy, info.namespace, info.name, apply, ctx)
    return entry


def _replacement(body: Object) -> Patch:
    return lambda current: body


def _decode(x: Exchange) -> Object:
    from steersman.apimachinery.codec import json as codec

    try:
        obj = codec.decode(bodies.read(x.request))
    except codec.JsonError as error:
        raise BadRequest(str(error)) from None
    if not isinstance(obj, dict):
        raise BadRequest("the body is no Scale")
    if obj.get("kind", "Scale") != "Scale" or obj.get("apiVersion", AUTOSCALING) != AUTOSCALING:
        raise BadRequest(f"invalid object: expected {AUTOSCALING} Scale, got {obj.get('apiVersion')} {obj.get('kind')}")
    return obj


def to_scale(obj: Object, mapping: ScaleMapping, *, lenient: bool = False) -> Object:
    """The Scale of an object. Without replicas it has none (500), unless `lenient`."""
    replicas = look_up(obj, mapping.spec_replicas)
    if replicas is None and not lenient:
        path = "." + ".".join(mapping.spec_replicas)
        raise ApiError(f"the spec replicas field {path!r} does not exist".replace("'", '"'), reason="InternalError")
    meta = {
        key: obj["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in obj["metadata"]
    }
    status: Object = {"replicas": look_up(obj, mapping.status_replicas) or 0}
    if mapping.selector is not None and (selector := look_up(obj, mapping.selector)):
        status["selector"] = selector
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": AUTOSCALING, "metadata": meta, "spec": spec, "status": status}


def _with_scale(scope: ResourceScope, old: Object, proposed: Any, mapping: ScaleMapping, name: str) -> Object:
    """The object with the Scale's replicas; the Scale's name and resourceVersion are checked like the object's."""
    meta = proposed.get("metadata") if isinstance(proposed, dict) else None
    if not isinstance(meta, dict):
        raise BadRequest("the patch leaves no Scale")
    rest.match_name(meta, name)
    replicas = (proposed.get("spec") or {}).get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int) or abs(replicas) > _MAX_INT32:
        raise BadRequest("json: cannot unmarshal into Go struct field ScaleSpec.spec.replicas of type int32")
    if replicas < 0:
        error = fe.invalid("spec.replicas", replicas, "should be a non-negative integer")
        raise invalid("autoscaling", "Scale", name, [error])
    obj = put(old, mapping.spec_replicas, replicas)
    version = meta.get("resourceVersion")
    obj["metadata"] = {**old["metadata"], "resourceVersion": version or old["metadata"]["resourceVersion"]}
    return obj


def put(obj: Object, path: tuple[str, ...], value: Any) -> Object:
    """A copy of the object with a value at a path; containers on the way are copied, or made."""
    head, *rest_of_path = path
    if not rest_of_path:
        return {**obj, head: value}
    inner = obj.get(head)
    return {**obj, head: put(inner if isinstance(inner, dict) else {}, tuple(rest_of_path), value)}
