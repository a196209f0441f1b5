"""Audit events are those that a kube-apiserver writes for the same requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yarl
from tests.conftest import RunningServer, running

from steersman.apiserver.audit.auditor import Auditor
from steersman.apiserver.audit.backends import Direct
from steersman.apiserver.audit.policy import parse_policy
from steersman.net.pki import ServerFiles

from ..admission.test_webhooks import CONFIG_MAPS, config_map, entry, register, serving
from .steps import CRD, STEPS, TIMES, Step, normalised

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "recorded.json").read_text())


class Collected:
    """A sink that keeps events."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.arrived = asyncio.Event()

    def send(self, events: Sequence[bytes]) -> bool:
        self.events += map(json.loads, events)
        self.arrived.set()
        return True

    async def close(self) -> None:
        self.arrived.set()

    async def of(self, audit_id: str, count: int) -> list[dict[str, Any]]:
        """The events of a request, once there are so many."""
        async with asyncio.timeout(10):
            while len(found := [event for event in self.events if event["auditID"] == audit_id]) < count:
                self.arrived.clear()
                await self.arrived.wait()
        return found


def audited(policy: bytes, sink: Collected, *, strict: bool = False) -> Any:
    return lambda: Auditor(parse_policy(policy), [Direct(sink, strict=strict)])


@pytest.fixture
def sink() -> Collected:
    return Collected()


@pytest.fixture
async def server(certificates: ServerFiles, tmp_path: Path, sink: Collected) -> AsyncIterator[RunningServer]:
    audit = audited((HERE / "policy.yaml").read_bytes(), sink)
    async with running(certificates, tmp_path, audit=audit) as server:
        yield server


async def ask(server: RunningServer, session: aiohttp.ClientSession, step: Step) -> str:
    target = yarl.URL(server.url + step.path, encoded=True)
    async with session.request(
        step.method,
        target,
        data=step.sent or None,
        headers=step.all_headers,
        ssl=server.ssl,
        skip_auto_headers=("Accept",),
    ) as answer:
        await answer.read()
        return answer.headers["Audit-Id"]


async def test_events_are_as_recorded(server: RunningServer, sink: Collected) -> None:
    wrong = []
    async with aiohttp.ClientSession() as session:
        await ask(server, session, Step("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD))
        await server.until_served("audit.example.com", "v1", "foos")
        for step, recorded in zip(STEPS, RECORDED, strict=True):
            audit_id = await ask(server, session, step)
            events = await sink.of(audit_id, len(recorded))
            found = [normalised(event) for event in events]
            for each, wanted in zip(found, recorded, strict=True):
                if each != wanted:
                    parts = [key for key in {*each, *wanted} if each.get(key) != wanted.get(key)]
                    wrong.append((step, {key: (each.get(key), wanted.get(key)) for key in parts}))
            assert all(event[key].endswith("Z") for event in events for key in TIMES)
    assert not wrong, "\n".join(map(str, wrong))


async def test_a_request_fails_when_its_first_event_is_lost_in_strict_mode(
    certificates: ServerFiles, tmp_path: Path, sink: Collected
) -> None:
    policy = b"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, users: [alice]}]\n"
    sink.send = lambda events: False  # type: ignore[method-assign]
    async with running(certificates, tmp_path, audit=audited(policy, sink, strict=True)) as server:
        refused = await server.request("GET", "/version", token="alicetoken")
        assert (refused.status, refused.body["message"]) == (
            500,
            "Internal error occurred: failed to store audit event",
        )
        assert (await server.request("GET", "/version")).status == 200


async def test_the_audit_id_is_in_every_answer(apiserver: RunningServer) -> None:
    given = await apiserver.request("GET", "/nope", headers={"Audit-ID": "of-the-client"})
    assert given.headers["Audit-Id"] == "of-the-client"
    made = {(await apiserver.request("GET", path)).headers["Audit-Id"] for path in ("/version", "/api", "/nope")}
    assert len(made) == 3


POLICY = (
    b"apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: RequestResponse}]\n"
)


async def test_a_refused_description_of_the_api_is_told_of_as_an_error(
    certificates: ServerFiles, tmp_path: Path, sink: Collected
) -> None:
    async with running(certificates, tmp_path, audit=audited(POLICY, sink)) as server:
        refused = await server.request("GET", "/openapi/v2", token="nobody")
        (event,) = await sink.of(refused.headers["Audit-Id"], 1)
        assert event["responseStatus"]["reason"] == "Unauthorized"
        given = await server.request("GET", "/openapi/v2")
        (event,) = await sink.of(given.headers["Audit-Id"], 1)
        assert event["responseStatus"] == {"metadata": {}, "code": 200} and "responseObject" not in event


async def test_annotations_of_webhooks_whose_keys_are_none_are_left_out(
    certificates: ServerFiles, tmp_path: Path, sink: Collected
) -> None:
    async def judge(request: Any) -> Any:
        return {"allowed": True, "auditAnnotations": {"good": "1", "bad key": "2", "a/b": "3", "": "4"}}

    async with running(certificates, tmp_path, audit=audited(POLICY, sink)) as server, serving() as hook:
        hook.judge = judge
        await register(server, "Validating", entry(hook))
        created = await server.request("POST", CONFIG_MAPS, config_map("a"))
        (event,) = await sink.of(created.headers["Audit-Id"], 1)
        told = {key: value for key, value in event["annotations"].items() if key.startswith("hook.example.com")}
        assert told == {"hook.example.com/good": "1"}
