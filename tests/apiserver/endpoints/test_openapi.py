"""GET /openapi/v2 and /openapi/v3 of a running server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from steersman.apiserver.endpoints.openapi import V2_PROTOBUF
from steersman.apiserver.server import APIServer, ServerConfig
from steersman.store.memory import MemoryStore

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ORDERS = "apis/shop.example.org/v1"
ORDER = "org.example.shop.v1.Order"
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a server of its own."""
    server = await APIServer.start(MemoryStore(), ServerConfig(insecure=True))
    try:
        async with aiohttp.ClientSession(server.url) as session:
            yield session
    finally:
        await server.stop(grace=0)


def definition(plural: str = "orders", kind: str = "Order", **version: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.shop.example.org"},
        "spec": {"group": "shop.example.org", "scope": "Namespaced", "names": names, "versions": [served]},
    }


async def until(http: aiohttp.ClientSession, marker: bytes, method: str, path: str, body: Any = None) -> None:
    """Send a request about a definition and wait for a later event about definitions that has `marker` in it."""
    now = (await get(http, CRDS))["metadata"]["resourceVersion"]
    watch = {"watch": "true", "resourceVersion": now}
    async with http.get(CRDS, params=watch) as events:
        async with http.request(method, path, json=body) as answer:
            assert answer.ok, await answer.text()
        async for line in events.content:
            if marker in line:
                return
    pytest.fail(f"the watch ended without {marker!r}")


async def define(http: aiohttp.ClientSession, crd: dict[str, Any]) -> None:
    """Create the definition and wait until it is served."""
    await until(http, b'"type":"Established"', "POST", CRDS, crd)


async def get(http: aiohttp.ClientSession, path: str) -> Any:
    async with http.get(path) as answer:
        assert answer.status == 200
        return await answer.json(content_type=None)


async def test_every_document_of_the_index_is_served_at_its_address(http: aiohttp.ClientSession) -> None:
    await define(http, definition())
    index = (await get(http, "/openapi/v3"))["paths"]
    assert {"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", ORDERS, "version"} <= set(index)
    assert "apis/shop.example.org" not in index
    for path, entry in index.items():
        async with http.get(entry["serverRelativeURL"], allow_redirects=False) as answer:
            assert answer.status == 200
            assert answer.headers["Cache-Control"] == "public, immutable"
            assert answer.headers["Vary"] == "Accept, Accept-Encoding"
            assert "Expires" in answer.headers
            document = await answer.json()
            assert all(item.startswith(f"/{path}/") for item in document["paths"])


async def test_the_index_is_text(http: aiohttp.ClientSession) -> None:
    async with http.get("/openapi/v3", headers={"Accept": "application/xml"}) as answer:
        assert (answer.status, answer.content_type) == (200, "text/plain")


async def test_every_reference_leads_somewhere(http: aiohttp.ClientSession) -> None:
    await define(http, definition())
    for path in await get(http, "/openapi/v3"), await get(http, "/openapi/v2"):
        documents = (
            [await get(http, f"/openapi/v3/{name}") for name in path["paths"]] if "swagger" not in path else [path]
        )
        for document in documents:
            for reference in references(document):
                target: Any = document
                for part in reference.removeprefix("#/").split("/"):
                    target = target[part]


def references(value: Any) -> set[str]:
    if isinstance(value, list):
        return {found for item in value for found in references(item)}
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
    return own.union(*(references(item) for item in value.values()))


async def test_a_custom_resource_is_published_and_withdrawn(http: aiohttp.ClientSession) -> None:
    async with http.get(f"/openapi/v3/{ORDERS}") as answer:
        assert (answer.status, await answer.read()) == (404, b"")
    await define(http, definition())
    document = await get(http, f"/openapi/v3/{ORDERS}")
    assert document["components"]["schemas"][ORDER]["properties"]["spec"]["properties"] == {"size": {"type": "integer"}}
    v2 = await get(http, "/openapi/v2")
    assert ORDER in v2["definitions"]
    assert f"/{ORDERS}/namespaces/{{namespace}}/orders/{{name}}" in v2["paths"]
    await until(http, b'"DELETED"', "DELETE", f"{CRDS}/orders.shop.example.org")
    async with http.get(f"/openapi/v3/{ORDERS}") as answer:
        assert answer.status == 404
    assert ORDER not in (await get(http, "/openapi/v2"))["definitions"]


async def test_a_change_touches_the_documents_of_its_group_version_alone(http: aiohttp.ClientSession) -> None:
    await define(http, definition())
    before = (await get(http, "/openapi/v3"))["paths"]
    await define(http, definition("refunds", "Refund"))
    after = (await get(http, "/openapi/v3"))["paths"]
    assert {path for path in after if after[path] != before.get(path)} == {ORDERS}
    schemas = (await get(http, f"/openapi/v3/{ORDERS}"))["components"]["schemas"]
    assert {ORDER, "org.example.shop.v1.Refund"} <= set(schemas)


