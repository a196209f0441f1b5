"""Every kind of lock on a real server: what is stored is client-go's, and what client-go stores is understood."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from steersman import (
    Client,
    ConfigMapLock,
    Conflict,
    EndpointsLock,
    LeaderElector,
    Leadership,
    LeadershipLost,
    LeaseLock,
    MultiLock,
    Resource,
    load,
)
from steersman.client.http_transport import HttpTransport
from steersman.runtime.leaderelection import UNKNOWN_LEADER, LeaderTransport, Lock, Record

from ...conftest import RunningServer

ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
LEASE = Resource("coordination.k8s.io/v1", "Lease")
CONFIG_MAP = Resource("v1", "ConfigMap")
MAKERS: dict[str, Callable[[], Lock]] = {
    "lease": lambda: LeaseLock("default", "lock"),
    "configmap": lambda: ConfigMapLock("default", "lock"),
    "endpoints": lambda: EndpointsLock("default", "lock"),
    "configmapsleases": lambda: MultiLock(ConfigMapLock("default", "lock"), LeaseLock("default", "lock")),
    "endpointsleases": lambda: MultiLock(EndpointsLock("default", "lock"), LeaseLock("default", "lock")),
}


@pytest.fixture
async def client(apiserver: RunningServer) -> AsyncIterator[Client]:
    async with await apiserver.client(on_warning=lambda _: None) as client:
        yield client


def elector(client: Client, lock: Lock, identity: str, **options: Any) -> LeaderElector:
    durations = {"lease_duration": 2.0, "renew_deadline": 1.5, "retry_period": 0.2}
    return LeaderElector(client, lock, identity=identity, exit_on_overrun=False, **{**durations, **options})


class Work:
    """Work that goes on until it is told to end."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.over = asyncio.Event()
        self.began = 0.0

    async def __call__(self, leadership: Leadership) -> int:
        self.began = asyncio.get_running_loop().time()
        self.begun.set()
        await self.over.wait()
        leadership.check()
        return leadership.fencing_token


@pytest.mark.parametrize("kind", MAKERS)
async def test_two_electors_lead_one_after_the_other(client: Client, kind: str) -> None:
    works = [Work(), Work()]
    one = asyncio.create_task(elector(client, MAKERS[kind](), "one").run(works[0]))
    await works[0].begun.wait()
    second = elector(client, MAKERS[kind](), "two")
    two = asyncio.create_task(second.run(works[1]))
    await asyncio.sleep(0.8)
    assert not works[1].begun.is_set()
    assert second.leader == "one"
    works[0].over.set()
    assert await one == 0
    async with asyncio.timeout(2):
        await works[1].begun.wait()
    works[1].over.set()
    assert await two == 1


async def test_a_lease_is_stored_as_client_go_stores_it(client: Client) -> None:
    work = Work()
    task = asyncio.create_task(elector(client, LeaseLock("default", "lock"), "me", retry_period=0.1).run(work))
    await work.begun.wait()
    lease = await client.get(LEASE, "lock", namespace="default")
    spec = lease["spec"]
    assert sorted(spec) == ["acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("me", 2, 0)
    assert abs(datetime.fromisoformat(spec["renewTime"]) - datetime.now(UTC)).total_seconds() < 5
    await asyncio.sleep(0.3)
    renewed = (await client.get(LEASE, "lock", namespace="default"))["spec"]
    assert renewed["acquireTime"] == spec["acquireTime"] and renewed["renewTime"] > spec["renewTime"]
    work.over.set()
    await task
    released = (await client.get(LEASE, "lock", namespace="default"))["spec"]
    assert (released["holderIdentity"], released["leaseDurationSeconds"], released["leaseTransitions"]) == ("", 1, 0)


@pytest.mark.parametrize("lock", [ConfigMapLock, EndpointsLock])
async def test_an_annotation_is_stored_as_client_go_stored_it(client: Client, lock: type[ConfigMapLock]) -> None:
    work = Work()
    task = asyncio.create_task(elector(client, lock("default", "lock"), "me").run(work))
    await work.begun.wait()
    obj = await client.get(lock.kind, "lock", namespace="default")
    time = r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"'
    expected = (
        r'\{"holderIdentity":"me","leaseDurationSeconds":2,'
        rf'"acquireTime":{time},"renewTime":{time},"leaderTransitions":0\}}'
    )
    assert re.fullmatch(expected, obj["metadata"]["annotations"][ANNOTATION])
    work.over.set()
    await task


def lease(holder: str, **spec: Any) -> dict[str, Any]:
    times = {"acquireTime": "2001-01-01T00:00:00.000000Z", "renewTime": "2001-01-01T00:00:00.000000Z"}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "lock", "namespace": "default", "labels": {"theirs": "kept"}},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 1, "leaseTransitions": 41, **times, **spec},
    }


