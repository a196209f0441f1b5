"""PUT: replace an object, or its status.

Source: apiserver `pkg/endpoints/handlers/update.go`.
"""

from __future__ import annotations

from steersman._util import clock
from steersman.apimachinery.options import write_options
from steersman.apiserver import rest
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, bodies, large
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object, Strategy


async def update(
    core: Core, scope: ResourceScope, strategy: Strategy, x: Exchange, authorize_create: rest.Check = rest.allow
) -> Answer:
    """PUT on an object, or on a subresource of the same kind whose rules are `strategy`."""
    answers.accepted(x, answers.ONE, scope)
    info = x.info
    options = write_options(info, "UpdateOptions")
    body = await large.read(x, bodies.decode, x, scope, strategy, options.field_validation)
    rest.match_namespace(body["metadata"], info.namespace, namespaced=scope.namespaced)
    rest.match_name(body["metadata"], info.name)
    ctx = core.write_context(x, options.field_manager, dry_run=options.dry_run, subresource=info.subresource)
    ctx.authorize_create = authorize_create

    def replace(old: Object | None) -> Object:
        return {**body, "metadata": dict(body["metadata"])}

    meta = body["metadata"]
    entry, created = await core.registry.update(
        scope,
        strategy,
        info.namespace,
        info.name,
        replace,
        ctx,
        uid=meta.get("uid"),
        version=meta.get("resourceVersion"),
    )
    return answers.entry(x, scope, entry, clock.now(), 201 if created else 200)
