"""Faults that are planned befall the requests that are meant, and no others."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.conftest import RunningServer, running

from steersman.apiserver.faults import Fault, FaultPlan, parse_plan
from steersman.client.resources import Resource
from steersman.net.pki import ServerFiles
from steersman.runtime.cache.cache import CacheScope

Kind = Resource("v1", "ConfigMap")
MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


@asynccontextmanager
async def faulty(
    certificates: ServerFiles, directory: Path, *faults: Fault, seed: int = 0
) -> AsyncIterator[RunningServer]:
    plan = FaultPlan(seed)
    for fault in faults:
        plan.add(fault)
    async with running(certificates, directory, faults=plan) as server:
        yield server


async def test_writes_are_refused_as_if_they_were_stale(certificates: ServerFiles, tmp_path: Path) -> None:
    fault = Fault(verbs=["update", "patch"], resources=["configmaps"], status=409, times=2)
    async with faulty(certificates, tmp_path, fault) as server, await server.client(namespace="default") as client:
        conflicts: list[object] = []
        await client.create(config_map("a"))
        made = await client.modify(Kind, "a", lambda obj: obj.update(data={"a": "1"}), on_conflict=conflicts.append)
        assert (made["data"], len(conflicts)) == ({"a": "1"}, 2)


@pytest.mark.parametrize(
    ("status", "reason"),
    [(429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable"), (504, "Timeout")],
)
async def test_any_request_may_be_refused(status: int, reason: str, certificates: ServerFiles, tmp_path: Path) -> None:
    fault = Fault(status=status, retry_after=3, after=1, times=1, resources=["configmaps"])
    async with faulty(certificates, tmp_path, fault) as server:
        answers = [await server.request("GET", MAPS) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, status, 200]
        assert answers[1].body["reason"] == reason
        assert answers[1].headers["Retry-After"] == "3"


async def test_nobody_can_tell_whether_a_write_was_carried_out(certificates: ServerFiles, tmp_path: Path) -> None:
    plan = (
        Fault(verbs=["create"], names=[], disconnect="before", times=1),
        Fault(verbs=["create"], disconnect="after", times=1),
    )
    async with faulty(certificates, tmp_path, *plan) as server:
        for name, there in (("before", 404), ("after", 200)):
            with pytest.raises(aiohttp.ClientError):
                await server.request("POST", MAPS, config_map(name))
            assert (await server.request("GET", f"{MAPS}/{name}")).status == there


async def test_the_same_seed_strikes_the_same_requests(certificates: ServerFiles, tmp_path: Path) -> None:
    fault = Fault(verbs=["get"], resources=["configmaps"], probability=0.5, status=500)
    outcomes = []
    for number, seed in enumerate((1, 1, 2)):
        (directory := tmp_path / str(number)).mkdir()
        async with faulty(certificates, directory, fault, seed=seed) as server:
            await server.request("POST", MAPS, config_map("a"))
            outcomes.append([(await server.request("GET", f"{MAPS}/a")).status for _ in range(40)])
    assert outcomes[0] == outcomes[1] != outcomes[2]
    assert {200, 500} == {*outcomes[0]}


async def test_who_and_what_is_meant(certificates: ServerFiles, tmp_path: Path) -> None:
    plan = (
        Fault(users=["admin"], resources=["secrets"], status=503),
        Fault(resources=["configmaps/status", "deployments.apps/scale"], status=503),
        Fault(namespaces=["kube-system"], verbs=["list"], status=503),
        Fault(names=["b"], status=503),
    )
    paths = {
        "/api/v1/namespaces/default/secrets": 503,
        "/apis/apps/v1/namespaces/default/deployments": 200,
        "/apis/apps/v1/namespaces/default/deployments/x/scale": 503,
        MAPS: 200,
        "/api/v1/namespaces/kube-system/configmaps": 503,
        f"{MAPS}/a": 404,
        f"{MAPS}/b": 503,
    }
    async with faulty(certificates, tmp_path, *plan) as server:
        assert {path: (await server.request("GET", path)).status for path in paths} == paths
        refused = await server.request("GET", "/api/v1/namespaces/default/secrets", token="bobtoken")
        assert refused.status == 403


async def test_an_answer_may_take_its_time(certificates: ServerFiles, tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with faulty(certificates, tmp_path, Fault(verbs=["list"], delay=0.2)) as server:
        began = loop.time()
        assert (await server.request("GET", MAPS)).status == 200
        assert loop.time() - began >= 0.2


@pytest.mark.parametrize(
    ("fault", "last"),
    [
        (Fault(watch="drop", events=2), "cut off"),
        (Fault(watch="end", events=2), "end"),
        (Fault(watch="expire", events=2), 410),
        (Fault(status=410, verbs=["watch"]), 410),
    ],
    ids=str,
)
async def test_watches_break(fault: Fault, last: object, certificates: ServerFiles, tmp_path: Path) -> None:
    async with faulty(certificates, tmp_path, fault) as server, server.session() as session:
        for name in "abc":
            await server.request("POST", MAPS, config_map(name))
        seen: list[object] = []
        async with session.get(
            f"{server.url}{MAPS}?watch=true&fieldSelector=metadata.name!=kube-root-ca.crt"
        ) as answer:
            if answer.status != 200:
                seen.append(answer.status)
            else:
                try:
                    async for line in answer.content:
                        event = await _json(line)
                        seen.append(event["object"].get("code") or event["object"]["metadata"]["name"])
                    seen.append("end")
                except aiohttp.ClientError:
                    seen.append("cut off")
        if isinstance(last, int) and last in seen:
            seen = seen[: seen.index(last) + 1]
        assert seen[-1] == last


async def _json(line: bytes) -> Mapping[str, Any]:
    import json

    content: Mapping[str, Any] = json.loads(line)
    return content


async def test_an_informer_bears_it_all(certificates: ServerFiles, tmp_path: Path) -> None:
    """Whatever happens to its lists and watches, in the end it knows what there is."""
    from steersman.runtime.manager import Manager
    from steersman.testing import eventually_async
    from steersman.testing import running as working

    plan = (
        Fault(verbs=["watch"], resources=["configmaps"], watch="expire", events=1, times=1),
        Fault(verbs=["watch"], resources=["configmaps"], watch="drop", events=2, times=1),
        Fault(verbs=["watch"], resources=["configmaps"], watch="end", events=1, times=1),
        Fault(verbs=["watch"], resources=["configmaps"], delay=0.05),
    )
    seen: set[str] = set()

    async def reconcile(ctx: Any, obj: dict[str, Any]) -> None:
        seen.add(obj["metadata"]["name"])

    async with faulty(certificates, tmp_path, *plan) as server, await server.client(namespace="default") as client:
        manager = Manager(client=client, watch_default=CacheScope(namespaces=["default"]))
        manager.controller(Kind, reconcile)
        async with working(manager):
            for number in range(12):
                await client.create(config_map(f"m{number}"))

            async def check() -> None:
                assert {f"m{number}" for number in range(12)} <= seen

            await eventually_async(check, timeout=60)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "a plan of faults is a mapping with a list of faults"),
        ({"faults": [], "sede": 1}, "unknown field 'sede': a plan has seed and faults"),
        ({"faults": [], "seed": "1"}, "seed is an integer"),
        ({"faults": [3]}, r"faults\[0\]: a fault is a mapping"),
        ({"faults": [{"status": 409}, {"verb": ["get"]}]}, r"faults\[1\]: unknown field 'verb': a fault has verbs, "),
        ({"faults": [{"status": "409"}]}, r"faults\[0\]: status is an integer"),
        ({"faults": [{"verbs": "get", "status": 409}]}, r"faults\[0\]: verbs is a list of strings"),
        ({"faults": [{"delay": "1s"}]}, r"faults\[0\]: delay is a number"),
        ({"faults": [{"status": 404}]}, r"faults\[0\]: a status of 404 cannot be made: it is one of 409, 410, 429"),
        ({"faults": [{"watch": "stop"}]}, r"faults\[0\]: watch is one of drop, end, expire, silence, not 'stop'"),
        ({"faults": [{"disconnect": "now"}]}, r"faults\[0\]: disconnect is before, after, not 'now'"),
        ({"faults": [{}]}, r"faults\[0\]: a fault needs a delay, a status, disconnect, watch, compact, "),
        (
            {"faults": [{"status": 409, "watch": "end"}]},
            r"faults\[0\]: a fault has one of status, disconnect, watch, compact, restart and garbage",
        ),
        ({"faults": [{"status": 409, "probability": 2}]}, r"faults\[0\]: probability is from 0 to 1, not 2"),
        ({"faults": [{"status": 409, "probability": math.nan}]}, r"faults\[0\]: probability is from 0 to 1, not nan"),
        ({"faults": [{"delay": math.nan}]}, r"faults\[0\]: delay is a number of seconds, not nan: 0 or more"),
        ({"faults": [{"delay": math.inf}]}, r"faults\[0\]: delay is a number of seconds, not inf: 0 or more"),
        ({"faults": [{"restart": -1}]}, r"faults\[0\]: restart is a number of seconds, not -1: 0 or more"),
        ({"faults": [{"compact": 1}]}, r"faults\[0\]: compact is true or false"),
        ({"faults": [{"garbage": True}]}, r"faults\[0\]: garbage is what webhooks answer: name them"),
        ({"faults": [{"webhooks": ["*"]}]}, r"faults\[0\]: a fault needs a delay, a status, "),
        ({"faults": [{"webhooks": ["a"], "status": 200}]}, r"faults\[0\]: a webhook's status of 200 is no error"),
        ({"faults": [{"webhooks": ["a"], "verbs": ["get"], "delay": 1}]}, r"faults\[0\]: a fault of webhooks has no "),
        ({"faults": [{"webhooks": ["a"], "compact": True}]}, r"faults\[0\]: a fault of webhooks has a delay, "),
    ],
)
def test_a_plan_that_makes_no_sense_is_told_so(content: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        parse_plan(content)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"status": "409"}, "status is an integer, not '409'"),
        ({"verbs": "get"}, "verbs is a list of strings, not 'get'"),
        ({"verbs": None}, "verbs is a list of strings, not None"),
        ({"names": [1]}, r"names is a list of strings, not \[1\]"),
        ({"verbs": ["read"]}, "'read' is none of the verbs: get, list, "),
        ({"times": 0}, "times is at least 1, not 0"),
        ({"times": 1.5}, "times is an integer, not 1.5"),
        ({"every": 0}, "every is at least 1, not 0"),
        ({"after": -1}, "after is at least 0, not -1"),
        ({"retry_after": -3}, "retry_after is at least 0, not -3"),
        ({"retry_after": math.inf}, "retry_after is an integer, not inf"),
        ({"events": True}, "events is an integer, not True"),
        ({"delay": -1}, "delay is a number of seconds, not -1: 0 or more"),
        ({"delay": None}, "delay is a number, not None"),
        ({"restart": math.nan}, "restart is a number of seconds, not nan: 0 or more"),
        ({"compact": 1}, "compact is true or false, not 1"),
        ({"disconnect": ["after"]}, "disconnect is before, after, not "),
    ],
)
def test_a_fault_in_python_is_checked_as_a_plan_is(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        Fault(**fields)
    if None not in fields.values():
        with pytest.raises(ValueError, match=rf"^faults\[0\]: {message}"):
            parse_plan({"faults": [fields]})
