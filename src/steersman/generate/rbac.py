"""What an operator must be allowed: from what its controllers watch and their code writes, and from what it declares.

Source: controller-tools `pkg/rbac/parser.go` (the markers that `Manager.permissions` stands for); for what Kubernetes
asks of the parts, `k8s.io/apiserver/pkg/endpoints/handlers/patch.go` (an apply that creates needs `create` as well).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steersman.client.resources import Kind
from steersman.generate.calls import calls_of
from steersman.generate.grants import RBAC, Grant, needed, rules
from steersman.generate.kinds import Kinds
from steersman.runtime.cache.cache import CacheScope, strip_managed_fields
from steersman.runtime.controller import Controller
from steersman.runtime.manager import Manager

EVENTS = ("events.k8s.io", "events")
ADMISSION = "admissionregistration.k8s.io"
_READS = frozenset({"get", "list", "watch"})
_CLIENT_WRITES = frozenset(
    f"client.{name}"
    for name in (
        *("create", "update", "patch", "apply", "modify", "rebase", "delete", "delete_collection"),
        *("update_status", "patch_status", "update_scale"),
    )
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the operator is: the name of its ServiceAccount and roles, and the namespace it runs in."""

    name: str
    namespace: str


@dataclass(slots=True)
class Permitted:
    """What an operator needs, and what could not be told from its code, for people."""

    grants: list[Grant]
    notes: list[str] = field(default_factory=list)


def permitted(manager: Manager, kinds: Kinds, identity: Identity) -> Permitted:
    """What the operator needs in its main cluster.

    Of an owned kind that `Manager.permissions` says is created, it says all that is written; of all else it adds to
    what the code does.
    """
    for controller in manager.controllers:
        for kind, *_ in controller.watched:
            kinds.learn(kind)
    found: list[Grant] = list(_declared(manager, kinds))
    made = {(grant.group, grant.resource) for grant in found if grant.verb == "create"}
    notes: list[str] = []
    for controller in manager.controllers:
        calls = calls_of(controller.reconciler)
        if controller.cluster is manager.cluster:
            owned = [grant for grant in _owned(controller, kinds, calls) if (grant.group, grant.resource) not in made]
            found += [*owned, *_own(controller, kinds, calls)]
        notes += _unclear(controller, manager, calls)
    notes += _guesses(manager, kinds)
    writes = tuple(found)
    for controller in manager.controllers:
        found += _watched(controller, manager, kinds, writes)
    found += [*_election(manager, kinds, identity), *_webhooks(manager, identity)]
    return Permitted(needed(found), notes)


def objects(grants: Sequence[Grant], identity: Identity, labels: Mapping[str, str] | None = None) -> list[Any]:
    """The ServiceAccount, the roles, one for each namespace and one for all, and their bindings."""
    metadata = {"name": identity.name, **({"labels": dict(labels)} if labels else {})}
    account: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {**metadata, "namespace": identity.namespace},
    }
    made = [account]
    by_namespace: dict[str | None, list[Grant]] = {}
    for grant in grants:
        by_namespace.setdefault(grant.namespace, []).append(grant)
    for namespace, some in sorted(by_namespace.items(), key=lambda item: item[0] or ""):
        kind = "ClusterRole" if namespace is None else "Role"
        # Roles for all namespaces have no namespace that would tell two operators of one name apart.
        own = f"{identity.namespace}:{identity.name}" if namespace != identity.namespace else identity.name
        place = {**metadata, "name": own, **({"namespace": namespace} if namespace is not None else {})}
        api = f"{RBAC}/v1"
        made.append({"apiVersion": api, "kind": kind, "metadata": place, "rules": rules(some)})
        subject = {"kind": "ServiceAccount", "name": identity.name, "namespace": identity.namespace}
        reference = {"apiGroup": RBAC, "kind": kind, "name": own}
        binding = {"apiVersion": api, "kind": f"{kind}Binding", "metadata": place}
        made.append({**binding, "roleRef": reference, "subjects": [subject]})
    return made


def _declared(manager: Manager, kinds: Kinds) -> Iterator[Grant]:
    for permission in manager.permitted:
        known = kinds.known(permission.resource)
        resource = "/".join(filter(None, (known.mapping.plural, permission.subresource)))
        for verb in permission.verbs:
            yield Grant(known.group, resource, verb, tuple(permission.names), permission.namespace)


def _owned(controller: Controller[Any], kinds: Kinds, calls: frozenset[str]) -> Iterator[Grant]:
    """How what is owned is written."""
    verbs = [
        *(("create", "update") if "create_or_update" in calls else ()),
        *(("create", "patch") if "apply" in calls else ()),
    ]
    for kind in controller.owned:
        yield from _grants(kinds, kind, controller.cluster.scope(kind), verbs)


