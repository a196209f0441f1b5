"""Answers in protobuf say what the same answers in JSON say."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.api.kinds import builtin_kinds, protobuf_schema
from steersman.apimachinery.codec.protobuf import decode, envelope

from ..conftest import RunningServer

Object = dict[str, Any]
PROTOBUF = "application/vnd.kubernetes.protobuf"
FILE = Path(__file__).parents[2] / "tools" / "builtins" / "defaults.yaml"
BY_NAME = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}


def plain(value: Any) -> Any:
    """A value without what protobuf does not tell from absence."""
    if isinstance(value, dict):
        return {key: found for key, item in value.items() if (found := plain(item)) not in (None, "", 0, {}, [])}
    return [plain(item) for item in value] if isinstance(value, list) else value


async def fetch(apiserver: RunningServer, path: str, accept: str = PROTOBUF) -> tuple[int, str, bytes]:
    async with apiserver.session() as session, session.get(path, headers={"Accept": accept}) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.read()


def path_of(manifest: Object, name: str = "") -> str:
    kind = BY_NAME[manifest["apiVersion"], manifest["kind"]]
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    namespace = "/namespaces/default" if kind.namespaced else ""
    return f"{root}{namespace}/{kind.plural}" + (f"/{name}" if name else "")


async def test_objects_of_every_kind(apiserver: RunningServer) -> None:
    seen = set()
    for manifest in yaml.safe_load_all(FILE.read_text()):
        created = await apiserver.request("POST", path_of(manifest), manifest)
        if created.status != 201 or "name" not in created.body.get("metadata", {}):
            continue
        path = path_of(manifest, created.body["metadata"]["name"])
        status, media, body = await fetch(apiserver, path)
        if status == 404:
            continue
        assert (status, media) == (200, PROTOBUF), path
        in_json = (await apiserver.request("GET", path)).body
        for template in (in_json.get("spec") or {}).get("volumeClaimTemplates") or ():
            del template["apiVersion"], template["kind"]  # messages in messages have none
        assert plain(decode(envelope(body), protobuf_schema())) == plain(in_json), path
        seen.add(manifest["kind"])
    assert len(seen) > 35, sorted(seen)


def items_of(body: bytes) -> list[bytes]:
    """The messages in a list's field 2; what else it holds is not looked at."""
    from steersman.apimachinery.codec import protobuf

    return [
        value for number, value in protobuf._records(envelope(body).raw) if number == 2 and isinstance(value, bytes)
    ]


async def create(apiserver: RunningServer, name: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"a": "b"}},
        "data": {"k": name},
    }
    answer = await apiserver.request("POST", "/api/v1/namespaces/default/configmaps", body)
    assert answer.status == 201


async def test_lists_and_their_metadata(apiserver: RunningServer) -> None:
    for name in ("a", "b"):
        await create(apiserver, name)
    path = "/api/v1/namespaces/default/configmaps?labelSelector=a%3Db"
    _, media, body = await fetch(apiserver, path)
    found = envelope(body)
    assert (media, found.api_version, found.kind) == (PROTOBUF, "v1", "ConfigMapList")
    messages = [decode(type(found)("v1", "ConfigMap", item), protobuf_schema()) for item in items_of(body)]
    assert messages == [
        {"apiVersion": "v1", "kind": "ConfigMap", **item}
        for item in (await apiserver.request("GET", path)).body["items"]
    ]

    partial = f"{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    _, media, body = await fetch(apiserver, path, partial)
    found = envelope(body)
    assert (media, found.api_version, found.kind) == (PROTOBUF, "meta.k8s.io/v1", "PartialObjectMetadataList")
    one = decode(type(found)("meta.k8s.io/v1", "PartialObjectMetadata", items_of(body)[1]), protobuf_schema())
    assert one["metadata"]["name"] == "b"


async def test_watches_are_framed_by_length(apiserver: RunningServer) -> None:
    await create(apiserver, "a")
    events: list[tuple[str, Object]] = []
    path = "/api/v1/namespaces/default/configmaps?watch=1&allowWatchBookmarks=true&labelSelector=a%3Db"
    headers = {"Accept": f"{PROTOBUF};stream=watch"}
    async with asyncio.timeout(10), apiserver.session() as session, session.get(path, headers=headers) as answer:
        assert answer.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
        while len(events) < 3:
            (size,) = struct.unpack(">I", await answer.content.readexactly(4))
            events.append(event(await answer.content.readexactly(size)))
            if len(events) == 2:
                await create(apiserver, "b")
    assert [(kind, obj["metadata"].get("name")) for kind, obj in events] == [
        ("ADDED", "a"),
        ("BOOKMARK", None),
        ("ADDED", "b"),
    ]
    assert events[2][1]["data"] == {"k": "b"}


def event(frame: bytes) -> tuple[str, Object]:
    from steersman.apimachinery.codec.protobuf import _records

    fields = dict(_records(frame))
    kind, raw = fields[1], fields[2]
    assert isinstance(kind, bytes) and isinstance(raw, bytes)
    body = dict(_records(raw))[1]
    assert isinstance(body, bytes)
    return kind.decode(), decode(envelope(body), protobuf_schema())


async def test_errors_and_what_has_no_protobuf(apiserver: RunningServer) -> None:
    status, media, body = await fetch(apiserver, "/api/v1/namespaces/default/configmaps/nope")
    found = decode(envelope(body), protobuf_schema())
    assert (status, media, found["kind"], found["reason"], found["code"]) == (404, PROTOBUF, "Status", "NotFound", 404)

    table = f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,application/json"
    assert (await fetch(apiserver, "/api/v1/namespaces", table))[:2] == (200, "application/json")
    assert (await fetch(apiserver, "/api/v1/namespaces", table.partition(",")[0]))[0] == 406

    path = await apiserver.define()
    assert (await fetch(apiserver, path))[0] == 406
    assert (await fetch(apiserver, path, f"{PROTOBUF},application/json"))[:2] == (200, "application/json")


@pytest.mark.parametrize(("method", "status"), [("POST", 201), ("PUT", 200), ("DELETE", 200)])
async def test_writes_answer_in_protobuf(apiserver: RunningServer, method: str, status: int) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    if method != "POST":
        await create(apiserver, "a")
        path += "/a"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}} if method != "DELETE" else None
    async with (
        apiserver.session() as session,
        session.request(method, path, json=body, headers={"Accept": PROTOBUF}) as answer,
    ):
        assert (answer.status, answer.headers["Content-Type"]) == (status, PROTOBUF)
        found = decode(envelope(await answer.read()), protobuf_schema())
    assert found["kind"] == ("Status" if method == "DELETE" else "ConfigMap")
