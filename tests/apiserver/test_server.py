"""What the server does beside objects: paths, discovery, limits, identity, metrics."""

from __future__ import annotations

import asyncio
import io
import ssl

import aiohttp
import pytest
from tests.conftest import RunningServer, running
from yarl import URL

from steersman.net.pki import create_ca, create_client_certificate
from steersman.net.tls import client_ssl_context, server_ssl_context

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


async def test_health_is_for_everyone_and_says_more_when_asked(apiserver: RunningServer) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        answer = await apiserver.request("GET", path, token=None)
        assert (answer.status, answer.body) == (200, "ok")
    verbose = await apiserver.request("GET", "/readyz?verbose", token=None)
    assert "[+]ping ok" in verbose.body
    assert verbose.body.endswith("readyz check passed\n")
    one = await apiserver.request("GET", "/livez/ping")
    assert (one.status, one.body) == (200, "ok")
    assert (await apiserver.request("GET", "/livez/nothing")).status == 404


async def test_the_version_is_kubernetes(apiserver: RunningServer) -> None:
    version = (await apiserver.request("GET", "/version", token=None)).body
    assert (version["major"], version["minor"]) == ("1", "37")
    assert version["gitVersion"].startswith("v1.37.")


async def test_nothing_else_is_for_the_anonymous(apiserver: RunningServer) -> None:
    for path in ("/api", "/metrics", "/api/v1/namespaces", "/openapi/v2"):
        answer = await apiserver.request("GET", path, token=None)
        assert answer.status == 403, path
        assert 'User "system:anonymous" cannot' in answer.body["message"]


async def test_discovery_by_document_and_at_once_agree(apiserver: RunningServer) -> None:
    await apiserver.define(group="disco.example.com")
    listed = (await apiserver.request("GET", "/apis")).body
    names = [group["name"] for group in listed["groups"]]
    assert "disco.example.com" in names
    resources = (await apiserver.request("GET", "/apis/disco.example.com/v1")).body["resources"]
    assert [item["name"] for item in resources] == ["widgets", "widgets/status"]
    whole = await apiserver.request("GET", "/apis", headers={"Accept": AGGREGATED})
    assert [item["metadata"]["name"] for item in whole.body["items"]] == names
    again = await apiserver.request(
        "GET", "/apis", headers={"Accept": AGGREGATED, "If-None-Match": whole.headers["ETag"]}
    )
    assert again.status == 304
    await apiserver.define(group="more.example.com")
    changed = await apiserver.request(
        "GET", "/apis", headers={"Accept": AGGREGATED, "If-None-Match": whole.headers["ETag"]}
    )
    assert changed.status == 200


async def test_answers_carry_an_audit_id_and_may_not_be_cached(apiserver: RunningServer) -> None:
    given = await apiserver.request("GET", "/api/v1/namespaces", headers={"Audit-Id": "mine"})
    made = await apiserver.request("GET", "/api/v1/namespaces")
    assert given.headers["Audit-Id"] == "mine"
    assert len(made.headers["Audit-Id"]) == 36
    assert made.headers["Cache-Control"] == "no-cache, private"


async def test_metrics_count_requests_and_watches(apiserver: RunningServer) -> None:
    path = await apiserver.define()
    await apiserver.request("GET", path)
    async with apiserver.session() as session, session.get(f"{path}?watch=1&timeoutSeconds=30"):
        text = (await apiserver.request("GET", "/metrics")).body
    wanted = 'apiserver_request_total{verb="LIST",dry_run="",group="test.example.com",version="v1",resource="widgets"'
    assert wanted in text
    assert 'apiserver_longrunning_requests{verb="WATCH",group="test.example.com"' in text
    assert "process_resident_memory_bytes" in text


