import asyncio

import pytest
from tests.conftest import running

SERVICES = "/api/v1/namespaces/default/services"


def service(name, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], **spec},
    }


async def test_concurrent_services_share_neither_address_nor_port(apiserver):
    bodies = [service(f"s-{index}", type="NodePort") for index in range(40)]
    answers = await asyncio.gather(*(apiserver.request("POST", SERVICES, body) for body in bodies))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.body["spec"]["clusterIP"] for answer in answers}) == 40
    assert len({answer.body["spec"]["ports"][0]["nodePort"] for answer in answers}) == 40


async def test_a_named_address_is_one_services_until_that_goes(apiserver):
    named = service("a", clusterIP="10.0.0.77")
    assert (await apiserver.request("POST", SERVICES, named)).status == 201
    second = await apiserver.request("POST", SERVICES, service("b", clusterIP="10.0.0.77"))
    assert second.status == 422
    assert "provided IP is already allocated" in second.body["message"]
    await apiserver.request("DELETE", f"{SERVICES}/a")
    assert (await apiserver.request("POST", SERVICES, service("b", clusterIP="10.0.0.77"))).status == 201


@pytest.mark.parametrize("query", ["dryRun=All", ""])
async def test_what_is_not_stored_takes_nothing(apiserver, query):
    body = service("a", clusterIP="10.0.0.77", **({} if query else {"sessionAffinity": "Wrong"}))
    answer = await apiserver.request("POST", f"{SERVICES}?{query}", body)
    assert answer.status == (201 if query else 422)
    assert (await apiserver.request("POST", SERVICES, service("b", clusterIP="10.0.0.77"))).status == 201


async def test_the_range_ends(apiserver):
    for index in range(253):
        assert (await apiserver.request("POST", SERVICES, service(f"s-{index}"))).status == 201
    full = await apiserver.request("POST", SERVICES, service("more"))
    assert full.status == 500
    assert "range is full" in full.body["message"]
    await apiserver.request("DELETE", f"{SERVICES}/s-7")
    assert (await apiserver.request("POST", SERVICES, service("more"))).status == 201


async def test_addresses_outlive_a_restart(certificates, tmp_path):
    store = f"sqlite:///{tmp_path}/store.db"
    async with running(certificates, tmp_path, store) as server:
        assert (await server.request("POST", SERVICES, service("a", clusterIP="10.0.0.77"))).status == 201
    async with running(certificates, tmp_path, store) as server:
        assert (await server.request("POST", SERVICES, service("b", clusterIP="10.0.0.77"))).status == 422
        kept = await server.request("PUT", f"{SERVICES}/a", service("a", selector={"x": "y"}))
        assert (kept.status, kept.body["spec"]["clusterIP"]) == (200, "10.0.0.77")


async def test_node_ports_follow_their_port_by_name(apiserver):
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    made = await apiserver.request("POST", SERVICES, service("s", type="NodePort", ports=ports))
    first, second = (port["nodePort"] for port in made.body["spec"]["ports"])
    swapped = [{"name": "b", "port": 81}, {"name": "a", "port": 90}]
    changed = await apiserver.request("PUT", f"{SERVICES}/s", service("s", type="NodePort", ports=swapped))
    assert [port["nodePort"] for port in changed.body["spec"]["ports"]] == [second, first]


async def test_tcp_and_udp_of_one_number_share_a_node_port(apiserver):
    ports = [{"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP"}]
    made = await apiserver.request("POST", SERVICES, service("dns", type="NodePort", ports=ports))
    assert len({port["nodePort"] for port in made.body["spec"]["ports"]}) == 1


@pytest.mark.parametrize("address", ["10.0.0.0", "10.0.0.255", "10.0.1.0"])
async def test_addresses_that_are_no_services(apiserver, address):
    refused = await apiserver.request("POST", SERVICES, service("s", clusterIP=address))
    assert refused.status == 422
    assert f"failed to allocate IP {address}: the provided network does not match" in refused.body["message"]


async def test_a_node_port_is_shared_by_ports_of_one_number_only(apiserver):
    ports = [{"name": "a", "port": 53, "nodePort": 32001}, {"name": "b", "port": 54, "nodePort": 32001}]
    ports[1]["protocol"] = "UDP"
    refused = await apiserver.request("POST", SERVICES, service("dns", type="NodePort", ports=ports))
    assert refused.status == 422
    assert "spec.ports[1].nodePort: Invalid value: 32001: provided port is already allocated" in refused.body["message"]


async def test_ports_of_one_number_share_no_node_port_that_an_update_gives(apiserver):
    ports = [{"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP"}]
    assert (await apiserver.request("POST", SERVICES, service("dns", ports=ports))).status == 201
    made = await apiserver.request("PUT", f"{SERVICES}/dns", service("dns", type="NodePort", ports=ports))
    assert len({port["nodePort"] for port in made.body["spec"]["ports"]}) == 2


async def test_a_health_check_takes_no_node_port_of_its_own_service(apiserver):
    ports = [{"port": 80, "nodePort": 32001}]
    assert (await apiserver.request("POST", SERVICES, service("s", type="NodePort", ports=ports))).status == 201
    local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 32001}
    refused = await apiserver.request("PUT", f"{SERVICES}/s", service("s", ports=ports, **local))
    assert (refused.status, refused.body["message"]) == (
        500,
        "Internal error occurred: failed to allocate requested HealthCheck NodePort 32001: provided port is already "
        "allocated",
    )
