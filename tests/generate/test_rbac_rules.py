"""What follows from what a manager says and its code does."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import Any

import pytest

import steersman as st
from steersman.client import Resource
from steersman.generate.calls import calls_of
from steersman.generate.grants import Grant, needed, rules
from steersman.generate.kinds import Kinds
from steersman.generate.rbac import Identity, objects, permitted
from steersman.runtime.cluster import Cluster

OPS = Identity("op", "ops")
MAP, SECRET, POD, NODE = (Resource("v1", kind) for kind in ("ConfigMap", "Secret", "Pod", "Node"))
DEPLOYMENT = Resource("apps/v1", "Deployment")
READ = ["get", "list", "watch"]


class Spec(st.Model):
    size: int = 1


@st.custom_resource("shop.example.com/v1")
class Policy(st.CustomResource[Spec, Spec]): ...


@st.custom_resource("shop.example.com/v1", namespaced=False)
class Plain(st.CustomResource[Spec, None]): ...


async def idle(ctx: Any, obj: Any) -> None: ...


async def applies(ctx: Any, obj: Any) -> None:
    await ctx.apply({})


async def lays(ctx: Any, obj: Any) -> None:
    await helper(ctx)


async def helper(ctx: Any) -> None:
    await ctx.create_or_update({})


async def finalizes(ctx: Any, obj: Any) -> None:
    async with ctx.finalizing("a/b"):
        ctx.event("A", "b")


async def deletes(ctx: Any, obj: Any) -> None:
    await ctx.client.delete(MAP, "a")


def verbs(manager: st.Manager) -> dict[str, list[str]]:
    """Verbs by resource, with the namespace where there is one."""
    found: dict[str, list[str]] = {}
    for grant in permitted(manager, Kinds(), OPS).grants:
        where = f"{grant.namespace}:" if grant.namespace is not None else ""
        found.setdefault(f"{where}{grant.resource}", []).append(grant.verb)
    return {resource: sorted(each) for resource, each in found.items()}


def notes(manager: st.Manager) -> list[str]:
    return permitted(manager, Kinds(), OPS).notes


def test_a_controller_that_only_looks() -> None:
    manager = st.Manager()
    manager.controller(Policy, idle, status="off").watches(POD, lambda pod: ())
    assert verbs(manager) == {"policies": ["list", "watch"], "pods": ["list", "watch"]}


@pytest.mark.parametrize("mode", ["patch", "apply"])
def test_a_status_is_patched(mode: Any) -> None:
    manager = st.Manager()
    manager.controller(Policy, idle, status=mode)
    assert verbs(manager) == {"policies": READ, "policies/status": ["patch"]}


def test_a_kind_without_a_status_has_none_to_write() -> None:
    manager = st.Manager()
    manager.controller(Plain, idle)
    manager.controller(MAP, idle)
    manager.controller(DEPLOYMENT, idle)
    found = verbs(manager)
    assert (found["plains"], found["configmaps"]) == (["list", "watch"], ["list", "watch"])
    assert found["deployments/status"] == ["patch"]


@pytest.mark.parametrize(
    ("reconcile", "written"), [(applies, ["create", "patch"]), (lays, ["create", "update"]), (idle, [])]
)
def test_what_is_owned_is_written_as_the_code_does_it(reconcile: Any, written: list[str]) -> None:
    manager = st.Manager()
    manager.controller(Policy, reconcile, status="off").owns(MAP)
    manager.controller(Policy, idle, status="off", name="other").owns(SECRET)
    assert verbs(manager)["configmaps"] == sorted([*(READ if written else READ[1:]), *written])
    assert verbs(manager)["secrets"] == ["list", "watch"]


def test_finalizers_are_patched_and_events_recorded() -> None:
    manager = st.Manager()
    manager.controller(Policy, finalizes, status="off")
    assert verbs(manager) == {"policies": [*READ[:2], "patch", "watch"], "events": ["create", "patch"]}


def test_events_about_what_has_no_namespace_are_kept_in_default() -> None:
    manager = st.Manager()
    manager.controller(Plain, finalizes)
    assert verbs(manager)["default:events"] == ["create", "patch"]


def test_what_is_watched_in_some_namespaces_is_permitted_there() -> None:
    manager = st.Manager(watch_default=st.CacheScope(namespaces=["a", "b"]), watch={NODE: st.CacheScope()})
    manager.controller(Policy, finalizes).watches(NODE, lambda node: ())
    assert verbs(manager) == {
        **{f"{place}:policies": [*READ[:2], "patch", "watch"] for place in "ab"},
        **{f"{place}:policies/status": ["patch"] for place in "ab"},
        **{f"{place}:events": ["create", "patch"] for place in "ab"},
        "nodes": ["list", "watch"],
    }
    made = objects(permitted(manager, Kinds(), OPS).grants, OPS)
    places = [(obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]) for obj in made[1:]]
    assert places == [
        ("ClusterRole", None, "ops:op"),
        ("ClusterRoleBinding", None, "ops:op"),
        ("Role", "a", "ops:op"),
        ("RoleBinding", "a", "ops:op"),
        ("Role", "b", "ops:op"),
        ("RoleBinding", "b", "ops:op"),
    ]


@pytest.mark.parametrize(
    "scope", [st.CacheScope(label_selector="a=b"), st.CacheScope(transform=lambda obj: obj), "metadata"]
)
def test_what_the_cache_has_in_part_is_read_from_the_server(scope: Any) -> None:
    manager = st.Manager(watch={} if scope == "metadata" else {POD: scope})
    manager.controller(Policy, idle, status="off").watches(POD, lambda pod: (), metadata_only=scope == "metadata")
    assert verbs(manager)["pods"] == READ


def test_what_is_kept_of_managed_fields_costs_no_permission() -> None:
    manager = st.Manager(watch_default=st.CacheScope(transform=st.strip_managed_fields))
    manager.controller(POD, idle, status="off")
    assert verbs(manager) == {"pods": ["list", "watch"]}


def test_what_is_declared_is_added() -> None:
    manager = st.Manager()
    manager.controller(Policy, finalizes, status="off").owns(MAP)
    manager.permissions(Policy, "delete")
    manager.permissions(SECRET, "get", names=["key"], namespace="vault")
    manager.permissions(DEPLOYMENT, "update", subresource="scale")
    found = verbs(manager)
    assert found["policies"] == ["delete", *READ[:2], "patch", "watch"]
    assert found["vault:secrets"] == ["get"]
    assert found["deployments/scale"] == ["update"]


def test_what_is_declared_to_be_created_says_all_that_is_written() -> None:
    async def both(ctx: Any, obj: Any) -> None:
        await ctx.apply({})
        await ctx.create_or_update({})

    manager = st.Manager()
    manager.controller(Policy, both, status="off").owns(MAP).owns(SECRET)
    assert verbs(manager)["configmaps"] == ["create", *READ[:2], "patch", "update", "watch"]
    manager.permissions(MAP, "create", "patch")
    assert verbs(manager)["configmaps"] == ["create", *READ[:2], "patch", "watch"]
    assert verbs(manager)["secrets"] == ["create", *READ[:2], "patch", "update", "watch"]


def test_what_cannot_be_told_is_noted() -> None:
    manager = st.Manager()
    manager.controller(Policy, deletes)
    assert notes(manager) == ["policy calls client.delete: say with manager.permissions(...) on which kinds"]
    manager.permissions(MAP, "delete")
    assert notes(manager) == []
    assert verbs(manager)["configmaps"] == ["delete"]
    manager = st.Manager()
    manager.controller(Policy, lays)
    assert notes(manager) == ["policy owns no kind, and writes others: say with manager.permissions(...) which"]
    manager = st.Manager()
    other = manager.add_cluster(Cluster())
    manager.controller(Policy, idle, status="off").watches(POD, lambda pod: (), cluster=other)
    assert notes(manager) == ["policy: what it needs in another cluster is not part of this"]
    assert verbs(manager) == {"policies": ["list", "watch"]}


def test_what_a_controller_writes_in_another_cluster_is_permitted_there() -> None:
    manager = st.Manager()
    other = manager.add_cluster(Cluster())
    manager.controller(Policy, lays, cluster=other).owns(MAP)
    assert verbs(manager) == {}
    assert notes(manager) == ["policy: what it needs in another cluster is not part of this"]


def test_what_a_foreign_kind_is_called_is_a_guess_until_it_is_said() -> None:
    manager = st.Manager()
    manager.controller(Policy, idle, status="off").watches(Resource("x.example.com/v1", "Gateway"), lambda obj: ())
    assert notes(manager) == [
        "the resource of Gateway is taken to be gateways, with namespaces: say so, "
        'Resource("x.example.com/v1", "Gateway", "gateways", namespaced=True)'
    ]
    assert verbs(manager)["gateways"] == ["list", "watch"]
    manager = st.Manager()
    known = Resource("x.example.com/v1", "Gateway", "gateaways", False)
    manager.controller(Policy, idle, status="off").watches(known, lambda obj: ())
    assert notes(manager) == []
    assert verbs(manager)["gateaways"] == ["list", "watch"]


def test_a_controller_without_a_kind_records_events_anywhere() -> None:
    manager = st.Manager()
    manager.controller(None, finalizes, name="other")
    assert verbs(manager) == {"events": ["create", "patch"]}


@pytest.mark.parametrize(
    ("election", "place"),
    [
        ("op-lock", "ops:leases"),
        (st.Election("op-lock", namespace="kube-system"), "kube-system:leases"),
        (st.Election("x", lock=st.ConfigMapLock("locks", "op-lock")), "locks:configmaps"),
    ],
)
def test_an_election_needs_its_own_lock_only(election: Any, place: str) -> None:
    manager = st.Manager(leader_election=election)
    assert verbs(manager) == {place: ["create", "get", "list", "update", "watch"]}
    named = {grant.verb for grant in permitted(manager, Kinds(), OPS).grants if grant.names == ("op-lock",)}
    assert named == {"get", "list", "update", "watch"}  # what is created has no name yet


def judge(obj: Any, request: Any) -> None: ...


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (st.Webhooks(), {"secrets", "validatingwebhookconfigurations", "customresourcedefinitions"}),
        (st.Webhooks(register=False), {"secrets"}),
        (
            st.Webhooks(certificates=object()),  # type: ignore[arg-type]
            {"validatingwebhookconfigurations", "customresourcedefinitions"},
        ),
    ],
)
def test_webhooks_need_what_the_manager_sees_to(options: Any, found: set[str]) -> None:
    manager = st.Manager(name="op", webhooks=options)
    manager.webhook(Policy, validate=judge)
    manager.conversion("policies.shop.example.com", {})
    grants = permitted(manager, Kinds(), OPS).grants
    assert {grant.resource for grant in grants} == found
    assert {grant.names for grant in grants if grant.resource.startswith("validating")} <= {("op",)}
    assert {grant.names for grant in grants if grant.resource.startswith("custom")} <= {("policies.shop.example.com",)}


def test_rules_are_as_few_as_there_are_kinds_of_them() -> None:
    grants = [
        Grant("", "pods", "list"),
        Grant("", "pods", "get"),
        Grant("", "nodes", "list"),
        Grant("", "nodes", "get"),
        Grant("", "nodes", "get"),
        Grant("", "secrets", "get", ("a",)),
        Grant("apps", "deployments", "delete"),
    ]
    assert rules(needed(grants)) == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["delete"]},
    ]


def test_what_is_permitted_more_widely_is_not_repeated() -> None:
    wide, named, placed = Grant("", "pods", "get"), Grant("", "pods", "get", ("a",)), Grant("", "pods", "get", (), "n")
    assert needed([named, placed, wide, named]) == [wide]
    assert needed([named, placed]) == [named, placed]


class Reconciler:
    async def __call__(self, ctx: Any, obj: Any) -> None:
        await self.inner(ctx)

    async def inner(self, ctx: Any) -> None:
        await ctx.apply({})

    async def method(self, ctx: Any, obj: Any) -> None:
        await self.inner(ctx)


def wrapped(func: Any) -> Any:
    @functools.wraps(func)
    async def around(*arguments: Any) -> None:
        await func(*arguments)

    return around


def closed_over() -> Any:
    async def inside(ctx: Any) -> None:
        await ctx.apply({})

    async def outside(ctx: Any, obj: Any) -> None:
        await inside(ctx)

    return outside


@pytest.mark.parametrize(
    "func",
    [
        applies,
        Reconciler(),
        Reconciler().method,
        functools.partial(applies, obj=None),
        wrapped(applies),
        closed_over(),
    ],
)
def test_calls_are_found_whatever_a_reconciler_is(func: Any) -> None:
    assert "apply" in calls_of(func)


def test_calls_of_installed_code_are_none_of_the_operators() -> None:
    assert calls_of(len) == calls_of(st.set_condition) == frozenset()


def test_an_operator_may_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is in an image: what it is made of is still its own, and what is installed beside it is not."""
    site = tmp_path / "site-packages"
    (site / "installed_shop").mkdir(parents=True)
    (site / "installed_shop" / "__init__.py").write_text("")
    (site / "installed_shop" / "parts.py").write_text("async def part(ctx):\n    await ctx.apply({})\n")
    (site / "installed_other.py").write_text("async def other(ctx):\n    await ctx.create_or_update({})\n")
    (site / "installed_shop" / "main.py").write_text(
        "from installed_other import other\nfrom installed_shop.parts import part\n"
        "async def reconcile(ctx, obj):\n    await part(ctx)\n    await other(ctx)\n"
    )
    monkeypatch.syspath_prepend(str(site))
    calls = calls_of(importlib.import_module("installed_shop.main").reconcile)
    assert "apply" in calls
    assert "create_or_update" not in calls


async def by_function(ctx: Any, obj: Any) -> None:
    async with st.finalizing(ctx.client, obj, "a/b"):
        pass


def test_functions_of_ours_count_by_their_names() -> None:
    assert "finalizing" in calls_of(by_function)
