"""Priority and fairness: who is let in, who waits and for how long, who is refused; and the objects that say so."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.conftest import RunningServer, running

from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import Attributes
from steersman.apiserver.flowcontrol.fairness import Class, Fairness, Rejected
from steersman.net.pki import ServerFiles

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEVELS = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"
HEADERS = ("X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid")
MANDATORY_AND_SUGGESTED = {
    "catch-all": "catch-all",
    "exempt": "exempt",
    "global-default": "global-default",
    "kube-controller-manager": "workload-high",
    "kube-scheduler": "workload-high",
    "kube-system-service-accounts": "workload-high",
    "probes": "exempt",
    "service-accounts": "workload-low",
    "system-leader-election": "leader-election",
    "system-node-high": "node-high",
    "system-nodes": "system",
}


def request_of(user: str, *groups: str, verb: str = "list", resource: str = "configmaps") -> Attributes:
    return Attributes(UserInfo(user, groups=(*groups, "system:authenticated")), verb, "", "v1", resource)


def fairness_of(server: RunningServer) -> Fairness:
    found = server.plane.server.filters.fairness
    assert found is not None
    return found


async def names_to_uids(server: RunningServer, path: str) -> dict[str, str]:
    return {
        item["metadata"]["name"]: item["metadata"]["uid"] for item in (await server.request("GET", path)).body["items"]
    }


async def test_a_server_comes_with_schemas_and_levels(apiserver: RunningServer) -> None:
    schemas = (await apiserver.request("GET", FLOWS)).body["items"]
    referred = {item["metadata"]["name"]: item["spec"]["priorityLevelConfiguration"]["name"] for item in schemas}
    assert referred == MANDATORY_AND_SUGGESTED
    assert {item["status"]["conditions"][0]["status"] for item in schemas} == {"False"}
    assert set(await names_to_uids(apiserver, LEVELS)) == set(referred.values())


@pytest.mark.parametrize(
    ("attributes", "schema"),
    [
        (request_of("admin", "system:masters"), "exempt"),
        (request_of("alice"), "global-default"),
        (request_of("system:kube-scheduler"), "kube-scheduler"),
        (request_of("system:serviceaccount:kube-system:x", "system:serviceaccounts"), "kube-system-service-accounts"),
        (request_of("system:serviceaccount:default:x", "system:serviceaccounts"), "service-accounts"),
        (request_of("system:node:n", "system:nodes"), "system-nodes"),
        (request_of("system:node:n", "system:nodes", verb="update", resource="nodes"), "system-node-high"),
    ],
)
async def test_requests_find_their_schema(apiserver: RunningServer, attributes: Attributes, schema: str) -> None:
    assert fairness_of(apiserver).classify(attributes).schema.name == schema


async def test_answers_name_schema_and_level(apiserver: RunningServer) -> None:
    schemas, levels = await names_to_uids(apiserver, FLOWS), await names_to_uids(apiserver, LEVELS)
    for token, path, schema, level in (
        ("admintoken", MAPS, "exempt", "exempt"),
        ("alicetoken", MAPS, "global-default", "global-default"),
        (None, "/livez", "probes", "exempt"),
        (None, MAPS, "global-default", "global-default"),
    ):
        answer = await apiserver.request("GET", path, token=token)
        assert tuple(answer.headers[name] for name in HEADERS) == (schemas[schema], levels[level])
    refused = await apiserver.request("GET", MAPS, token="unknown")
    assert refused.status == 401
    assert HEADERS[0] not in refused.headers


async def test_schemas_count_as_soon_as_they_are_stored(apiserver: RunningServer) -> None:
    limited = {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}
    assert (await apiserver.request("POST", LEVELS, {"metadata": {"name": "mine"}, "spec": limited})).status == 201
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    subjects = [{"kind": "User", "user": {"name": "alice"}}]
    spec = {
        "priorityLevelConfiguration": {"name": "mine"},
        "matchingPrecedence": 50,
        "rules": [{"subjects": subjects, "resourceRules": [rule]}],
    }
    made = await apiserver.request("POST", FLOWS, {"metadata": {"name": "mine"}, "spec": spec})
    assert made.status == 201
    answer = await apiserver.request("GET", MAPS, token="alicetoken")
    assert answer.headers[HEADERS[0]] == made.body["metadata"]["uid"]
    await apiserver.request("DELETE", f"{LEVELS}/mine")
    assert fairness_of(apiserver).classify(request_of("alice")).schema.name == "global-default"


async def test_what_must_be_there_comes_back(apiserver: RunningServer) -> None:
    cache = apiserver.plane.server.core.catalog.look_up("flowcontrol.apiserver.k8s.io", "v1", "flowschemas")
    assert cache is not None
    changed = asyncio.Event()
    cache.cache.watchers.append(lambda change: changed.set())
    assert (await apiserver.request("DELETE", f"{FLOWS}/catch-all")).status == 200
    async with asyncio.timeout(10):
        while (await apiserver.request("GET", f"{FLOWS}/catch-all")).status != 200:
            changed.clear()
            await changed.wait()


async def occupy(fairness: Fairness, found: Class) -> None:
    """Take all seats that a level can have."""
    while fairness.try_enter(found.level, 0.0):
        pass


async def test_a_greedy_flow_does_not_keep_a_polite_one_waiting(apiserver: RunningServer) -> None:
    fairness = fairness_of(apiserver)
    greedy, polite = fairness.classify(request_of("bob")), fairness.classify(request_of("alice"))
    assert greedy.level is polite.level
    await occupy(fairness, greedy)
    order: list[str] = []
    refused = 0

    async def ask(found: Class, name: str) -> None:
        nonlocal refused
        try:
            waiter = await fairness.enter(found)
        except Rejected:
            refused += 1
            return
        order.append(name)
        began = time.perf_counter() - 0.01  # as if it had taken so long
        fairness.leave(found.level, waiter, began)

    waiting = [asyncio.create_task(ask(greedy, "greedy")) for _ in range(400)]
    await asyncio.sleep(0)
    waiting += [asyncio.create_task(ask(polite, "polite")) for _ in range(3)]
    await asyncio.sleep(0)
    for _ in range(greedy.level.running):
        fairness.leave(greedy.level, None, time.perf_counter())
    await asyncio.wait_for(asyncio.gather(*waiting), 10)
    # Six queues of fifty are what one flow can fill; the other's turn comes before those are worked off.
    assert refused == 100
    assert order.count("greedy") == 300
    assert [place for place, name in enumerate(order) if name == "polite"][-1] < 100
    assert (greedy.level.running, greedy.level.waiting) == (0, 0)


async def test_levels_have_seats_of_their_own(apiserver: RunningServer) -> None:
    fairness = fairness_of(apiserver)
    await occupy(fairness, fairness.classify(request_of("bob")))
    for attributes in (request_of("system:kube-scheduler"), request_of("x", "system:masters")):
        found = fairness.classify(attributes)
        assert found.level.exempt or fairness.try_enter(found.level, 0.0)


async def test_who_finds_no_place_gets_429(certificates: ServerFiles, tmp_path: Any) -> None:
    async with running(certificates, tmp_path, max_reads=1, max_writes=0) as server:
        fairness = fairness_of(server)
        anonymous = Attributes(
            UserInfo("system:anonymous", groups=("system:unauthenticated",)), "list", "", "v1", "configmaps"
        )
        await occupy(fairness, fairness.classify(anonymous))
        answer = await server.request("GET", MAPS, token=None)
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.body == "Too many requests, please try again later.\n"
        assert (await server.request("GET", MAPS)).status == 200


async def test_without_fairness_there_are_two_limits(certificates: ServerFiles, tmp_path: Any) -> None:
    async with running(certificates, tmp_path, fairness=False) as server:
        answer = await server.request("GET", MAPS)
        assert answer.status == 200
        assert HEADERS[0] not in answer.headers
        assert (await server.request("GET", FLOWS)).body["items"] == []