def _own(controller: Controller[Any], kinds: Kinds, calls: frozenset[str]) -> Iterator[Grant]:
    """What is written of the reconciled object, and about it."""
    kind = controller.kind
    if kind is not None:
        known, scope = kinds.known(kind), controller.cluster.scope(kind)
        if {"finalizing", "set_finalizers"} & calls:
            yield from _grants(kinds, kind, scope, ("patch",))
        if controller.status != "off" and known.has_status:
            yield from _grants(kinds, kind, scope, ("patch",), "status")
    if "event" in calls:
        places: Iterable[str | None] = (None,)
        if kind is not None:
            # Events about what has no namespace are kept in this one.
            places = _places(kinds, kind, scope) if known.mapping.namespaced else ("default",)
        for place in places:
            yield from (Grant(*EVENTS, verb, namespace=place) for verb in ("create", "patch"))


def _watched(controller: Controller[Any], manager: Manager, kinds: Kinds, writes: Sequence[Grant]) -> Iterator[Grant]:
    for kind, cluster, metadata_only in controller.watched:
        if cluster is not manager.cluster:
            continue
        known, scope = kinds.known(kind), cluster.scope(kind)
        plural = known.mapping.plural
        written = any(
            (grant.group, grant.resource.partition("/")[0]) == (known.group, plural) and grant.verb not in _READS
            for grant in writes
        )
        # After a lost race, and where the cache does not hold the whole of all objects, the server is asked.
        asked = written or metadata_only or _is_partial(scope)
        yield from _grants(kinds, kind, scope, ("get", "list", "watch") if asked else ("list", "watch"))


def _grants(
    kinds: Kinds, kind: Kind[Any], scope: CacheScope, verbs: Iterable[str], subresource: str = ""
) -> Iterator[Grant]:
    known = kinds.known(kind)
    resource = "/".join(filter(None, (known.mapping.plural, subresource)))
    for place in _places(kinds, kind, scope):
        for verb in verbs:
            yield Grant(known.group, resource, verb, namespace=place)


def _places(kinds: Kinds, kind: Kind[Any], scope: CacheScope) -> Iterable[str | None]:
    if scope.namespaces is None or not kinds.known(kind).mapping.namespaced:
        return (None,)
    return tuple(scope.namespaces)


def _is_partial(scope: CacheScope) -> bool:
    return bool(scope.label_selector or scope.field_selector) or scope.transform not in (None, strip_managed_fields)


def _guesses(manager: Manager, kinds: Kinds) -> Iterator[str]:
    """Kinds of which nobody has said what they are called in paths."""
    named = [kind for controller in manager.controllers for kind, *_ in controller.watched]
    named += [permission.resource for permission in manager.permitted]
    for known in dict.fromkeys(kinds.known(kind) for kind in named):
        if known.is_guess:
            mapping = known.mapping
            say = f'Resource("{mapping.api_version}", "{mapping.kind}", "{mapping.plural}", namespaced=True)'
            yield f"the resource of {mapping.kind} is taken to be {mapping.plural}, with namespaces: say so, {say}"


def _unclear(controller: Controller[Any], manager: Manager, calls: frozenset[str]) -> Iterator[str]:
    """What the code does of which it cannot be told to what."""
    if any(cluster is not manager.cluster for _, cluster, _ in controller.watched):
        yield f"{controller.name}: what it needs in another cluster is not part of this"
    if manager.permitted:
        return
    if direct := sorted(calls & _CLIENT_WRITES):
        yield f"{controller.name} calls {', '.join(direct)}: say with manager.permissions(...) on which kinds"
    if {"create_or_update", "apply"} & calls and not controller.owned:
        yield f"{controller.name} owns no kind, and writes others: say with manager.permissions(...) which"


def _election(manager: Manager, kinds: Kinds, identity: Identity) -> Iterator[Grant]:
    election = manager.election
    if election is None:
        return
    from steersman.runtime.leaderelection import LeaseLock

    lock = election.lock or LeaseLock(election.namespace, election.name)
    for place in lock.places():
        known, namespace = kinds.known(place.kind), place.namespace or identity.namespace
        plural = known.mapping.plural
        # Whoever waits watches it, to notice at once that it is given up.
        for verb in ("get", "list", "watch", "update"):
            yield Grant(known.group, plural, verb, (place.name,), namespace)
        yield Grant(known.group, plural, "create", namespace=namespace)


def _webhooks(manager: Manager, identity: Identity) -> Iterator[Grant]:
    declared, converted = manager.webhooks.declared, manager.webhooks.converted
    if not declared and not converted:
        return
    options, name = manager.webhooks.options, manager.name or "steersman"
    if options.certificates is None:
        where = options.namespace or identity.namespace
        for verb in ("get", "update"):
            yield Grant("", "secrets", verb, (f"{name}-webhook-cert",), where)
        yield Grant("", "secrets", "create", namespace=where)
    if not options.register:
        return
    phases = {"mutating": any(d.mutate for d in declared), "validating": any(d.judge for d in declared)}
    for phase, there in phases.items():
        if there:
            for verb in ("create", "patch"):
                yield Grant(ADMISSION, f"{phase}webhookconfigurations", verb, (name,))
    for crd in converted:
        yield Grant("apiextensions.k8s.io", "customresourcedefinitions", "patch", (crd,))
