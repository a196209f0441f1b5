"""Reads of custom resources in other forms than their own: across namespaces, tables, metadata, scales."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conftest import RunningServer

API = "/apis/test.example.com/v1"
WIDGETS = f"{API}/namespaces/default/widgets"
COLUMN = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}


async def create(server: RunningServer, name: str, **spec: Any) -> None:
    body = {"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
    answer = await server.request("POST", WIDGETS, body)
    assert answer.status == 201, answer.body


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"{API}/widgets?fieldSelector=metadata.name=one", 200),
        ("GET", f"{API}/widgets?fieldSelector=metadata.name=one&watch=1&timeoutSeconds=1", 200),
        ("GET", f"{API}/watch/widgets/one?timeoutSeconds=1", 200),
        ("GET", f"{API}/widgets/one", 404),
        ("GET", f"{API}/widgets/one?watch=1", 404),
        ("POST", f"{API}/widgets", 404),
        ("PUT", f"{API}/widgets", 404),
        ("DELETE", f"{API}/widgets?fieldSelector=metadata.name=one", 404),
        ("GET", "/api/v1/configmaps?fieldSelector=metadata.name=one", 200),
        ("GET", "/api/v1/watch/configmaps?fieldSelector=metadata.name=one&timeoutSeconds=1", 200),
        ("GET", "/api/v1/watch/configmaps/one", 404),
        ("GET", "/api/v1/configmaps/one", 404),
        ("PUT", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/configmaps?fieldSelector=metadata.name=one", 405),
    ],
)
async def test_namespaces_may_be_left_out_in_lists_and_watches(
    apiserver: RunningServer, method: str, path: str, status: int
) -> None:
    await apiserver.define()
    await create(apiserver, "one")
    await create(apiserver, "two")
    answer = await apiserver.request(method, path)
    assert answer.status == status, answer.body
    if isinstance(answer.body, dict) and "items" in answer.body and "widgets" in path:
        assert [item["metadata"]["name"] for item in answer.body["items"]] == ["one"]
    if isinstance(answer.body, dict) and "type" in answer.body:
        assert answer.body["object"]["metadata"]["name"] == "one"


@pytest.mark.parametrize(
    ("size", "cell"),
    [(1.9, 1), (-1.9, -1), (1e21, -(2**63)), (-(2**70), -(2**63)), (2**63 - 1, 2**63 - 1), ("1", None)],
)
async def test_columns_of_integers_show_what_goes_integers_hold(
    apiserver: RunningServer, size: object, cell: int | None
) -> None:
    await apiserver.define(version={"additionalPrinterColumns": [COLUMN]})
    await create(apiserver, "one", size=size)
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    answer = await apiserver.request("GET", f"{WIDGETS}/one", headers=accept)
    assert answer.status == 200, answer.body
    assert answer.body["rows"][0]["cells"][1] == cell


async def test_metadata_and_tables_come_in_the_version_that_was_asked_for(apiserver: RunningServer) -> None:
    await apiserver.define()

    async def read(kind: str, path: str = WIDGETS) -> Any:
        accept = {"Accept": f"application/json;as={kind};v=v1beta1;g=meta.k8s.io"}
        return (await apiserver.request("GET", path, headers=accept)).body

    empty = await read("PartialObjectMetadataList")
    assert (empty["apiVersion"], empty["items"]) == ("meta.k8s.io/v1beta1", None)
    await create(apiserver, "one")
    listed = await read("PartialObjectMetadataList")
    assert listed["items"][0]["apiVersion"] == "meta.k8s.io/v1beta1"
    table = await read("Table", f"{WIDGETS}/one")
    assert table["apiVersion"] == table["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"
    event = await read("Table", f"{WIDGETS}?watch=1&timeoutSeconds=1")
    assert event["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


async def test_an_object_without_replicas_has_no_scale(apiserver: RunningServer) -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    await apiserver.define(version={"subresources": {"status": {}, "scale": scale}})
    await create(apiserver, "one")
    answer = await apiserver.request("GET", f"{WIDGETS}/one/scale")
    why = 'the spec replicas field ".spec.replicas" does not exist'
    assert (answer.status, answer.body["message"]) == (500, f"Internal error occurred: {why}")
    assert answer.body["details"]["causes"] == [{"message": why}]


@pytest.mark.parametrize("path", [f"{WIDGETS}/none", "/api/v1/namespaces/default/configmaps/none"])
async def test_a_form_that_cannot_be_written_is_refused_before_the_object_is_looked_for(
    apiserver: RunningServer, path: str
) -> None:
    await apiserver.define()
    assert (await apiserver.request("GET", path, headers={"Accept": "text/plain"})).status == 406
    assert (await apiserver.request("GET", path)).status == 404
