import asyncio

import pytest
from tests.controlplane.conftest import gone

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name, *owners, **metadata):
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["name"], "uid": owner["uid"], **owner.get("more", {})}
        for owner in owners
    ]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **({"ownerReferences": references} if references else {}), **metadata},
    }


@pytest.fixture
def make(apiserver):
    """Creates a ConfigMap; what it gives can own others. `block` is for its own owners."""

    async def create(name, *owners, block=False, **metadata):
        more = {"blockOwnerDeletion": True} if block else {}
        body = config_map(name, *({**owner, "more": more} for owner in owners), **metadata)
        answer = await apiserver.request("POST", MAPS, body)
        assert answer.status == 201, answer.body
        return {"name": name, "uid": answer.body["metadata"]["uid"]}

    return create


@pytest.fixture
def delete(apiserver):
    async def send(name, policy=None):
        body = {"propagationPolicy": policy} if policy else None
        answer = await apiserver.request("DELETE", f"{MAPS}/{name}", body)
        assert answer.status == 200, answer.body

    return send


async def test_a_chain_goes_with_its_head(make, delete, until):
    first = await make("first")
    second = await make("second", first)
    await make("third", second)
    await make("bystander")
    await delete("first")
    await until("configmaps", "default/third", gone)
    await until("configmaps", "default/second", gone)
    assert await until("configmaps", "default/bystander", lambda obj: True)


async def test_one_owner_left_is_enough(make, delete, until):
    one, two = await make("one"), await make("two")
    await make("child", one, two)
    await delete("one")
    child = await until("configmaps", "default/child", lambda obj: len(obj["metadata"]["ownerReferences"]) == 1)
    assert child["metadata"]["ownerReferences"][0]["uid"] == two["uid"]


async def test_foreground_waits_for_blocking_dependents_only(apiserver, make, delete, until):
    owner = await make("owner")
    await make("held", owner, block=True, finalizers=["x.io/hold"])
    await make("free", owner, finalizers=["x.io/hold"])
    await delete("owner", "Foreground")
    for name in ("held", "free"):
        await until("configmaps", f"default/{name}", lambda obj: "deletionTimestamp" in obj["metadata"])
    assert await until("configmaps", "default/owner", lambda obj: obj is not None)
    release = {"metadata": {"finalizers": None}}
    headers = {"Content-Type": "application/merge-patch+json"}
    await apiserver.request("PATCH", f"{MAPS}/held", release, headers=headers)
    await until("configmaps", "default/owner", gone)
    assert await until("configmaps", "default/free", lambda obj: obj is not None)


async def test_a_cycle_ends_in_the_foreground(apiserver, make, delete, until):
    owner = await make("a")
    other = await make("b", owner, block=True)
    change = {"metadata": config_map("a", {**other, "more": {"blockOwnerDeletion": True}})["metadata"]}
    headers = {"Content-Type": "application/merge-patch+json"}
    answer = await apiserver.request("PATCH", f"{MAPS}/a", change, headers=headers)
    assert answer.status == 200
    await delete("a", "Foreground")
    await until("configmaps", "default/a", gone)
    await until("configmaps", "default/b", gone)


async def test_orphans_stay_without_their_owner(make, delete, until):
    owner = await make("owner")
    await make("child", owner, labels={"kept": "yes"})
    await delete("owner", "Orphan")
    await until("configmaps", "default/owner", gone)
    child = await until("configmaps", "default/child", lambda obj: "ownerReferences" not in obj["metadata"])
    assert child["metadata"]["labels"] == {"kept": "yes"}


@pytest.mark.parametrize(
    "owner",
    [
        {"name": "never-was", "uid": "00000000-0000-0000-0000-000000000001"},
        {"name": "kube-root-ca.crt", "uid": "00000000-0000-0000-0000-000000000001"},
    ],
)
async def test_an_absent_owner_or_another_of_its_name_is_none(make, until, owner):
    await make("child", owner)
    await until("configmaps", "default/child", gone)


async def test_owners_in_another_namespace_are_absent(apiserver, make, until):
    owner = await make("owner")
    await apiserver.request("POST", "/api/v1/namespaces/kube-public/configmaps", config_map("child", owner))
    await until("configmaps", "kube-public/child", gone)
    assert await until("configmaps", "default/owner", lambda obj: obj is not None)


async def test_dependents_of_kinds_not_served_stay_until_the_kind_is(apiserver, until):
    body = config_map("child")
    body["metadata"]["ownerReferences"] = [
        {"apiVersion": "test.example.com/v1", "kind": "Widget", "name": "w", "uid": "u"}
    ]
    assert (await apiserver.request("POST", MAPS, body)).status == 201
    probe = config_map("probe", {"name": "absent", "uid": "v"})
    assert (await apiserver.request("POST", MAPS, probe)).status == 201
    await until("configmaps", "default/probe", gone)
    assert await until("configmaps", "default/child", lambda obj: obj is not None)
    await apiserver.define()
    await until("configmaps", "default/child", gone)


async def test_custom_resources_own_and_are_owned(apiserver, until):
    widgets = await apiserver.define()
    widget = {"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    made = (await apiserver.request("POST", widgets, widget)).body
    reference = {"apiVersion": "test.example.com/v1", "kind": "Widget", "name": "w", "uid": made["metadata"]["uid"]}
    child = {**widget, "metadata": {"name": "child", "ownerReferences": [reference]}}
    assert (await apiserver.request("POST", widgets, child)).status == 201
    body = config_map("of-widget")
    body["metadata"]["ownerReferences"] = [reference]
    assert (await apiserver.request("POST", MAPS, body)).status == 201
    await apiserver.request("DELETE", f"{widgets}/w")
    await until("configmaps", "default/of-widget", gone)
    await until("widgets", "default/child", gone, group="test.example.com")


async def test_many_dependents_go_at_once(make, delete, until):
    owner = await make("owner")
    await asyncio.gather(*(make(f"child-{index}", owner) for index in range(100)))
    await delete("owner")
    for index in range(100):
        await until("configmaps", f"default/child-{index}", gone)