async def test_subresources_and_selectable_fields(http: aiohttp.ClientSession) -> None:
    subresources = {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}
    await define(http, definition(subresources=subresources, selectableFields=[{"jsonPath": ".spec.size"}]))
    document = await get(http, f"/openapi/v3/{ORDERS}")
    item = f"/{ORDERS}/namespaces/{{namespace}}/orders/{{name}}"
    assert {f"{item}/status", f"{item}/scale"} <= set(document["paths"])
    assert "io.k8s.api.autoscaling.v1.ScaleSpec" in document["components"]["schemas"]
    for name in (ORDER, f"{ORDER}List"):
        extension = document["components"]["schemas"][name]["x-kubernetes-selectable-fields"]
        assert extension == [{"fieldPath": "spec.size"}]


async def test_a_wrong_hash_leads_to_the_right_one(http: aiohttp.ClientSession) -> None:
    right = (await get(http, "/openapi/v3"))["paths"]["apis/apps/v1"]["serverRelativeURL"]
    async with http.get("/openapi/v3/apis/apps/v1?hash=OLD", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (301, right)


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3/apis/apps/v1"])
async def test_etags(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path) as answer:
        etag = answer.headers["ETag"]
        assert answer.headers["Cache-Control"] == "no-cache, private"
    async with http.get(path, headers={"If-None-Match": f'"other", W/{etag}'}) as answer:
        assert (answer.status, answer.headers["ETag"], await answer.read()) == (304, etag, b"")
    async with http.get(path, headers={"If-None-Match": '"other"'}) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    ("path", "accept", "content_type"),
    [
        ("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", V2_PROTOBUF),
        ("/openapi/v2", f"{V2_PROTOBUF}, application/json;q=0.5", V2_PROTOBUF),
        ("/openapi/v2", "*/*", "application/json"),
        ("/openapi/v2", f"{V2_PROTOBUF};q=0.2, application/json", "application/json"),
        ("/openapi/v3/version", "text/html, application/*;q=0.1", "application/json"),
        ("/openapi/v2", "application/yaml", None),
        ("/openapi/v3/version", "text/html", None),
    ],
)
async def test_negotiation(http: aiohttp.ClientSession, path: str, accept: str, content_type: str | None) -> None:
    async with http.get(path, headers={"Accept": accept}) as answer:
        assert answer.headers["Vary"] == "Accept, Accept-Encoding"
        if content_type is None:
            assert (answer.status, await answer.read()) == (406, b"")
        else:
            assert (answer.status, answer.content_type) == (200, content_type)


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [("gzip", "gzip"), ("deflate, gzip;q=0.5", "gzip"), ("gzip;q=0", None), ("identity", None), ("br", None)],
)
async def test_compression(http: aiohttp.ClientSession, accepted: str, encoding: str | None) -> None:
    async with http.get("/openapi/v3/version", headers={"Accept-Encoding": accepted}) as answer:
        assert answer.headers.get("Content-Encoding") == encoding
        assert "/version/" in (await answer.json())["paths"]


async def test_built_in_kinds_can_be_found_by_their_kind(http: aiohttp.ClientSession) -> None:
    document = await get(http, "/openapi/v3/api/v1")
    item = document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]
    assert item["patch"]["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert "fieldValidation" in [parameter["name"] for parameter in item["patch"]["parameters"]]
    schema = document["components"]["schemas"]["io.k8s.api.core.v1.ConfigMap"]
    assert schema["properties"]["metadata"]["allOf"][0]["$ref"].endswith(".ObjectMeta")
    assert STATUS in document["components"]["schemas"]


async def test_documents_asked_for_while_definitions_come_and_go(http: aiohttp.ClientSession) -> None:
    await define(http, definition())

    async def ask() -> None:
        for _ in range(3):
            for path in ("/openapi/v3", "/openapi/v2", f"/openapi/v3/{ORDERS}"):
                async with http.get(path) as answer:
                    assert answer.status in (200, 404)
                    await answer.read()

    asking = [asyncio.ensure_future(ask()) for _ in range(3)]
    for number in range(5):
        await define(http, definition(f"things{number}", f"Thing{number}"))
    await until(http, b'"DELETED"', "DELETE", f"{CRDS}/orders.shop.example.org")
    await asyncio.gather(*asking)
    schemas = (await get(http, f"/openapi/v3/{ORDERS}"))["components"]["schemas"]
    assert ORDER not in schemas
    assert {f"org.example.shop.v1.Thing{number}" for number in range(5)} <= set(schemas)
    assert {name for name in (await get(http, "/openapi/v2"))["definitions"] if name.startswith("org.")} == {
        name for name in schemas if name.startswith("org.")
    }
