"""PATCH with application/apply-patch+yaml: server-side apply.

Source: apiserver `pkg/endpoints/handlers/patch.go` (applyPatcher), KEP-555.
"""

from __future__ import annotations

import time
from typing import Any

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.apply.managers import APPLY
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import yaml
from steersman.apimachinery.errors import BadRequest, invalid
from steersman.apimachinery.options import META_GROUP, write_options
from steersman.apiserver import rest
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, bodies
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object, Strategy

APPLY_PATCH = "application/apply-patch+yaml"


async def apply(
    core: Core, scope: ResourceScope, strategy: Strategy, x: Exchange, authorize_create: rest.Check
) -> Answer:
    """Apply the body's configuration; creates the object when there is none, given the right to."""
    answers.accepted(x, answers.ONE, scope)
    info = x.info
    options = write_options(info, "PatchOptions")
    if not options.field_manager:
        error = fe.required("fieldManager", "is required for apply patch")
        raise invalid(META_GROUP, "PatchOptions", "", [error])
    config, duplicates = _configuration(x, options.field_validation)
    ctx = core.write_context(
        x, options.field_manager, dry_run=options.dry_run, subresource=info.subresource, operation=APPLY
    )
    ctx.authorize_create = authorize_create

    def change(old: Object | None) -> Object:
        merged = strategy.apply(old, config, ctx.writer, ctx.now, force=bool(options.force))
        if old is None:
            merged = {**merged, "metadata": {**merged["metadata"], "name": merged["metadata"].get("name") or info.name}}
        obj = bodies.finish(x, scope, strategy, codec.copy(merged), duplicates, options.field_validation)
        rest.match_namespace(obj["metadata"], info.namespace, namespaced=scope.namespaced)
        rest.match_name(obj["metadata"], info.name)
        return obj

    uid = (config.get("metadata") or {}).get("uid") if isinstance(config.get("metadata"), dict) else None
    entry, created = await core.registry.update(scope, strategy, info.namespace, info.name, change, ctx, uid=uid)
    return answers.entry(x, scope, entry, time.time(), 201 if created else 200)


def _configuration(x: Exchange, level: str) -> tuple[Object, list[str]]:
    """The configuration in the body, and the keys that stand in it twice (an error under Strict)."""
    body = bodies.read(x.request)
    try:
        config, duplicates = yaml.decode_with_duplicates(body)
    except yaml.YamlError as error:
        raise BadRequest(f"error decoding YAML: {error}") from None
    if duplicates and level == "Strict":
        raise BadRequest(f"error strict decoding YAML: {duplicates[0]}")
    if not isinstance(config, dict):
        raise BadRequest(f"error decoding YAML: the body is no object but {_kind(config)}")
    return config, []


def _kind(value: Any) -> str:
    return {list: "a list", str: "a string", type(None): "empty"}.get(type(value), "a scalar")