def annotated(text: str) -> dict[str, Any]:
    metadata = {"name": "lock", "namespace": "default", "annotations": {ANNOTATION: text}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"theirs": "kept"}}


RECORD = (
    '{"holderIdentity":"go","leaseDurationSeconds":1,"acquireTime":"2001-01-01T00:00:00Z",'
    '"renewTime":"2001-01-01T00:00:00Z","leaderTransitions":41,"strategy":"","preferredHolder":""}'
)
FOREIGN = [
    ("lease", lease("go"), 42),
    ("lease", {**lease("kubectl"), "spec": {"holderIdentity": "kubectl", "leaseTransitions": 41}}, 42),
    ("configmap", annotated(RECORD), 42),
    ("configmap", annotated("not JSON"), 1),
    ("configmap", annotated('{"holderIdentity":7}'), 1),
    ("configmap", annotated("[]"), 1),
]


@pytest.mark.parametrize(("kind", "stored", "token"), FOREIGN)
async def test_another_s_record_runs_out_however_old_its_times_are(
    client: Client, kind: str, stored: Any, token: int
) -> None:
    await client.create(stored)
    work = Work()
    started = asyncio.get_running_loop().time()
    options = {"lease_duration": 1.0, "renew_deadline": 0.8}
    task = asyncio.create_task(elector(client, MAKERS[kind](), "me", **options).run(work))
    await work.begun.wait()
    assert 1.0 <= work.began - started < 4
    work.over.set()
    assert await task == token
    stays = await client.get(LEASE if kind == "lease" else CONFIG_MAP, "lock", namespace="default")
    assert stays["metadata"].get("labels") == stored["metadata"].get("labels")
    assert stays.get("data") == stored.get("data")


async def test_a_lock_that_was_given_up_is_taken_at_once(client: Client) -> None:
    await client.create(lease("", leaseDurationSeconds=3600))
    work = Work()
    work.over.set()
    async with asyncio.timeout(2):
        assert await elector(client, LeaseLock("default", "lock"), "me").run(work) == 42


async def test_labels_are_set_beside_those_of_others(client: Client) -> None:
    await client.create(lease(""))
    work = Work()
    work.over.set()
    await elector(client, LeaseLock("default", "lock", labels={"app": "mine"}), "me").run(work)
    stored = await client.get(LEASE, "lock", namespace="default")
    assert stored["metadata"]["labels"] == {"theirs": "kept", "app": "mine"}


async def hand_over_seconds(client: Client, second: Client) -> float:
    """From the end of the one's work to the begin of the other's, with Kubernetes' own durations."""
    works = [Work(), Work()]
    locks = [LeaseLock("default", "lock"), LeaseLock("default", "lock")]
    one = asyncio.create_task(LeaderElector(client, locks[0], identity="one", exit_on_overrun=False).run(works[0]))
    await works[0].begun.wait()
    two = asyncio.create_task(LeaderElector(second, locks[1], identity="two", exit_on_overrun=False).run(works[1]))
    await asyncio.sleep(0.5)
    works[0].over.set()
    await one
    ended = asyncio.get_running_loop().time()
    await works[1].begun.wait()
    works[1].over.set()
    await two
    return works[1].began - ended


async def test_a_hand_over_takes_less_than_a_second(client: Client) -> None:
    assert await hand_over_seconds(client, client) < 1.0


