"""PATCH with application/apply-patch+yaml: server-side apply.

Source: apiserver `pkg/endpoints/handlers/patch.go` (applyPatcher), KEP-555.
"""

from __future__ import annotations

from steersman._util import clock
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.apply.managers import APPLY
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import yaml
from steersman.apimachinery.errors import BadRequest, conflict, invalid
from steersman.apimachinery.go_values import json_kind
from steersman.apimachinery.options import META_GROUP, WriteOptions, write_options
from steersman.apiserver import rest
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, bodies, large
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
    config, duplicates = await large.read(x, read_configuration, x, options)
    ctx = core.write_context(
        x, options.field_manager, dry_run=options.dry_run, subresource=info.subresource, operation=APPLY
    )
    ctx.authorize_create = authorize_create

    meta = config.get("metadata")
    uid = meta.get("uid") if isinstance(meta, dict) else None

    def change(old: Object | None) -> Object:
        merged = strategy.apply(old, config, ctx.writer, ctx.now, force=bool(options.force))
        if old is None and uid:
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(scope.group, scope.resource, info.name, why)
        x.warnings += [text for text in duplicates if text not in x.warnings]
        rest.match_namespace(merged["metadata"], info.namespace, namespaced=scope.namespaced)
        rest.match_name(merged["metadata"], info.name)
        rest.parse_revision(str(merged["metadata"].get("resourceVersion") or ""))
        return merged

    entry, created = await core.registry.update(scope, strategy, info.namespace, info.name, change, ctx)
    return answers.entry(x, scope, entry, clock.now(), 201 if created else 200)


def read_configuration(x: Exchange, options: WriteOptions) -> tuple[Object, list[str]]:
    """The configuration in the body, and what to warn of: the keys that stand in it twice (an error under Strict)."""
    if not options.field_manager:
        error = fe.required("fieldManager", "is required for apply patch")
        raise invalid(META_GROUP, "PatchOptions", "", [error])
    level = options.field_validation
    body = bodies.read(x.request)
    try:
        config, duplicates = yaml.decode_with_duplicates(body)
    except yaml.YamlError as error:
        raise BadRequest(f"error encoding patch: {error}") from None
    if x.audit is not None:
        x.audit.request_text(codec.encode(config))
    if duplicates and level == "Strict":
        raise BadRequest(f"error strict decoding patch: error converting YAML to JSON: {yaml.strict_error(duplicates)}")
    if config is None:
        config = {}
    if not isinstance(config, dict):
        raise BadRequest(
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{json_kind(config)} into Go value of type map[string]interface {{}}"
        )
    return config, duplicates if level == "Warn" else []
