"""Clients that vanish, that do not read, and many that watch; streams that resume; a disk that is full."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from steersman.net.stream import ChunkedStream
from steersman.store.sqlite import SQLiteStore

from ..server_process import ServerProcess

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
HEAD = "Host: x\r\nAuthorization: Bearer admintoken\r\nContent-Type: application/json\r\n"


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for what another party brings about without telling."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def config_map(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


async def talk(apiserver: Any, text: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", apiserver.plane.port, ssl=apiserver.ssl)
    writer.write(text.encode())
    await writer.drain()
    return reader, writer


async def test_clients_that_vanish(apiserver: Any, caplog: pytest.LogCaptureFixture) -> None:
    """In the head, in the body, before the answer, and in a watch: nothing is kept of them, nothing is logged."""
    body = json.dumps(config_map("whole"))
    parts = [
        "GET /api",
        f"POST {CONFIG_MAPS} HTTP/1.1\r\n{HEAD}Content-Length: 100\r\n\r\n{{",
        f"POST {CONFIG_MAPS} HTTP/1.1\r\n{HEAD}Content-Length: {len(body)}\r\n\r\n{body}",
        f"GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\n{HEAD}\r\n",
    ]
    for part in parts * 5:
        _reader, writer = await talk(apiserver, part)
        writer.transport.abort()
    net = apiserver.plane.server._http
    await until(lambda: net.connections == 0)
    assert not streams(apiserver)
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
    assert (await apiserver.request("GET", CONFIG_MAPS)).status == 200


async def test_a_watcher_that_does_not_read_is_cut_off(apiserver: Any) -> None:
    """It holds up no writer and no other watcher, and what waits for it is bounded."""
    unread, lazy = await talk(
        apiserver, f"GET {CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Dbig HTTP/1.1\r\n{HEAD}\r\n"
    )
    lazy.transport.pause_reading()
    async with apiserver.session() as session:
        params = {"watch": "1", "resourceVersion": version(apiserver)}
        async with session.get(CONFIG_MAPS, params=params, read_bufsize=2**20) as watch:
            await until(lambda: len(streams(apiserver)) == 2)
            content, versions = {"x": "y" * 900_000}, []
            async with session.post(CONFIG_MAPS, json=config_map("big", data=content)) as answer:
                assert answer.status == 201
            seen = [await watch.content.readuntil(b"\n")]
            assert len(streams(apiserver)) == 2
            for number in range(40):
                patch = json.dumps({"metadata": {"labels": {"n": str(number)}}})
                headers = {"Content-Type": "application/merge-patch+json"}
                async with session.patch(f"{CONFIG_MAPS}/big", data=patch, headers=headers) as answer:
                    assert answer.status == 200
                    versions.append((await answer.json())["metadata"]["resourceVersion"])
                seen.append(await watch.content.readuntil(b"\n"))
                assert all(stream.buffered < 20_000_000 for stream in streams(apiserver))
            assert [json.loads(line)["object"]["metadata"]["resourceVersion"] for line in seen[1:]] == versions
            await until(lambda: len(streams(apiserver)) == 1)
    lazy.transport.abort()
    assert not unread.at_eof()


def streams(apiserver: Any) -> list[ChunkedStream]:
    """The watches that clients have open over the network."""
    channels = [channel for each in apiserver.plane.server.core.hub._channels.values() for channel in each.values()]
    open_streams = [watcher.stream for channel in channels for watcher in channel.watchers]
    return [stream for stream in open_streams if isinstance(stream, ChunkedStream)]


def version(apiserver: Any) -> str:
    return str(apiserver.plane.server.core.cache.revision)


@pytest.mark.slow
async def test_two_hundred_watchers_see_what_they_select(apiserver: Any) -> None:
    count = 200

    start = version(apiserver)

    async def follow(session: aiohttp.ClientSession, number: int, opened: asyncio.Semaphore) -> list[str]:
        params = {"watch": "1", "labelSelector": f"n in ({number},all)", "resourceVersion": start}
        seen: list[str] = []
        async with session.get(CONFIG_MAPS, params=params) as answer:
            opened.release()
            async for line in answer.content:
                event = json.loads(line)
                seen.append(f"{event['type']} {event['object']['metadata']['name']}")
                if seen[-1] == "DELETED all":
                    break
        return seen

    async def write(session: aiohttp.ClientSession, name: str) -> None:
        body = config_map(name)
        body["metadata"]["labels"] = {"n": name}
        async with session.post(CONFIG_MAPS, json=body) as answer:
            assert answer.status == 201

    async with apiserver.session() as session:
        opened = asyncio.Semaphore(0)
        tasks = [asyncio.create_task(follow(session, number, opened)) for number in range(count)]
        for _ in tasks:
            await opened.acquire()
        await asyncio.gather(*(write(session, str(number)) for number in range(count)))
        await write(session, "all")
        async with session.delete(f"{CONFIG_MAPS}/all") as answer:
            assert answer.status == 200
        async with asyncio.timeout(20):
            found = await asyncio.gather(*tasks)
    assert found == [[f"ADDED {number}", "ADDED all", "DELETED all"] for number in range(count)]


async def watched(session: aiohttp.ClientSession, after: str, last: str) -> list[tuple[str, str]]:
    """(type, name) of the events after a version, up to those of the object `last`; or [("ERROR", code)]."""
    seen: list[tuple[str, str]] = []
    async with session.get(CONFIG_MAPS, params={"watch": "1", "resourceVersion": after}) as answer:
        if answer.status != 200:
            return [("ERROR", str(answer.status))]
        async for line in answer.content:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return [("ERROR", str(event["object"]["code"]))]
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            if seen[-1][1] == last:
                break
    return seen


async def test_a_watch_resumes_from_before_a_restart(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server:
        async with server.session() as session:
            async with session.get(CONFIG_MAPS) as answer:
                before = (await answer.json())["metadata"]["resourceVersion"]
            for name in ("a", "b"):
                async with session.post(CONFIG_MAPS, json=config_map(name)) as answer:
                    assert answer.status == 201
            async with session.put(f"{CONFIG_MAPS}/a", json=config_map("a", data={"k": "v"})) as answer:
                assert answer.status == 200
            async with session.delete(f"{CONFIG_MAPS}/b") as answer:
                assert answer.status == 200
        await server.kill()
        await server.start()
        async with server.session() as session, asyncio.timeout(10):
            async with session.post(CONFIG_MAPS, json=config_map("last")) as answer:
                assert answer.status == 201
            seen = await watched(session, before, "last")
    assert [event for event in seen if event[1] != "kube-root-ca.crt"] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
        ("ADDED", "last"),
    ]


async def test_what_was_compacted_is_gone(tmp_path: Path) -> None:
    """A watch from there is told 410, one from what is kept goes on."""
    async with ServerProcess(tmp_path) as server:
        versions = []
        async with server.session() as session:
            for number in range(5):
                async with session.post(CONFIG_MAPS, json=config_map(f"n{number}")) as answer:
                    versions.append((await answer.json())["metadata"]["resourceVersion"])
        assert await server.terminate() == 0
        store = await SQLiteStore.open(tmp_path / "store.db")
        await store.compact(int(versions[3]))
        await store.close()
        await server.start()
        async with server.session() as session, asyncio.timeout(10):
            assert await watched(session, versions[0], "n4") == [("ERROR", "410")]
            assert await watched(session, versions[3], "n4") == [("ADDED", "n4")]


def largest(directory: Path) -> int:
    """The size of the database's largest file."""
    return max(path.stat().st_size for path in directory.glob("store.db*"))


