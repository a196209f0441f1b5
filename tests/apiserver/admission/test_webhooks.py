"""Admission webhooks, beside what the recorded scenarios show of them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from steersman.net.pki import KeyPair, ServerFiles, create_ca, create_server_certificate
from steersman.net.tls import server_ssl_context

from ...conftest import RunningServer, running

Object = dict[str, Any]
Judge = Callable[[Object], Awaitable[Object | web.Response]]
MERGE = {"Content-Type": "application/merge-patch+json"}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def allow(request: Object) -> Object | web.Response:
    return {"allowed": True}


@dataclass
class Hook:
    """A webhook that answers each request as `judge` says, and remembers them and their connections."""

    judge: Judge = allow
    requests: list[Object] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    connections: set[Any] = field(default_factory=set)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""
    port: int = 0
    ca: KeyPair = field(default_factory=lambda: create_ca("hook"))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.connections.add(request.transport)
        review = json.loads(await request.read())
        self.requests.append(review["request"])
        self.paths.append(request.rel_url.raw_path)
        self.arrived.set()
        response = await self.judge(review["request"])
        if isinstance(response, web.Response):
            return response
        if "flood" in response:
            return await self._flood(request)
        return web.json_response({**review, "response": {"uid": review["request"]["uid"], **response}})

    async def _flood(self, request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        try:
            while True:
                await stream.write(b" " * 1_000_000)
                await asyncio.sleep(0)  # a write does not always wait: the one who cuts it off works in this loop, too
        except ConnectionError:
            return stream

    def client_config(self, **more: Any) -> Object:
        return {"url": f"{self.url}/hook", "caBundle": base64.b64encode(self.ca.cert).decode(), **more}


@asynccontextmanager
async def serving() -> AsyncIterator[Hook]:
    hook = Hook()
    pair = create_server_certificate(hook.ca, ["127.0.0.1", "hook.hooks.svc"])
    app = web.Application(client_max_size=16 << 20)
    app.router.add_post("/{path:.*}", hook.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_ssl_context(pair.cert, pair.key)).start()
        hook.port = runner.addresses[0][1]
        hook.url = f"https://127.0.0.1:{hook.port}"
        yield hook
    finally:
        await runner.cleanup()


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    async with serving() as made:
        yield made


def entry(hook: Hook, **more: Any) -> Object:
    rule = {"operations": ["CREATE", "UPDATE", "DELETE"], "apiGroups": [""], "apiVersions": ["v1"]}
    return {
        "name": "hook.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": hook.client_config(),
        "rules": [{**rule, "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        **more,
    }


async def register(apiserver: RunningServer, kind: str, *entries: Object, name: str = "hooks") -> None:
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(entries),
    }
    path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations"
    answer = await apiserver.request("POST", path, body)
    assert answer.status == 201, answer.body


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def patch_of(*operations: Object) -> Object:
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(operations).encode()).decode(),
    }


async def test_a_configuration_takes_effect_with_the_answer_to_its_creation(
    apiserver: RunningServer, hook: Hook
) -> None:
    async def refuse(request: Object) -> Object:
        return {"allowed": False}

    hook.judge = refuse
    assert (await apiserver.request("POST", CONFIG_MAPS, config_map("before"))).status == 201
    await register(apiserver, "Validating", entry(hook))

    assert (await apiserver.request("POST", CONFIG_MAPS, config_map("after"))).status == 400


async def test_a_webhook_may_write_the_object_that_it_is_asked_about(apiserver: RunningServer, hook: Hook) -> None:
    await apiserver.request("POST", CONFIG_MAPS, config_map("a", n="0"))
    inner: list[int] = []

    async def touch(request: Object) -> Object:
        if request["object"]["data"]["n"] == "1":
            body = {"data": {"n": "2"}, "metadata": {"labels": {"by": "hook"}}}
            answer = await apiserver.request("PATCH", f"{CONFIG_MAPS}/a", body, headers=MERGE)
            inner.append(answer.status)
        return {"allowed": True}

    hook.judge = touch
    await register(apiserver, "Validating", entry(hook))
    async with asyncio.timeout(10):
        outer = await apiserver.request("PATCH", f"{CONFIG_MAPS}/a", {"data": {"m": "x", "n": "1"}}, headers=MERGE)

    assert outer.status == 200
    assert set(inner) == {200}
    found = (await apiserver.request("GET", f"{CONFIG_MAPS}/a")).body
    assert found["data"] == {"m": "x", "n": "1"}
    assert found["metadata"]["labels"] == {"by": "hook"}


async def test_a_stale_write_is_refused_after_the_mutating_webhook_was_asked(
    apiserver: RunningServer, hook: Hook
) -> None:
    stale = (await apiserver.request("POST", CONFIG_MAPS, config_map("a", n="0"))).body
    await apiserver.request("PATCH", f"{CONFIG_MAPS}/a", {"data": {"n": "1"}}, headers=MERGE)
    await register(apiserver, "Mutating", entry(hook))

    assert (await apiserver.request("PUT", f"{CONFIG_MAPS}/a", stale)).status == 409
    assert len(hook.requests) == 1


async def test_increments_through_webhooks_are_all_counted(apiserver: RunningServer, hook: Hook) -> None:
    async def stamp(request: Object) -> Object:
        return patch_of({"op": "add", "path": "/data/stamp", "value": request["uid"]})

    hook.judge = stamp
    await apiserver.request("POST", CONFIG_MAPS, config_map("a", n="0"))
    await register(apiserver, "Mutating", entry(hook))

    async def increment() -> None:
        while True:
            current = (await apiserver.request("GET", f"{CONFIG_MAPS}/a")).body
            current["data"]["n"] = str(int(current["data"]["n"]) + 1)
            answer = await apiserver.request("PUT", f"{CONFIG_MAPS}/a", current)
            if answer.status == 200:
                assert answer.body["data"]["stamp"]
                return
            assert answer.status == 409, answer.body

    await asyncio.gather(*(increment() for _ in range(8)))
    assert (await apiserver.request("GET", f"{CONFIG_MAPS}/a")).body["data"]["n"] == "8"


async def test_a_slow_webhook_holds_up_no_other_request(apiserver: RunningServer, hook: Hook) -> None:
    go_on = asyncio.Event()

    async def wait(request: Object) -> Object:
        if request["name"] == "slow":
            await go_on.wait()
        return {"allowed": True}

    hook.judge = wait
    await register(apiserver, "Validating", entry(hook))
    slow = asyncio.create_task(apiserver.request("POST", CONFIG_MAPS, config_map("slow")))
    await asyncio.wait_for(hook.arrived.wait(), 5)

    assert (await asyncio.wait_for(apiserver.request("POST", CONFIG_MAPS, config_map("quick")), 5)).status == 201
    go_on.set()
    assert (await slow).status == 201


async def test_validating_webhooks_are_asked_at_the_same_time(apiserver: RunningServer, hook: Hook) -> None:
    async def wait_for_the_other(request: Object) -> Object:
        async with asyncio.timeout(5):
            while len(hook.requests) < 2:
                hook.arrived.clear()
                await hook.arrived.wait()
        return {"allowed": True}

    hook.judge = wait_for_the_other
    await register(apiserver, "Validating", entry(hook), entry(hook, name="second.example.com"))

    assert (await apiserver.request("POST", CONFIG_MAPS, config_map("a"))).status == 201


async def test_connections_are_used_again(apiserver: RunningServer, hook: Hook) -> None:
    await register(apiserver, "Mutating", entry(hook))
    await register(apiserver, "Validating", entry(hook))
    for number in range(5):
        await apiserver.request("POST", CONFIG_MAPS, config_map(f"c{number}"))

    assert len(hook.requests) == 10
    assert len(hook.connections) == 1


async def test_an_endless_answer_is_cut_off(apiserver: RunningServer, hook: Hook) -> None:
    async def flood(request: Object) -> Object:
        return {"flood": True}

    hook.judge = flood
    await register(apiserver, "Validating", entry(hook))

    answer = await apiserver.request("POST", CONFIG_MAPS, config_map("a"))

    assert answer.status == 500
    assert answer.body["reason"] == "InternalError"
    assert "the answer is larger than" in answer.body["message"]


async def test_a_webhook_behind_a_service(certificates: ServerFiles, tmp_path: Path, hook: Hook) -> None:
    addresses = {("hooks", "hook"): ("127.0.0.1", hook.port)}
    async with running(certificates, tmp_path, service_addresses=addresses) as apiserver:
        bundle = hook.client_config()["caBundle"]
        service = {"namespace": "hooks", "name": "hook", "path": "/hook", "port": 443}
        await register(apiserver, "Validating", entry(hook, clientConfig={"service": service, "caBundle": bundle}))

        assert (await apiserver.request("POST", CONFIG_MAPS, config_map("a"))).status == 201
    assert [request["name"] for request in hook.requests] == ["a"]


@pytest.mark.parametrize(
    ("kind", "plugin"),
    [("Mutating", "MutatingAdmissionWebhook"), ("Validating", "ValidatingAdmissionWebhook")],
)
async def test_the_plugins_can_be_disabled(
    certificates: ServerFiles, tmp_path: Path, hook: Hook, kind: str, plugin: str
) -> None:
    async with running(certificates, tmp_path, disabled_plugins=frozenset({plugin})) as apiserver:
        await register(apiserver, kind, entry(hook))
        assert (await apiserver.request("POST", CONFIG_MAPS, config_map("a"))).status == 201
    assert hook.requests == []


async def test_configurations_are_asked_after_a_restart(certificates: ServerFiles, tmp_path: Path, hook: Hook) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with running(certificates, tmp_path, store) as apiserver:
        await register(apiserver, "Validating", entry(hook))
    async with running(certificates, tmp_path, store) as apiserver:
        await apiserver.request("POST", CONFIG_MAPS, config_map("a"))
    assert [request["name"] for request in hook.requests] == ["a"]


async def test_calls_are_counted(apiserver: RunningServer, hook: Hook) -> None:
    async def refuse(request: Object) -> Object:
        return {"allowed": False, "status": {"code": 403}}

    hook.judge = refuse
    await register(apiserver, "Validating", entry(hook))
    await apiserver.request("POST", CONFIG_MAPS, config_map("a"))

    text = (await apiserver.request("GET", "/metrics")).body
    labels = 'name="hook.example.com",type="validating",operation="CREATE",code="403",rejected="true"'
    assert f"apiserver_admission_webhook_request_total{{{labels}}} 1" in text
