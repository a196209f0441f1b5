"""POST on pods/NAME/eviction: a Pod is deleted, if its disruption budget allows that.

Source: kubernetes `pkg/registry/core/pod/storage/eviction.go`.
"""

from __future__ import annotations

from dataclasses import replace

from steersman.api.policy import eviction as rules
from steersman.apimachinery.apply.managers import Writer
from steersman.apimachinery.errors import ApiError, BadRequest, Conflict, not_found
from steersman.apimachinery.options import DeleteOptions, delete_options, write_options
from steersman.apiserver import rest
from steersman.apiserver.admission import Attributes
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, large, other_kind
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object
from steersman.apiserver.writing import WriteContext

_TRIES = 20


async def evict(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    """Evict the Pod that the path names; 429 while its budget does not allow it."""
    choice = answers.accepted(x, frozenset(), scope)
    options = write_options(x.info, "CreateOptions")
    kind, namespace, name = rules.eviction_kind(), x.info.namespace, x.info.name
    asked = await large.read(x, other_kind.read, x, scope, kind, options.field_validation, also="policy/v1beta1")
    ctx = core.write_context(x, options.field_manager, dry_run=options.dry_run)
    attributes = _attributes(scope, x, asked, ctx)
    await core.registry.admission.admit(attributes)
    eviction = attributes.obj or asked
    if eviction["metadata"].get("name") != name:
        raise BadRequest("name in URL does not match name in Eviction object")
    deletion = delete_options(x.info, eviction.get("deleteOptions"))
    if core.registry.admission.judges:
        await core.registry.admission.validate(attributes)
    ctx = replace(ctx, dry_run=options.dry_run or deletion.dry_run)
    if not await _evict_idle(core, scope, namespace, name, deletion, ctx):
        await _evict_guarded(core, scope, namespace, name, deletion, ctx)
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return answers.value(201, choice, success)


def _attributes(scope: ResourceScope, x: Exchange, eviction: Object, ctx: WriteContext) -> Attributes:
    kind = rules.eviction_kind()
    return Attributes(
        "CREATE",
        scope,
        x.info.namespace,
        x.info.name,
        eviction,
        None,
        x.user,
        ctx.dry_run,
        "eviction",
        kind=kind.gvk,
        form=other_kind.rules(kind),
        options={"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", **ctx.options},
        warn=ctx.warn,
        annotate=ctx.annotate,
    )


async def _evict_idle(
    core: Core, scope: ResourceScope, namespace: str, name: str, options: DeleteOptions, ctx: WriteContext
) -> bool:
    """Delete a Pod that no budget counts; False: budgets count it."""
    for attempt in range(_TRIES):
        pod = _pod(scope, namespace, name)
        if not rules.guards_nothing(pod):
            return False
        pinned = options if rules.is_over(pod) else _pinned(options, pod)
        try:
            await _delete(core, scope, namespace, name, pinned, ctx)
        except Conflict:
            if options.precondition_resource_version or attempt == _TRIES - 1:
                raise
        else:
            break
    return True


async def _evict_guarded(
    core: Core, scope: ResourceScope, namespace: str, name: str, options: DeleteOptions, ctx: WriteContext
) -> None:
    """Delete a Pod that is running, when its budget lets it go."""
    pod = _pod(scope, namespace, name)
    budget_scope = core.catalog.look_up("policy", "v1", "poddisruptionbudgets")
    assert budget_scope is not None
    cache = budget_scope.cache
    entries = [entry for key in cache.select(namespace) if (entry := cache.get(key)) is not None]
    budgets = rules.budgets_of(pod, [entry.decode() for entry in entries])
    if len(budgets) > 1:
        why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiError(why)
    unready = bool(budgets) and rules.may_go_unready(pod, budgets[0])
    if budgets and not unready:
        await _take(core, budget_scope, budgets[0]["metadata"]["name"], pod, ctx)
    try:
        await _delete(core, scope, namespace, name, _pinned(options, pod) if unready else options, ctx)
    except Conflict:
        if unready and not options.precondition_resource_version:
            raise rules.still_processed(budgets[0]["metadata"]["name"]) from None
        raise


async def _take(core: Core, scope: ResourceScope, name: str, pod: Object, ctx: WriteContext) -> None:
    """Count one more disruption in a budget's status, as the server itself."""
    meta = pod["metadata"]

    def change(old: Object | None) -> Object:
        assert old is not None
        return rules.disrupt(old, meta["name"], ctx.now)

    own = replace(ctx, writer=Writer("kube-apiserver", "Update", "status"), subresource="status")
    await core.registry.update(scope, scope.subresource_strategies["status"], meta["namespace"], name, change, own)


async def _delete(
    core: Core, scope: ResourceScope, namespace: str, name: str, options: DeleteOptions, ctx: WriteContext
) -> None:
    """Tell in the Pod's status why it goes, then delete it."""

    def change(old: Object | None) -> Object:
        assert old is not None
        meta = old["metadata"]
        rest.check_delete_preconditions(scope, name, meta, int(meta["resourceVersion"]), options)
        return rules.mark_evicted(old, ctx.now)

    if not ctx.dry_run:
        strategy, marking = scope.subresource_strategies["status"], replace(ctx, subresource="status", owns=True)
        entry, _ = await core.registry.update(scope, strategy, namespace, name, change, marking)
        if options.precondition_resource_version:
            options = replace(options, precondition_resource_version=str(entry.revision))
    await core.registry.delete(scope, namespace, name, options, ctx)


def _pod(scope: ResourceScope, namespace: str, name: str) -> Object:
    entry = scope.cache.get(scope.key(namespace, name))
    if entry is None:
        raise not_found("", "pods", name)
    pod = entry.decode()
    pod["metadata"]["resourceVersion"] = str(entry.revision)
    return pod


def _pinned(options: DeleteOptions, pod: Object) -> DeleteOptions:
    """Options that hold for this state of the Pod only, unless they already name one."""
    if options.precondition_resource_version:
        return options
    return replace(options, precondition_resource_version=pod["metadata"]["resourceVersion"])
