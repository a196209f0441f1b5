"""POST on pods/NAME/binding: a Pod is placed on a node.

Source: kubernetes `pkg/registry/core/pod/storage/storage.go` (BindingREST).
"""

from __future__ import annotations

from steersman.api.kinds import builtin_kind
from steersman.apimachinery.errors import ApiError, BadRequest, conflict
from steersman.apimachinery.field_errors import aggregate
from steersman.apimachinery.options import write_options
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, large, other_kind
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object


async def bind(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    """Give the Pod that the path names the node of the Binding, and the condition PodScheduled."""
    from steersman.api.core import pod as rules  # deferred: with the rules of a Pod, in a server that has some

    choice = answers.accepted(x, frozenset(), scope)
    options = write_options(x.info, "CreateOptions")
    binding = await large.read(
        x, other_kind.read, x, scope, builtin_kind("", "v1", "Binding"), options.field_validation
    )
    name = x.info.name
    if binding["metadata"].get("name") != name:
        raise BadRequest("name in URL does not match name in Binding object")
    if errors := rules.binding_errors(binding):
        raise ApiError(aggregate(errors))
    ctx = core.write_context(x, options.field_manager, dry_run=options.dry_run, subresource="binding")

    def place(old: Object | None) -> Object:
        assert old is not None
        meta, spec = old["metadata"], old.get("spec") or {}
        uid = binding["metadata"].get("uid")
        if uid and uid != meta["uid"]:
            raise conflict("", "pods/binding", name, f"Precondition failed: UID in precondition: {uid}")
        if "deletionTimestamp" in meta:
            raise conflict("", "pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
        if spec.get("nodeName"):
            why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
            raise conflict("", "pods/binding", name, why)
        pod = {**old, "metadata": dict(meta)}
        rules.bind(pod, binding, ctx.now)
        return pod

    strategy = scope.subresource_strategies["binding"]
    await core.registry.update(scope, strategy, x.info.namespace, name, place, ctx)
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return answers.value(201, choice, success)
