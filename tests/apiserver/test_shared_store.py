"""Several servers on one etcd, as their clients see them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from steersman.net.pki import ServerFiles

from .. import etcd
from ..conftest import RunningServer, running
from ..store.proxy import Proxy, proxy

MAPS = "/api/v1/namespaces/default/configmaps"
LOCK = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/steersman-controllers"


@pytest.fixture(scope="session")
def program() -> Path:
    return etcd.program()


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


Start = Callable[[str, str], Awaitable[RunningServer]]


@pytest.fixture
def start(stack: AsyncExitStack, certificates: ServerFiles, tmp_path: Path) -> Start:
    """Start a server of a name on a store."""

    async def begin(name: str, store: str) -> RunningServer:
        place = tmp_path / name
        place.mkdir()
        return await stack.enter_async_context(running(certificates, place, store))

    return begin


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def widget(name: str, n: int = 1) -> dict[str, Any]:
    return {"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"n": n}}


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await look():  # noqa: ASYNC110 - what is waited for happens at another process
            await asyncio.sleep(0.02)


async def test_a_write_at_one_is_read_at_the_other(
    program: Path, tmp_path: Path, stack: AsyncExitStack, start: Start
) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(program, tmp_path))
    one, other = await start("one", cluster.url), await start("other", cluster.url)
    path = await one.define()
    written = await other.request("POST", path, widget("w", 0))
    assert written.status == 201, "the definition is there as soon as it is at the first"
    for number in range(20):
        first, second = (one, other) if number % 2 else (other, one)
        written.body["spec"]["n"] += 1
        written = await first.request("PUT", f"{path}/w", written.body)
        assert written.status == 200
        assert (await second.request("GET", f"{path}/w")).body == written.body
        listed = (await second.request("GET", path)).body
        assert listed["items"] == [written.body]
        assert int(listed["metadata"]["resourceVersion"]) >= int(written.body["metadata"]["resourceVersion"])
    stale = {**written.body, "metadata": {**written.body["metadata"], "resourceVersion": "1"}}
    assert [(await server.request("PUT", f"{path}/w", stale)).status for server in (one, other)] == [409, 409]
    assert (await other.request("DELETE", f"{path}/w")).status == 200
    assert (await one.request("GET", f"{path}/w")).status == 404


async def test_a_definition_that_one_changes_holds_at_once_at_the_other(
    program: Path, tmp_path: Path, stack: AsyncExitStack, start: Start
) -> None:
    """What a write rests on is checked with it; so a server need not know of a change to heed it."""
    cluster = await stack.enter_async_context(etcd.etcd(program, tmp_path))
    one, other = await start("one", cluster.url), await start("other", cluster.url)
    path = await one.define()
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.test.example.com"
    assert (await other.request("POST", path, widget("w"))).status == 201
    for number in range(1, 9):
        first, second = (one, other) if number % 2 else (other, one)
        crd = (await first.request("GET", definition)).body
        count = {"type": "integer", "maximum": number}
        spec = {"type": "object", "properties": {"n": count}}
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec
        assert (await first.request("PUT", definition, crd)).status == 200
        assert (await second.request("POST", path, widget(f"w{number}", number + 1))).status == 422
        held = (await second.request("GET", f"{path}/w")).body
        assert (await second.request("PUT", f"{path}/w", held | {"spec": {"n": number + 1}})).status == 422
        assert (await first.request("PUT", f"{path}/w", held | {"spec": {"n": number}})).status == 200
        assert (await second.request("POST", path, widget(f"w{number}", number))).status == 201
        assert (await first.request("DELETE", f"{path}/w{number}")).status == 200
        assert (await second.request("DELETE", f"{path}/w{number}")).status == 404


async def test_who_is_given_a_say_at_one_has_it_at_once_at_the_other(
    program: Path, tmp_path: Path, stack: AsyncExitStack, start: Start
) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(program, tmp_path))
    servers = [await start("one", cluster.url), await start("other", cluster.url)]
    path = await servers[0].define()
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["widgets"]}
    validations = [{"expression": "object.spec.n < 5", "message": "too many"}]
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}
    for number in range(6):
        first, second = servers if number % 2 else servers[::-1]
        named = {"metadata": {"name": "few"}}
        assert (await first.request("POST", f"{policies}ies", {**named, "spec": policy})).status == 201
        binding = {"policyName": "few", "validationActions": ["Deny"]}
        assert (await first.request("POST", f"{policies}ybindings", {**named, "spec": binding})).status == 201
        refused = await second.request("POST", path, widget("w", 5))
        assert (refused.status, refused.body["message"].rpartition(" ")[2]) == (422, "many"), refused.body
        assert (await first.request("DELETE", f"{policies}ybindings/few")).status == 200
        assert (await second.request("POST", path, widget("w", 5))).status == 201
        assert (await first.request("DELETE", f"{policies}ies/few")).status == 200
        assert (await first.request("DELETE", f"{path}/w")).status == 200
        assert (await first.request("POST", "/api/v1/namespaces", {"metadata": {"name": f"n{number}"}})).status == 201
        there = path.replace("/default/", f"/n{number}/")
        assert (await second.request("POST", there, widget("w"))).status == 201
        assert (await first.request("DELETE", f"/api/v1/namespaces/n{number}")).status == 200
        assert (await second.request("POST", there, widget("late"))).status in (403, 404)


async def test_one_has_the_controllers_and_another_takes_over(
    program: Path, tmp_path: Path, stack: AsyncExitStack, start: Start
) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(program, tmp_path))
    servers = [await start("one", cluster.url), await start("other", cluster.url)]

    async def holder() -> str:
        found = await servers[1].request("GET", LOCK)
        return str(found.body["spec"].get("holderIdentity") or "") if found.status == 200 else ""

    async def held() -> bool:
        return bool(await holder())

    await until(held)
    before = await holder()
    await servers[0].plane.controllers.stop()  # gives up the lock, if it has it
    await servers[1].request("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})

    async def served() -> bool:
        return (await servers[1].request("GET", "/api/v1/namespaces/new/serviceaccounts/default")).status == 200

    await until(served)
    assert (await holder()).split("_")[0] == before.split("_")[0]
    await servers[1].request("DELETE", "/api/v1/namespaces/new")

    async def gone() -> bool:
        return (await servers[1].request("GET", "/api/v1/namespaces/new")).status == 404

    await until(gone)


async def watched(server: RunningServer, path: str, events: list[dict[str, Any]], begun: asyncio.Event) -> None:
    async with server.session() as session, session.get(path) as response:
        begun.set()
        events.extend([json.loads(line) async for line in response.content])


async def test_history_that_was_lost_ends_watches_and_is_told(
    program: Path, tmp_path: Path, stack: AsyncExitStack, start: Start
) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(program, tmp_path))
    between: Proxy = await stack.enter_async_context(proxy(cluster.members[0].port))
    cut_off, direct = await start("cut-off", between.url), await start("direct", cluster.url)
    first = (await direct.request("POST", MAPS, config_map("changed", n="0"))).body
    await direct.request("POST", MAPS, config_map("deleted"))
    listed = (await cut_off.request("GET", MAPS)).body["metadata"]["resourceVersion"]
    events: list[dict[str, Any]] = []
    begun = asyncio.Event()
    watching = asyncio.create_task(watched(cut_off, f"{MAPS}?watch=1&resourceVersion={listed}", events, begun))
    await begun.wait()
    between.cut()
    refused = await cut_off.request("GET", f"{MAPS}/changed?resourceVersion=0")
    assert refused.status == 200, "any state is still there to be read"

    async def red() -> bool:
        return (await cut_off.request("GET", "/readyz/etcd")).status == 500

    await until(red)
    await direct.request("DELETE", f"{MAPS}/deleted")
    await direct.request("POST", MAPS, config_map("created"))
    await direct.request("PATCH", f"{MAPS}/changed", {"data": {"n": "1"}}, headers=MERGE)
    await direct.plane.store.compact(direct.plane.store.revision)
    between.mend()

    await asyncio.wait_for(watching, 60)
    assert events == []
    lists = [(await server.request("GET", MAPS)).body for server in (cut_off, direct)]
    assert lists[0]["items"] == lists[1]["items"]
    first_version, second_version = (int(each["metadata"]["resourceVersion"]) for each in lists)
    assert first_version <= second_version  # leases are renewed meanwhile
    await watched(cut_off, f"{MAPS}?watch=1&resourceVersion={listed}", events, begun)
    assert [(event["type"], event["object"]["code"]) for event in events] == [("ERROR", 410)]

    async def green() -> bool:
        return (await cut_off.request("GET", "/readyz")).status == 200

    await until(green)
    changed = (await cut_off.request("GET", f"{MAPS}/changed")).body
    assert changed["data"] == {"n": "1"} and changed["metadata"]["uid"] == first["metadata"]["uid"]


MERGE = {"Content-Type": "application/merge-patch+json"}


async def test_a_server_without_its_etcd_says_so(
    program: Path, tmp_path: Path, stack: AsyncExitStack, start: Start
) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(program, tmp_path))
    [member] = cluster.members
    server = await start("one", cluster.url)
    await member.kill()
    answer = await server.request("POST", MAPS, config_map("a"))
    assert (answer.status, answer.body["reason"]) == (503, "ServiceUnavailable")
    assert answer.body["message"] == f"the store failed: etcd cannot be used: {member.address}: connection refused"
    await member.start()

    async def created() -> bool:
        return (await server.request("POST", MAPS, config_map("a"))).status in (201, 409)

    await until(created)
    assert (await server.request("GET", f"{MAPS}/a")).status == 200


def service(name: str, **spec: Any) -> dict[str, Any]:
    ports = [{"port": 80}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports, **spec}}


async def test_addresses_and_ports_are_given_out_once(
    program: Path, tmp_path: Path, stack: AsyncExitStack, start: Start
) -> None:
    """60 of 254 addresses, at two servers at a time: without claims some would be given out twice."""
    cluster = await stack.enter_async_context(etcd.etcd(program, tmp_path))
    servers = [await start("one", cluster.url), await start("other", cluster.url)]
    path = "/api/v1/namespaces/default/services"
    answers = await asyncio.gather(
        *(servers[n % 2].request("POST", path, service(f"s{n}", type="NodePort")) for n in range(60)),
        *(servers[n % 2].request("POST", path, service(f"wants{n}", clusterIP="10.0.0.77")) for n in range(8)),
    )
    refused = [answer for answer in answers if answer.status != 201]
    assert all(answer.status == 422 for answer in refused) and len(refused) in (7, 8)
    items = (await servers[0].request("GET", path)).body["items"]
    addresses = [item["spec"]["clusterIP"] for item in items]
    ports = [port["nodePort"] for item in items for port in item["spec"]["ports"] if "nodePort" in port]
    assert len(set(addresses)) == len(addresses) and len(set(ports)) == len(ports) == 60
    named = next(item for item in items if item["spec"]["clusterIP"] == "10.0.0.77")["metadata"]["name"]
    assert (await servers[0].request("DELETE", f"{path}/{named}")).status == 200
    again = await servers[1].request("POST", path, service("after", clusterIP="10.0.0.77"))
    assert again.status == 201, again.body
    claims = (await servers[0].request("GET", "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.77")).body
    assert claims["spec"]["parentRef"] == {"resource": "services", "namespace": "default", "name": "after"}


async def test_servers_that_begin_together_on_an_empty_etcd(
    program: Path, tmp_path: Path, stack: AsyncExitStack, start: Start
) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(program, tmp_path))
    servers = await asyncio.gather(*(start(name, cluster.url) for name in ("one", "other", "third")))
    listed = [
        {
            item["metadata"]["name"]: item["metadata"]["uid"]
            for item in (await server.request("GET", path)).body["items"]
        }
        for path in ("/api/v1/namespaces", "/apis/rbac.authorization.k8s.io/v1/clusterroles")
        for server in servers
    ]
    assert listed[0] == listed[1] == listed[2] and listed[3] == listed[4] == listed[5]
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= listed[0].keys()


async def test_a_watch_and_a_list_go_on_at_a_server_that_began_later(
    program: Path, tmp_path: Path, stack: AsyncExitStack, start: Start
) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(program, tmp_path))
    one = await start("one", cluster.url)
    for name in ("a", "b", "c", "d"):
        await one.request("POST", MAPS, config_map(name))
    page = (await one.request("GET", f"{MAPS}?limit=2")).body
    await one.request("DELETE", f"{MAPS}/d")
    for number in range(20):
        await one.request("PATCH", f"{MAPS}/a", {"data": {"n": str(number)}}, headers=MERGE)
    other = await start("other", cluster.url)
    rest = (await other.request("GET", f"{MAPS}?limit=9&continue={page['metadata']['continue']}")).body
    names = [item["metadata"]["name"] for item in (*page["items"], *rest["items"])]
    assert names == ["a", "b", "c", "d", "kube-root-ca.crt"][: len(names)] and len(names) >= 4
    assert rest["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]
    events: list[dict[str, Any]] = []
    since = f"watch=1&timeoutSeconds=1&resourceVersion={page['metadata']['resourceVersion']}"
    await watched(other, f"{MAPS}?{since}", events, asyncio.Event())
    seen = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
    mine = [each for each in seen if each[1] in "abcd"]
    assert mine == [("DELETED", "d"), *[("MODIFIED", "a")] * 20]
