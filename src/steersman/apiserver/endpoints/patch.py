"""PATCH: change an object by a JSON patch, a merge patch, or (built-in kinds) a strategic merge patch.

Source: apiserver `pkg/endpoints/handlers/patch.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman._util import clock
from steersman._util.gotext import quote
from steersman.api.registered import unconvertible
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import spelled
from steersman.apimachinery.codec.negotiate import patch_type
from steersman.apimachinery.errors import BadRequest, UnsupportedMediaType, invalid, not_found
from steersman.apimachinery.go_values import DecodeError
from steersman.apimachinery.options import WriteOptions, write_options
from steersman.apimachinery.patch import json_patch, merge_patch, strategic
from steersman.apimachinery.schema.embedded import SchemaDecodeError
from steersman.apiserver import rest
from steersman.apiserver.builtins import BuiltinRules
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, bodies, large
from steersman.apiserver.endpoints.apply import APPLY_PATCH
from steersman.apiserver.endpoints.apply import apply as server_side_apply
from steersman.apiserver.endpoints.patch_errors import unfit_patch, unfit_result, unfit_strategic, unfit_text
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object, Strategy

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

_TYPE_META = (("apiVersion", "api_version"), ("kind", "kind"))

Patch = Callable[[Object], Any]


async def patch(
    core: Core, scope: ResourceScope, strategy: Strategy, x: Exchange, authorize_create: rest.Check = rest.allow
) -> Answer:
    """PATCH on an object, or on a subresource of the same kind whose rules are `strategy`."""
    info = x.info
    media = patch_type(x.request.headers.get("content-type", ""))
    if media == APPLY_PATCH:
        return await server_side_apply(core, scope, strategy, x, authorize_create)
    check_media_type(scope, media)
    answers.accepted(x, answers.ONE, scope)
    options = write_options(info, "PatchOptions")
    change, duplicates = await large.read(x, read_patch, x, scope, media, options)
    ctx = core.write_context(x, options.field_manager, dry_run=options.dry_run, subresource=info.subresource)
    tree = codec.decode(x.request.body) if media == STRATEGIC_PATCH else None

    def apply(old: Object | None) -> Object:
        if old is None:
            raise not_found(scope.group, scope.resource, info.name)
        return patched(x, scope, strategy, change(old), duplicates, options, strategic_of=tree)

    entry, _ = await core.registry.update(scope, strategy, info.namespace, info.name, apply, ctx)
    return answers.entry(x, scope, entry, clock.now())


def check_media_type(scope: ResourceScope, media: str) -> None:
    offered = [JSON_PATCH, MERGE_PATCH]
    if not scope.custom:
        offered.append(STRATEGIC_PATCH)
    if media in offered:
        return
    if scope.custom or media.strip() in offered:  # the router of built-in kinds takes spaces, their handler does not
        raise UnsupportedMediaType(bodies.unknown_format(", ".join((*offered, APPLY_PATCH))))
    raise UnsupportedMediaType("415: Unsupported Media Type", details={})


def read_patch(x: Exchange, scope: ResourceScope, media: str, options: WriteOptions) -> tuple[Patch, list[str]]:
    """The patch in the body as a function of the object, and what strict decoding has against it."""
    if options.force is not None:
        error = fe.forbidden("force", "may not be specified for non-apply patch")
        raise invalid("meta.k8s.io", "PatchOptions", "", [error])
    body = bodies.read(x.request)
    if x.audit is not None:
        x.audit.request_text(body)
    try:
        content = codec.decode(body)
    except codec.NumberError as error:
        if options.field_validation != "Ignore":
            where = "Go struct field jsonPatchOp.value" if media == JSON_PATCH else "Go value"
            raise BadRequest(f"error decoding patch: {str(error).replace('Go value', where)}") from None
        return _refusal(media, spelled.decode(body), str(error)), []
    except codec.JsonError as error:
        raise BadRequest("invalid JSON patch") from error
    lenient = options.field_validation == "Ignore"
    if media == JSON_PATCH:
        json_patch.decode(content, lenient=lenient)
        problems = [] if lenient else json_patch.problems(codec.pairs(body))
        return (lambda old: json_patch.apply(old, content, raw=body, lenient=lenient)), problems
    duplicates = [] if lenient else _duplicates(body, content)
    if media == STRATEGIC_PATCH:
        assert scope.patch_schema is not None
        schema = scope.patch_schema()
        return (lambda old: strategic.apply(old, content, schema)), duplicates
    if lenient and isinstance(content, list):
        result = merge_patch.apply({}, {"": content})[""]
        raise unfit_result(result, bodies.no_object(result))
    return (lambda old: merge_patch.apply(old, content, lenient=lenient)), duplicates


def _refusal(media: str, content: Any, why: str) -> Patch:
    """A patch whose result cannot be decoded."""

    def refuse(old: Object) -> Any:
        patch = json_patch if media == JSON_PATCH else merge_patch
        raise unfit_text(spelled.encode(patch.apply(old, content)).decode(), why)

    return refuse


def _duplicates(body: bytes, content: Any) -> list[str]:
    return [f"duplicate field {quote(path)}" for path in codec.duplicate_keys(body, content)]


def patched(
    x: Exchange,
    scope: ResourceScope,
    strategy: Strategy,
    changed: Any,
    duplicates: list[str],
    options: WriteOptions,
    *,
    strategic_of: Any = None,
) -> Object:
    """The patched object in the kind's form; its top level and metadata are new.

    `strategic_of` is the patch, if it was a strategic merge patch.
    """
    obj = _object(scope, changed, strategic_of)
    level = options.field_validation
    try:
        obj, unknown = strategy.decode(obj)
    except BadRequest as error:
        if not isinstance(error.__cause__, (DecodeError, SchemaDecodeError)):
            raise
        if strategic_of is not None and isinstance(error.__cause__, DecodeError):
            raise unfit_strategic(strategic_of, _first_unfit(strategy, obj) or error.__cause__) from None
        raise unfit_result(changed, str(error.__cause__)) from None
    strange = [f"unknown field {quote(path)}" for path in unknown]
    problems = duplicates + (strange if strategic_of is None else sorted(strange))
    if problems and level == "Strict":
        text = f"strict decoding error: {', '.join(problems)}"
        raise unfit_result(changed, text) if strategic_of is None else unfit_patch(strategic_of, text)
    if level == "Warn":
        x.warnings.extend(text for text in problems if text not in x.warnings)
    strategy.default(obj)
    rest.match_namespace(obj["metadata"], x.info.namespace, namespaced=scope.namespaced)
    rest.match_name(obj["metadata"], x.info.name)
    return obj


def _first_unfit(strategy: Strategy, obj: Object) -> DecodeError | None:
    """What is wrong with the first field, in the order of the Go type: so a strategic merge patch is told of it."""
    assert isinstance(strategy, BuiltinRules)
    try:
        strategy.kind.check_fields(obj)
    except DecodeError as error:
        return error
    return None


def _object(scope: ResourceScope, changed: Any, strategic_of: Any) -> Object:
    """What a patch made, as an object of the endpoint's kind. Raises BadRequest, Invalid."""
    if not isinstance(changed, dict):
        raise unfit_result(changed, bodies.no_object(changed))
    obj: Object = codec.copy(changed)
    if scope.custom:
        if why := bodies.unreadable(obj.items()):
            raise unfit_result(obj, why)
        if not (isinstance(obj.get("kind"), str) and obj["kind"]):
            text = codec.encode(obj).decode()
            raise invalid("", "", "", [fe.invalid("patch", text, f"Object 'Kind' is missing in '{text}'")])
        return obj
    if strategic_of is None:
        given, kind = (obj.get(key) or getattr(scope, name) for key, name in _TYPE_META)
        try:
            why = unconvertible(str(given), str(kind), scope.api_version, scope.kind)
        except ValueError as error:
            why = str(error)
        if why:
            raise unfit_result(obj, why)
    # Go's objects know their own type: a strategic merge patch cannot change it.
    obj["apiVersion"], obj["kind"] = scope.api_version, scope.kind
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    return obj