async def test_a_full_disk(tmp_path: Path) -> None:
    """Writes are refused in one line while there is no room, reads go on, and nothing is lost or left half done."""
    async with ServerProcess(tmp_path) as server, server.session() as session:
        async with session.post(CONFIG_MAPS, json=config_map("before")) as answer:
            assert answer.status == 201
        room, pid = largest(tmp_path), server.process.pid
        hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (room, hard))
        refused = 0
        for number in range(40):
            async with session.post(CONFIG_MAPS, json=config_map(f"n{number}", data={"x": "y" * 50_000})) as answer:
                status = await answer.json()
                if answer.status == 201:
                    continue
                refused += 1
                assert answer.status == 503 and status["kind"] == "Status" and "\n" not in status["message"]
        assert refused
        async with session.get(f"{CONFIG_MAPS}/before") as answer:
            assert answer.status == 200
        async with session.get(CONFIG_MAPS) as answer:
            held = {item["metadata"]["name"] for item in (await answer.json())["items"]}
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        async with session.post(CONFIG_MAPS, json=config_map("after")) as answer:
            assert answer.status == 201
        assert await server.terminate() == 0
        await server.start()
        async with server.session() as fresh, fresh.get(CONFIG_MAPS) as answer:
            assert {item["metadata"]["name"] for item in (await answer.json())["items"]} == {*held, "after"}
        assert "Traceback" not in server.log
