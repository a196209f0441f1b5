"""A definition that changes, or goes, while its objects are written."""

from __future__ import annotations

import asyncio
from typing import Any

from ...conftest import RunningServer

Object = dict[str, Any]
GROUP = "test.example.com"
CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{GROUP}"
MERGE = {"Content-Type": "application/merge-patch+json"}
WRITERS, CHANGES = 8, 12


def version(defaults: int) -> Object:
    """A version whose schema fills in so many fields."""
    fields: Object = {f"d{number}": {"type": "integer", "default": number} for number in range(defaults)}
    spec = {"type": "object", "default": {}, "properties": {**fields, "n": {"type": "integer"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": "v1", "served": True, "storage": True, "schema": schema}


async def test_no_request_fails_and_no_object_keeps_an_old_form(durable_apiserver: RunningServer) -> None:
    server = durable_apiserver
    path = await server.define(group=GROUP, versions=[version(0)])
    done = asyncio.Event()
    written: dict[str, int] = {}

    async def write(name: str) -> None:
        async with server.session() as session:
            body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"n": 0}}
            async with session.post(path, json=body) as answer:
                assert answer.status == 201, await answer.text()
            while not done.is_set():
                written[name] = written.get(name, 0) + 1
                change = {"spec": {"n": written[name]}}
                async with session.patch(f"{path}/{name}", json=change, headers=MERGE) as answer:
                    assert answer.status == 200, await answer.text()
                async with session.get(f"{path}/{name}") as answer:
                    assert (await answer.json())["spec"]["n"] == written[name]

    writers = [asyncio.create_task(write(f"w{number}")) for number in range(WRITERS)]
    for number in range(1, CHANGES + 1):
        answer = await server.request("PATCH", CRD, {"spec": {"versions": [version(number)]}}, headers=MERGE)
        assert answer.status == 200, answer.body
    done.set()
    await asyncio.gather(*writers)

    found = (await server.request("GET", path)).body["items"]
    expected = {f"d{number}": number for number in range(CHANGES)}
    assert {item["metadata"]["name"]: item["spec"] for item in found} == {
        name: {**expected, "n": count} for name, count in written.items()
    }


async def test_what_is_created_before_the_definition_goes_goes_with_it(durable_apiserver: RunningServer) -> None:
    server = durable_apiserver
    for _ in range(5):
        path = await server.define(group=GROUP, versions=[version(1)])
        gone = asyncio.Event()

        async def create(number: int, path: str = path, gone: asyncio.Event = gone) -> set[int]:
            statuses: set[int] = set()
            async with server.session() as session:
                while not gone.is_set():
                    body = {
                        "apiVersion": f"{GROUP}/v1",
                        "kind": "Widget",
                        "metadata": {"generateName": f"w{number}-"},
                    }
                    async with session.post(path, json=body) as answer:
                        statuses.add(answer.status)
            return statuses

        creators = [asyncio.create_task(create(number)) for number in range(4)]
        collection = CRD.rpartition("/")[0]
        async with asyncio.timeout(20), server.session() as session, session.get(f"{collection}?watch=1") as events:
            assert (await server.request("DELETE", CRD)).status == 200
            async for line in events.content:
                if b'"type":"DELETED"' in line:
                    break
        gone.set()
        assert set().union(*await asyncio.gather(*creators)) <= {201, 403, 404, 405}
        prefix = f"/registry/{GROUP}/widgets/".encode()
        assert (await server.plane.store.range(prefix, prefix[:-1] + b"0")).items == []
