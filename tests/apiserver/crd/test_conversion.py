"""Custom resources in a version that a webhook converts to, beside what the recorded scenarios show of it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from steersman.net.pki import KeyPair, ServerFiles, create_ca, create_server_certificate
from steersman.net.tls import server_ssl_context

from ...conftest import Answer, RunningServer, running

Object = dict[str, Any]
V1 = "/apis/test.example.com/v1/namespaces/default/widgets"
V2 = "/apis/test.example.com/v2/namespaces/default/widgets"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.test.example.com"
RENAMED = {"v1": ("replicas", "size"), "v2": ("size", "replicas")}
MERGE = {"Content-Type": "application/merge-patch+json"}


def rename(item: Object, version: str) -> Object:
    old, new = RENAMED[version.rpartition("/")[2]]
    spec = dict(item["spec"])
    if old in spec:
        spec[new] = spec.pop(old)
    return {**item, "apiVersion": version, "spec": spec}


@dataclass
class Converter:
    """A conversion webhook. `refused` names objects that it cannot convert, and `single` lets it take one at a time."""

    refused: set[str] = field(default_factory=set)
    single: bool = False
    reviews: list[list[str]] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    open: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    ca: KeyPair = field(default_factory=lambda: create_ca("converter"))

    def __post_init__(self) -> None:
        self.open.set()

    async def answer(self, request: web.Request) -> web.Response:
        asked = json.loads(await request.read())["request"]
        names = [item["metadata"]["name"] for item in asked["objects"]]
        self.reviews.append(names)
        self.hosts.append(request.host)
        self.waiting.set()
        await self.open.wait()
        response: Object = {"uid": asked["uid"], "result": {"status": "Success"}}
        if self.refused & set(names) or (self.single and len(names) > 1):
            response["result"] = {"status": "Failure", "message": f"cannot convert {', '.join(names)}"}
        else:
            response["convertedObjects"] = [rename(item, asked["desiredAPIVersion"]) for item in asked["objects"]]
        return web.json_response(
            {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}
        )

    @property
    def client_config(self) -> Object:
        bundle = base64.b64encode(self.ca.cert).decode()
        return {"url": f"https://127.0.0.1:{self.port}/convert", "caBundle": bundle}

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        pair = create_server_certificate(self.ca, ["127.0.0.1", "converter.hooks.svc"])
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/convert", self.answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_ssl_context(pair.cert, pair.key)).start()
            self.port = runner.addresses[0][1]
            yield
        finally:
            await runner.cleanup()


@pytest.fixture
async def converter() -> AsyncIterator[Converter]:
    made = Converter()
    async with made.serving():
        yield made


def version(name: str, number: str, *, storage: bool = False, served: bool = True) -> Object:
    spec = {"type": "object", "properties": {number: {"type": "integer"}, "x": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    found: Object = {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}}
    return {**found, "selectableFields": [{"jsonPath": f".spec.{number}"}]}


async def define(apiserver: RunningServer, client_config: Object) -> None:
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client_config}
    await apiserver.define(
        versions=[version("v1", "size", storage=True), version("v2", "replicas")],
        conversion={"strategy": "Webhook", "webhook": webhook},
    )
    await apiserver.until_served("test.example.com", "v2", "widgets")


async def create(apiserver: RunningServer, *names: str, size: int = 1) -> None:
    for name in names:
        body = {
            "apiVersion": "test.example.com/v1",
            "kind": "Widget",
            "metadata": {"name": name},
            "spec": {"size": size},
        }
        answer = await apiserver.request("POST", V1, body)
        assert answer.status == 201, answer.body


async def patch(apiserver: RunningServer, name: str, size: int) -> Answer:
    return await apiserver.request("PATCH", f"{V1}/{name}", {"spec": {"size": size}}, headers=MERGE)


async def events(apiserver: RunningServer, query: str, until: Callable[[list[Object]], bool]) -> list[Object]:
    """The events of a watch in v2, up to a condition or the stream's end."""
    found: list[Object] = []
    async with apiserver.session() as session, session.get(f"{V2}?watch=1&{query}") as response:
        assert response.status == 200
        async for line in response.content:
            found.append(json.loads(line))
            if until(found):
                return found
    return found


