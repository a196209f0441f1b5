"""The scale subresource: replicas and selector of an object as autoscaling/v1 Scale.

Source: apiextensions-apiserver `pkg/registry/customresource/etcd.go`; kubernetes
`pkg/registry/apps/*/storage/storage.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from steersman._util import clock
from steersman._util.gotext import quote
from steersman.api import kinds
from steersman.api.kinds import BuiltinKind
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.apply import scale as ownership
from steersman.apimachinery.apply import server_side
from steersman.apimachinery.apply.managers import APPLY, Writer, track_update
from steersman.apimachinery.apply.typed import TypeView, from_openapi
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec.negotiate import Accepted, content_type, patch_type
from steersman.apimachinery.errors import ApiError, BadRequest, internal, invalid, not_found
from steersman.apimachinery.gvk import GroupVersionKind
from steersman.apimachinery.options import WriteOptions, write_options
from steersman.apiserver import rest
from steersman.apiserver.builtins import field_description
from steersman.apiserver.core import Core
from steersman.apiserver.crd.columns import AGE, columns
from steersman.apiserver.endpoints import answers, large, other_kind, transform
from steersman.apiserver.endpoints.apply import APPLY_PATCH, read_configuration
from steersman.apiserver.endpoints.patch import STRATEGIC_PATCH, Patch, check_media_type, patched, read_patch
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import Column, ResourceScope, ScaleMapping, look_up
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import Entry

AUTOSCALING = ownership.SCALE_VERSION
_MAX_INT32 = 2**31 - 1
_NEVER_SET = -(2**31)
"""The replicas, for a change, of a custom resource that has none; upstream takes it for what no one would ask for."""
DESIRED, ACTUAL = "Number of desired replicas", "Number of actual replicas"

Change = Callable[[Object], Object]
"""Gives the Scale that is asked for, with its managedFields, from the present one."""


@cache
def _scale_view() -> TypeView:
    name = next(name for name in kinds.schemas() if name.endswith("autoscaling.v1.Scale"))
    return from_openapi(kinds.schemas(), name)


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
        await scope.view.prepare([found], again=True)
        return _answer(scope, x, choice, to_scale(scope.view.tree(found), mapping))
    entry = await _write(core, scope, x, mapping)
    return _answer(scope, x, choice, to_scale(scope.view.tree(entry), mapping))


def _answer(scope: ResourceScope, x: Exchange, choice: Accepted, obj: Object) -> Answer:
    if choice.transform:
        table = transform.one(choice.transform, replace(scope, columns=_columns()), obj, clock.now(), x.info)
        obj = transform.versioned(table, choice.version)
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
    """Run the change on a Scale, and give the object its replicas and its owners."""
    info = x.info
    header = x.request.headers.get("content-type", "")
    media = patch_type(header) if info.verb == "patch" else content_type(header)
    applies = info.verb == "patch" and media == APPLY_PATCH
    options = write_options(info, "UpdateOptions" if info.verb == "update" else "PatchOptions")
    ctx = core.write_context(x, options.field_manager, dry_run=options.dry_run, subresource="scale")
    ctx.owns = True
    change: Change
    uid: str | None = None
    if applies:
        change = await large.read(x, _applied, scope, x, options, ctx.now)
    elif info.verb == "update":
        body = await large.read(x, other_kind.read, x, scope, _scale_kind(), options.field_validation)
        rest.match_name(body["metadata"], info.name)
        uid = body["metadata"].get("uid")
        change = _tracked(_replacement(body), ctx.writer, ctx.now)
    else:
        check_media_type(scope, media)
        change = _tracked(await _patched(scope, x, media, options), ctx.writer, ctx.now)

    def scaled(current: Object | None) -> Object:
        assert current is not None
        proposed = change(current)
        rest.match_namespace(proposed["metadata"], info.namespace, namespaced=scope.namespaced)
        return proposed

    facet = _ScaleFacet(scope, mapping, _paths(core, scope), info.name)
    entry, _ = await core.registry.update(
        scope, scope.strategy, info.namespace, info.name, scaled, ctx, uid=uid, facet=facet
    )
    return entry


class _ScaleFacet:
    """An object by its Scale."""

    kind = GroupVersionKind("autoscaling", "v1", "Scale")

    def __init__(self, scope: ResourceScope, mapping: ScaleMapping, paths: ownership.Paths, name: str) -> None:
        self.form = other_kind.rules(_scale_kind())
        self._scope = scope
        self._mapping = mapping
        self._paths = paths
        self._name = name

    def view(self, obj: Object) -> Object:
        current = self.plain(obj)
        if owners := ownership.to_scale(obj["metadata"].get("managedFields"), self._paths):
            current["metadata"]["managedFields"] = owners
        return current

    def plain(self, obj: Object) -> Object:
        found = to_scale(obj, self._mapping, lenient=True)
        if self._scope.custom and look_up(obj, self._mapping.spec_replicas) is None:
            found["spec"] = {"replicas": _NEVER_SET}
        return found

    def merge(self, old: Object, changed: Object) -> Object:
        obj = _with_scale(self._scope, old, changed, self._mapping, self._name)
        if (
            self._scope.custom and self._scope.view.is_stored
        ):  # others get what the stored version sets when they are read
            self._scope.strategy.default(obj)
        managed, sent = old["metadata"].get("managedFields"), changed["metadata"].get("managedFields")
        found = ownership.to_parent(managed, sent, self._paths, self._scope.api_version)
        obj["metadata"].pop("managedFields", None)
        if found:
            obj["metadata"]["managedFields"] = found
        return obj


def _paths(core: Core, scope: ResourceScope) -> ownership.Paths:
    """Where each version of the resource has its replicas."""
    versions = [scope]
    if scope.custom:
        versions = [
            other
            for other in core.catalog.made()
            if other.custom and (other.group, other.resource) == (scope.group, scope.resource)
        ]
    return {version.api_version: version.scale.spec_replicas if version.scale else None for version in versions}


async def _patched(scope: ResourceScope, x: Exchange, media: str, options: WriteOptions) -> Patch:
    """The patch in the body, whose result must be a Scale."""
    inner = other_kind.inner(scope, _scale_kind())
    change, duplicates = await large.read(x, read_patch, x, inner, media, options)
    tree = codec.decode(x.request.body) if media == STRATEGIC_PATCH else None

    def apply(current: Object) -> Object:
        return patched(x, inner, inner.strategy, change(current), duplicates, options, strategic_of=tree)

    return apply


def _tracked(change: Patch, writer: Writer, now: str) -> Change:
    """An update or patch, after which the writer owns what it changed."""

    def tracked(current: Object) -> Object:
        proposed = change(current)
        meta = {key: value for key, value in proposed["metadata"].items() if key != "managedFields"}
        new = {**proposed, "metadata": meta}
        found = track_update(current, _as_typed(new), writer, view=_scale_view(), api_version=AUTOSCALING, now=now)
        return {**new, "metadata": {**meta, "managedFields": found}}

    return tracked


def _as_typed(scale: Object) -> Object:
    """A Scale as its Go type has it: without replicas that are 0."""
    spec = scale.get("spec")
    if isinstance(spec, dict) and spec.get("replicas") == 0:
        return {**scale, "spec": {key: value for key, value in spec.items() if key != "replicas"}}
    return scale


def _applied(scope: ResourceScope, x: Exchange, options: WriteOptions, now: str) -> Change:
    """Server-side apply. Custom resources refuse a change, as upstream does, once it is known not to conflict."""
    config, _ = read_configuration(x, options)
    writer = Writer(options.field_manager, APPLY, "scale")

    def refused(merged: Object) -> Object:
        meta = config.get("metadata") or {}
        raise ApiError(_unconvertible("new", meta.get("namespace") or "", meta.get("name") or ""))

    def applied(current: Object) -> Object:
        owned = bool(current["metadata"].get("managedFields"))
        server_side.check_kind(config, AUTOSCALING, "Scale")
        if scope.custom and not owned:
            raise ApiError(f"failed to create manager for existing fields: {_unconvertible('live', '', '')}")
        return server_side.apply(
            current,
            config,
            writer,
            kind="Scale",
            view=_scale_view(),
            api_version=AUTOSCALING,
            now=now,
            force=bool(options.force),
            complete=refused if scope.custom else _as_it_is,
        )

    return applied


def _as_it_is(merged: Object) -> Object:
    return merged


def _unconvertible(what: str, namespace: str, name: str) -> str:
    return (
        f"failed to convert {what} object ({namespace}/{name}; {AUTOSCALING}, Kind=Scale) to proper version: "
        f"request to convert CR to an invalid group/version: {AUTOSCALING}"
    )


def _replacement(body: Object) -> Patch:
    return lambda current: body


@cache
def _scale_kind() -> BuiltinKind:
    """The kind: it has no resource of its own."""
    return BuiltinKind(
        "autoscaling",
        "v1",
        "Scale",
        "scales",
        "scale",
        True,
        ("get", "update", "patch"),
        type="api/autoscaling/v1.Scale",
    )


def to_scale(obj: Object, mapping: ScaleMapping, *, lenient: bool = False) -> Object:
    """The Scale of an object. Without replicas it has none (500), unless `lenient`."""
    replicas = look_up(obj, mapping.spec_replicas)
    if replicas is None and not lenient:
        raise internal(f'the spec replicas field ".{".".join(mapping.spec_replicas)}" does not exist')
    meta = {
        key: obj["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in obj["metadata"]
    }
    status: Object = {"replicas": look_up(obj, mapping.status_replicas) or 0}
    if mapping.selector is not None and (selector := look_up(obj, mapping.selector)):
        status["selector"] = mapping.selector_text(selector)
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": AUTOSCALING, "metadata": meta, "spec": spec, "status": status}


def _with_scale(scope: ResourceScope, old: Object, proposed: Any, mapping: ScaleMapping, name: str) -> Object:
    """The object with the Scale's replicas; the Scale's name and resourceVersion are checked like the object's."""
    meta = proposed["metadata"]
    rest.match_name(meta, name)
    spec = proposed.get("spec") or {}
    if not isinstance(spec, dict):
        raise BadRequest("json: cannot unmarshal into Go struct field Scale.spec of type v1.ScaleSpec")
    replicas = spec.get("replicas")
    replicas = 0 if replicas is None else replicas
    if scope.custom and replicas == _NEVER_SET:
        path = quote("." + ".".join(mapping.spec_replicas))
        raise BadRequest(f"the spec replicas field {path} cannot be empty")
    if isinstance(replicas, bool) or not isinstance(replicas, int) or abs(replicas) > _MAX_INT32:
        raise BadRequest("json: cannot unmarshal into Go struct field ScaleSpec.spec.replicas of type int32")
    if replicas < 0 and not scope.custom:  # a custom resource is judged whole, by its own field
        error = fe.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
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
