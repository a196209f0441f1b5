"""POST: create an object.

Source: apiserver `pkg/endpoints/handlers/create.go`.
"""

from __future__ import annotations

from steersman._util import clock
from steersman.apimachinery.errors import forbidden
from steersman.apimachinery.options import write_options
from steersman.apiserver import rest
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, bodies, large
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope


async def create(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    answers.accepted(x, answers.ONE, scope)
    options = write_options(x.info, "CreateOptions")
    obj = await large.read(x, bodies.decode, x, scope, scope.strategy, options.field_validation)
    rest.match_namespace(obj["metadata"], x.info.namespace, namespaced=scope.namespaced)
    if scope.terminating:
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(scope.group, scope.resource, obj["metadata"].get("name") or "", why)
    ctx = core.write_context(x, options.field_manager, dry_run=options.dry_run)
    entry = await core.registry.create(scope, x.info.namespace, obj, ctx)
    return answers.entry(x, scope, entry, clock.now(), 201)