async def test_a_list_is_converted_with_one_review_and_only_once(
    apiserver: RunningServer, converter: Converter
) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a", "b", "c")

    first = await apiserver.request("GET", V2)
    again = await apiserver.request("GET", V2)

    assert [item["spec"] for item in first.body["items"]] == [{"replicas": 1}] * 3
    assert again.body["items"] == first.body["items"]
    assert converter.reviews == [["a", "b", "c"]]


async def test_a_read_of_one_object_asks_again(apiserver: RunningServer, converter: Converter) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a")
    await apiserver.request("GET", V2)
    converter.refused = {"a"}

    assert (await apiserver.request("GET", f"{V2}/a")).status == 500
    converter.refused = set()
    assert (await apiserver.request("GET", f"{V2}/a")).body["spec"] == {"replicas": 1}


async def test_a_webhook_that_takes_one_object_at_a_time_is_asked_so(
    apiserver: RunningServer, converter: Converter
) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a", "b")
    converter.single = True

    answer = await apiserver.request("GET", V2)

    assert [item["spec"] for item in answer.body["items"]] == [{"replicas": 1}] * 2
    assert converter.reviews == [["a", "b"], ["a"], ["b"]]


async def test_a_list_names_each_object_that_cannot_be_converted(
    apiserver: RunningServer, converter: Converter
) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a", "b", "c")
    converter.refused = {"a", "c"}

    for query in ("", "?labelSelector=x"):
        answer = await apiserver.request("GET", V2 + query)
        assert answer.status == 500
        assert answer.body["reason"] == "StorageReadError"
        assert {key: answer.body["details"][key] for key in ("name", "group", "kind")} == {
            "name": "list",
            "group": "test.example.com",
            "kind": "widgets",
        }
        causes = answer.body["details"]["causes"]
        place = "/registry/test.example.com/widgets/default"
        assert [cause["field"] for cause in causes] == [f"{place}/a", f"{place}/c"]
        assert {cause["reason"] for cause in causes} == {"UnexpectedServerResponse"}
        first = causes[0]["message"]
        assert first.startswith(f"StorageError: corrupt object, Code: 7, Key: {place}/a, ResourceVersion: 0")
        assert first.endswith("conversion webhook for test.example.com/v1, Kind=Widget failed: cannot convert a")
        assert answer.body["message"] == (
            f"failed to read one or more widgets.test.example.com from the storage: {first} (and 1 more)"
        )
    assert (await apiserver.request("GET", V1)).status == 200


async def test_no_object_is_deleted_that_cannot_be_read_in_the_version_of_the_delete(
    apiserver: RunningServer, converter: Converter
) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a")
    converter.refused = {"a"}

    assert (await apiserver.request("DELETE", f"{V2}/a")).status == 500
    assert (await apiserver.request("DELETE", V2)).status == 500
    assert (await apiserver.request("GET", f"{V1}/a")).status == 200
    assert (await apiserver.request("DELETE", f"{V1}/a")).status == 200


async def test_a_dry_run_fails_as_a_read_does_and_a_write_has_words_of_its_own(
    apiserver: RunningServer, converter: Converter
) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a")
    converter.refused = {"a"}

    headers = {"Content-Type": "application/merge-patch+json"}
    for path, reason, words in (
        (f"{V2}/a", None, "object not decodable"),
        (f"{V2}/a?dryRun=All", "InternalError", "Internal error occurred: StorageError: corrupt object"),
    ):
        answer = await apiserver.request("PATCH", path, {"spec": {"replicas": 2}}, headers=headers)
        assert (answer.status, answer.body.get("reason")) == (500, reason)
        assert answer.body["message"].startswith(words)


async def test_a_definition_goes_with_its_objects_though_its_webhook_is_broken(
    apiserver: RunningServer, converter: Converter
) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a")
    converter.refused = {"a"}

    collection = CRD.rpartition("/")[0]
    async with asyncio.timeout(5), apiserver.session() as session, session.get(f"{collection}?watch=1") as response:
        assert (await apiserver.request("DELETE", CRD)).status == 200
        async for line in response.content:
            if json.loads(line)["type"] == "DELETED":
                break
    assert (await apiserver.request("GET", CRD)).status == 404