async def test_without_the_right_to_watch_a_candidate_looks_by_itself(client: Client, apiserver: RunningServer) -> None:
    rbac = "rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}
    metadata = {"name": "electors", "namespace": "default"}
    await client.create({"apiVersion": rbac, "kind": "Role", "metadata": metadata, "rules": [rule]})
    subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "Role", "name": "electors", "apiGroup": "rbac.authorization.k8s.io"}
    await client.create(
        {"apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata, "subjects": [subject], "roleRef": role}
    )
    text = apiserver.kubeconfig.read_text().replace(apiserver.token, "alicetoken")
    kubeconfig = apiserver.kubeconfig.with_name("alice")
    kubeconfig.write_text(text)
    async with Client(load(kubeconfig=kubeconfig)) as alice:
        assert await hand_over_seconds(client, alice) < 2 * 2.2 + 1


async def test_a_record_is_written_only_in_place_of_the_one_that_was_seen(client: Client) -> None:
    for make in MAKERS.values():
        lock = make()
        seen = await lock.write(client, Record("one", 2), await lock.read(client))
        await lock.write(client, Record("two", 2), seen)
        with pytest.raises(Conflict):
            await lock.write(client, Record("three", 2), seen)
        stored = await lock.read(client)
        assert stored is not None and stored.record.holder == "two"
        for place in lock.places():
            await client.delete(place.kind, place.name, namespace="default")


async def test_a_multi_lock_respects_holders_of_either_lock(client: Client) -> None:
    multi, old, new = MAKERS["configmapsleases"](), ConfigMapLock("default", "lock"), LeaseLock("default", "lock")
    await old.write(client, Record("old", 15, transitions=3), None)
    seen = await multi.read(client)
    assert seen is not None and (seen.record.holder, seen.record.transitions) == ("old", 3)
    await new.write(client, Record("new", 15, transitions=8), None)
    seen = await multi.read(client)
    assert seen is not None and (seen.record.holder, seen.record.transitions) == (UNKNOWN_LEADER, 8)
    await client.delete(CONFIG_MAP, "lock", namespace="default")
    seen = await multi.read(client)
    assert seen is not None and seen.record.holder == "new"


async def test_a_multi_lock_does_not_overwrite_one_that_was_faster_with_the_second_lock(client: Client) -> None:
    multi, new = MAKERS["configmapsleases"](), LeaseLock("default", "lock")
    seen = await multi.write(client, Record("", 1), None)
    await new.write(client, Record("new", 15), await new.read(client))
    with pytest.raises(Conflict):
        await multi.write(client, Record("multi", 15), seen)
    stored = await new.read(client)
    assert stored is not None and stored.record.holder == "new"


@pytest.mark.parametrize("other", ["configmap", "lease"])
async def test_replicas_of_either_kind_wait_for_one_that_uses_both(client: Client, other: str) -> None:
    works = [Work(), Work()]
    one = asyncio.create_task(elector(client, MAKERS["configmapsleases"](), "both").run(works[0]))
    await works[0].begun.wait()
    two = asyncio.create_task(elector(client, MAKERS[other](), "single").run(works[1]))
    await asyncio.sleep(2.5)
    assert not works[1].begun.is_set()
    works[0].over.set()
    await one
    works[1].over.set()
    await two


async def test_a_leader_s_client_writes_nothing_when_it_does_not_lead(client: Client, apiserver: RunningServer) -> None:
    candidate = elector(client, LeaseLock("default", "lock"), "me")
    config = load(kubeconfig=apiserver.kubeconfig)
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": "default"}}
    async with Client(config, transport=LeaderTransport(HttpTransport(config), candidate.check)) as mine:

        async def work(_: Leadership) -> None:
            await mine.create(made)

        with pytest.raises(LeadershipLost, match="does not lead"):
            await mine.create(made)
        await candidate.run(work)
        with pytest.raises(LeadershipLost, match="does not lead"):
            await mine.delete(CONFIG_MAP, "made", namespace="default")
        assert (await mine.get(CONFIG_MAP, "made", namespace="default"))["metadata"]["name"] == "made"


async def test_the_namespace_is_the_client_s_own_by_default(apiserver: RunningServer) -> None:
    work = Work()
    work.over.set()
    async with await apiserver.client(namespace="kube-public") as client:
        await elector(client, LeaseLock(None, "lock"), "me").run(work)
        assert await client.get(LEASE, "lock", namespace="kube-public")
