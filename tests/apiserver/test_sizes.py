"""Objects that are too large for etcd are refused here, too."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from tests.conftest import Answer, RunningServer

GADGET = {"apiVersion": "test.example.com/v1", "kind": "Widget"}
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
# What a kube-apiserver took for a name of one letter in this group, and did not.
FITS, TOO_LARGE = 1_572_400, 1_572_864


def widget(size: int, name: str = "w") -> dict[str, Any]:
    return {**GADGET, "metadata": {"name": name}, "spec": {"text": "x" * size}}


async def send(
    server: RunningServer, method: str, path: str, body: Any, media_type: str = "application/json"
) -> Answer:
    """As a stream, as large bodies should be sent."""
    data = io.BytesIO(json.dumps(body).encode())
    return await server.request(method, path, data=data, headers={"Content-Type": media_type})


async def test_owners_are_left_out_where_an_object_fits_only_without_them(apiserver: RunningServer) -> None:
    path = await apiserver.define()
    small = await send(apiserver, "POST", path, widget(1_000_000, "small"))
    assert small.body["metadata"]["managedFields"]
    answer = await send(apiserver, "POST", path, widget(FITS))
    assert (answer.status, "managedFields" in answer.body["metadata"]) == (201, False)
    patched = await send(
        apiserver, "PATCH", f"{path}/small", {"spec": {"text": "y" * FITS}, "metadata": {"labels": {"a": "b"}}}, MERGE
    )
    assert patched.status == 200
    assert (await apiserver.request("GET", f"{path}/small")).body["metadata"].get("managedFields") is None


@pytest.mark.parametrize(
    ("size", "message"),
    [(TOO_LARGE, "etcdserver: request is too large"), (2_100_000, "trying to send message larger than max (210033")],
)
async def test_what_etcd_does_not_take_is_not_stored(apiserver: RunningServer, size: int, message: str) -> None:
    path = await apiserver.define()
    answer = await send(apiserver, "POST", path, widget(size))
    assert (answer.status, answer.body.get("reason")) == (500, None)
    assert message in answer.body["message"]
    assert (await apiserver.request("GET", f"{path}/w")).status == 404
    applied = await send(apiserver, "PATCH", f"{path}/w?fieldManager=m", widget(FITS), APPLY)
    assert applied.status == 500  # whoever applies needs the owners
    assert (await send(apiserver, "POST", f"{path}?dryRun=All", widget(size))).status == 201


async def test_an_object_cannot_grow_beyond_it(apiserver: RunningServer) -> None:
    path = await apiserver.define()
    await send(apiserver, "POST", path, widget(0))
    statuses = [
        (await send(apiserver, "PATCH", f"{path}/w", {"spec": {f"part{number}": "x" * 600_000}}, MERGE)).status
        for number in range(4)
    ]
    assert statuses == [200, 200, 500, 500]
    assert sorted((await apiserver.request("GET", f"{path}/w")).body["spec"]) == ["part0", "part1", "text"]