async def test_watch_events_keep_their_order_while_conversions_are_slow(
    apiserver: RunningServer, converter: Converter
) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a")
    started = asyncio.Event()

    def enough(found: list[Object]) -> bool:
        started.set()
        return len(found) == 5

    watching = asyncio.create_task(events(apiserver, "", enough))
    await asyncio.wait_for(started.wait(), 5)
    converter.open.clear()
    converter.waiting.clear()
    await patch(apiserver, "a", 2)
    await asyncio.wait_for(converter.waiting.wait(), 5)
    await patch(apiserver, "a", 3)
    await create(apiserver, "b", size=4)
    await apiserver.request("DELETE", f"{V1}/b")
    converter.open.set()

    found = await asyncio.wait_for(watching, 5)
    assert [(event["type"], event["object"]["spec"]) for event in found] == [
        ("ADDED", {"replicas": 1}),
        ("MODIFIED", {"replicas": 2}),
        ("MODIFIED", {"replicas": 3}),
        ("ADDED", {"replicas": 4}),
        ("DELETED", {"replicas": 4}),
    ]
    revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in found]
    assert revisions == sorted(revisions)


async def test_a_watch_can_be_resumed_in_the_converted_version(apiserver: RunningServer, converter: Converter) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a")
    start = (await apiserver.request("GET", V2)).body["metadata"]["resourceVersion"]
    await patch(apiserver, "a", 2)
    await apiserver.request("DELETE", f"{V1}/a")

    found = await events(apiserver, f"resourceVersion={start}", lambda found: len(found) == 2)

    assert [(event["type"], event["object"]["spec"]) for event in found] == [
        ("MODIFIED", {"replicas": 2}),
        ("DELETED", {"replicas": 2}),
    ]


async def test_a_watch_ends_when_an_event_cannot_be_converted(apiserver: RunningServer, converter: Converter) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a")
    started = asyncio.Event()

    def never(found: list[Object]) -> bool:
        started.set()
        return False

    watching = asyncio.create_task(events(apiserver, "", never))
    await asyncio.wait_for(started.wait(), 5)
    converter.refused = {"a"}
    await patch(apiserver, "a", 2)

    assert len(await asyncio.wait_for(watching, 5)) == 1
    async with apiserver.session() as session, session.get(f"{V2}?watch=1") as response:
        assert response.status == 500


async def test_a_slow_webhook_holds_up_no_one_else(apiserver: RunningServer, converter: Converter) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a", "b")
    converter.open.clear()
    slow = asyncio.create_task(apiserver.request("GET", f"{V2}/a"))
    await asyncio.wait_for(converter.waiting.wait(), 5)

    assert (await asyncio.wait_for(patch(apiserver, "a", 7), 5)).status == 200
    assert (await asyncio.wait_for(apiserver.request("GET", V1), 5)).status == 200
    converter.open.set()
    assert (await slow).body["spec"] == {"replicas": 1}


async def test_concurrent_writers_through_a_webhook_lose_nothing(
    apiserver: RunningServer, converter: Converter
) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a", size=0)

    async def increment(path: str, key: str) -> int:
        conflicts = 0
        while True:
            current = (await apiserver.request("GET", f"{path}/a")).body
            current["spec"][key] += 1
            answer = await apiserver.request("PUT", f"{path}/a", current)
            if answer.status == 200:
                return conflicts
            assert answer.status == 409, answer.body
            conflicts += 1

    await asyncio.gather(*(increment(*at) for _ in range(6) for at in ((V1, "size"), (V2, "replicas"))))
    assert (await apiserver.request("GET", f"{V1}/a")).body["spec"]["size"] == 12