async def test_a_request_has_a_time_limit(apiserver: RunningServer) -> None:
    far = await apiserver.request("GET", "/api/v1/namespaces?timeout=1x")
    assert (far.status, far.body["message"].partition(" - ")[2]) == (400, 'time: unknown unit "x" in duration "1x"')
    bad = await apiserver.request("GET", "/api/v1/namespaces?timeout=soon")
    assert bad.body["message"] == 'invalid timeout specified in the request URL - time: invalid duration "soon"'
    assert bad.status == 400
    assert (await apiserver.request("GET", "/api/v1/namespaces?timeout=5s")).status == 200


async def test_a_body_has_a_limit(apiserver: RunningServer) -> None:
    path = await apiserver.define()
    answer = await apiserver.request("POST", path, data=io.BytesIO(b" " * (3 * 1024 * 1024 + 1)))
    assert (answer.status, answer.body["reason"]) == (413, "RequestEntityTooLarge")


async def test_warnings_are_told_once(apiserver: RunningServer) -> None:
    path = await apiserver.define()
    body = {"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "extra": 1}
    answer = await apiserver.request("POST", path, body)
    assert answer.status == 201
    assert answer.headers.getall("Warning") == ['299 - "unknown field \\"extra\\""']


async def test_client_certificates_name_user_and_groups(certificates, tmp_path) -> None:
    ca = create_ca("clients")
    pair = create_client_certificate(ca, "carol", ["system:masters"])
    stranger = create_client_certificate(ca, "dave", [])
    context = server_ssl_context(certificates.cert, certificates.key, ca.cert)
    async with running(certificates, tmp_path, tls_context=context, client_certificates=True) as server:

        async def as_client(key_pair) -> aiohttp.ClientResponse:
            trust: ssl.SSLContext = client_ssl_context(certificates.ca.cert, key_pair.cert, key_pair.key)
            connector = aiohttp.TCPConnector(ssl=trust)
            async with (
                aiohttp.ClientSession(connector=connector) as session,
                session.get(f"{server.url}/api/v1/namespaces") as response,
            ):
                await response.read()
                return response

        assert (await as_client(pair)).status == 200
        assert (await as_client(stranger)).status == 403


async def test_too_many_requests_at_once_are_told_to_come_back(certificates, tmp_path) -> None:
    async with running(certificates, tmp_path, max_writes=1) as server:
        path = await server.define()
        async with server.session() as session:

            async def create(number: int) -> int:
                body = {"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": f"w{number}"}}
                async with session.post(path, json=body) as response:
                    if response.status == 429:
                        assert response.headers["Retry-After"] == "1"
                    return response.status

            statuses = await asyncio.gather(*(create(number) for number in range(50)))
    assert set(statuses) <= {201, 429}
    assert statuses.count(201) >= 1


@pytest.mark.parametrize("accept", ["application/yaml", "application/json"])
async def test_objects_come_in_the_form_that_is_asked_for(apiserver: RunningServer, accept: str) -> None:
    answer = await apiserver.request("GET", "/api/v1/namespaces/default", headers={"Accept": accept})
    assert answer.headers["Content-Type"] == accept
    assert ("kind: Namespace" in str(answer.body)) == (accept == "application/yaml")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/apis/", 200),
        ("GET", "/api/v1/", 200),
        ("GET", "/healthz/", 404),
        ("GET", "/metrics/", 404),
        ("POST", "/healthz", 200),
        ("POST", "/nowhere", 404),
        ("HEAD", "/api/v1/namespaces", 405),
        ("OPTIONS", "/api/v1/namespaces", 405),
    ],
)
async def test_odd_methods_and_slashes(apiserver: RunningServer, method: str, path: str, status: int) -> None:
    assert (await apiserver.request(method, URL(path, encoded=True))).status == status


async def test_a_null_body_is_an_empty_one_for_built_in_kinds(apiserver: RunningServer) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    created = await apiserver.request("POST", path, b"null", headers={"Content-Type": "application/json"})
    assert (created.status, created.body["reason"]) == (422, "Invalid")
    await apiserver.request("POST", path, {"metadata": {"name": "a"}})
    gone = await apiserver.request("DELETE", f"{path}/a", b"null", headers={"Content-Type": "application/json"})
    assert (gone.status, gone.body["status"]) == (200, "Success")