async def test_a_service_is_found_through_its_configured_address(
    certificates: ServerFiles, tmp_path: Path, converter: Converter
) -> None:
    addresses = {("hooks", "converter"): ("127.0.0.1", converter.port)}
    async with running(certificates, tmp_path, service_addresses=addresses) as apiserver:
        service = {"namespace": "hooks", "name": "converter", "path": "/convert", "port": 8443}
        await define(apiserver, {"service": service, "caBundle": converter.client_config["caBundle"]})
        await create(apiserver, "a")

        answer = await apiserver.request("GET", f"{V2}/a")

    assert answer.body["spec"] == {"replicas": 1}
    assert converter.hosts == ["converter.hooks.svc:8443"]


async def test_a_service_is_found_through_its_external_name(apiserver: RunningServer, converter: Converter) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "converter"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    await apiserver.request("POST", "/api/v1/namespaces", {"metadata": {"name": "hooks"}})
    assert (await apiserver.request("POST", "/api/v1/namespaces/hooks/services", service)).status == 201
    reference = {"namespace": "hooks", "name": "converter", "path": "/convert", "port": converter.port}
    await define(apiserver, {"service": reference, "caBundle": converter.client_config["caBundle"]})
    await create(apiserver, "a")

    assert (await apiserver.request("GET", f"{V2}/a")).body["spec"] == {"replicas": 1}


async def test_a_certificate_for_another_name_is_not_trusted(
    certificates: ServerFiles, tmp_path: Path, converter: Converter
) -> None:
    addresses = {("hooks", "other"): ("127.0.0.1", converter.port)}
    async with running(certificates, tmp_path, service_addresses=addresses) as apiserver:
        await define(
            apiserver,
            {"service": {"namespace": "hooks", "name": "other"}, "caBundle": converter.client_config["caBundle"]},
        )
        await create(apiserver, "a")

        answer = await apiserver.request("GET", f"{V2}/a")

    assert answer.status == 500
    assert (
        "tls: failed to verify certificate: x509: certificate is not valid for other.hooks.svc"
        in answer.body["message"]
    )
    assert converter.reviews == []


async def test_objects_of_an_old_storage_version_are_converted_from_it(
    apiserver: RunningServer, converter: Converter
) -> None:
    await define(apiserver, converter.client_config)
    await create(apiserver, "a")
    versions = [version("v1", "size", served=False), version("v2", "replicas", storage=True)]
    answer = await apiserver.request("PATCH", CRD, {"spec": {"versions": versions}}, headers=MERGE)
    assert answer.body["status"]["storedVersions"] == ["v1", "v2"]

    assert (await apiserver.request("GET", f"{V2}/a")).body["spec"] == {"replicas": 1}
    written = await apiserver.request("PATCH", f"{V2}/a", {"spec": {"replicas": 5}}, headers=MERGE)
    converter.refused = {"a"}

    assert written.body["spec"] == {"replicas": 5}
    assert (await apiserver.request("GET", f"{V2}/a")).body["spec"] == {"replicas": 5}


async def test_a_namespace_is_emptied_of_all_but_what_a_broken_webhook_holds(
    apiserver: RunningServer, converter: Converter
) -> None:
    await define(apiserver, converter.client_config)
    versions = [version("v1", "size", served=False), version("v2", "replicas", storage=True)]
    space, widgets = "/api/v1/namespaces/n", "/apis/test.example.com/{}/namespaces/n/widgets"
    await apiserver.request("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    body = {"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}
    assert (await apiserver.request("POST", widgets.format("v1"), body)).status == 201
    await apiserver.request("PATCH", CRD, {"spec": {"versions": versions}}, headers=MERGE)
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    await apiserver.request("POST", f"{space}/configmaps", config_map)
    converter.refused = {"a"}
    collection = "/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Dn"
    failing: Object = {}

    async with asyncio.timeout(10), apiserver.session() as session, session.get(collection) as response:
        assert (await apiserver.request("DELETE", space)).status == 200
        async for line in response.content:
            event = json.loads(line)
            conditions = {each["type"]: each for each in event["object"]["status"].get("conditions", ())}
            failing = conditions.get("NamespaceDeletionContentFailure", failing)
            if failing and converter.refused:
                assert failing["status"] == "True"
                assert "cannot convert a" in failing["message"]
                assert (await apiserver.request("GET", f"{space}/configmaps/c")).status == 404
                converter.refused = set()
            if event["type"] == "DELETED":
                break
    assert failing
