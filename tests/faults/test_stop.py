"""SIGTERM: what was begun is finished, what was acknowledged is there afterwards, and streams end as streams should."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from steersman.client.resources import Resource
from steersman.client.transport import ConnectError, TransportError

from ..server_process import ServerProcess

CONFIG_MAP = Resource("v1", "ConfigMap", "configmaps", True)
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def test_acknowledged_writes_are_there_after_a_stop(tmp_path: Path) -> None:
    written: set[str] = set()
    unanswered: set[str] = set()
    async with ServerProcess(tmp_path) as server, server.client(namespace="default") as client:

        async def write(worker: int) -> None:
            for number in range(10_000):
                name = f"w{worker}-{number}"
                meta = {"name": name}
                try:
                    await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
                except ConnectError:
                    return
                except TransportError:
                    unanswered.add(name)
                    return
                written.add(name)
                if len(written) == 300:
                    enough.set()

        enough = asyncio.Event()
        writers = [asyncio.create_task(write(worker)) for worker in range(20)]
        await enough.wait()
        assert await server.terminate(3) == 0
        await asyncio.gather(*writers)
        await server.start()
        found = {obj["metadata"]["name"] for obj in await client.list(CONFIG_MAP, namespace="default").collect()}
        assert await server.terminate(3) == 0
        assert "Traceback" not in server.log
    assert written <= found <= {*written, *unanswered, "kube-root-ca.crt"}


async def test_a_request_on_its_way_is_answered(tmp_path: Path) -> None:
    """Its head is there when the signal comes, its body only afterwards."""
    body = b'{"metadata":{"name":"late"}}'
    head = (
        f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admintoken\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    async with ServerProcess(tmp_path) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=server.ssl)
        writer.write(head.encode() + body[:5])
        await writer.drain()
        async with server.session() as session, session.get("/livez") as answer:  # the server has read on meanwhile
            assert answer.status == 200
        stopping = asyncio.create_task(server.terminate())
        while not await refuses(server.port):  # noqa: ASYNC110 -- another process's listener
            await asyncio.sleep(0.01)
        writer.write(body[5:])
        answered = await reader.read()
        writer.transport.abort()
        assert answered.startswith(b"HTTP/1.1 201 Created") and b"Connection: close" in answered
        assert await stopping == 0
        await server.start()
        async with server.session() as session, session.get(f"{CONFIG_MAPS}/late") as answer:
            assert answer.status == 200


async def refuses(port: int) -> bool:
    try:
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return True
    writer.transport.abort()
    return False


async def test_watches_end_cleanly_and_at_once(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server, server.session() as session:

        async def follow(opened: asyncio.Semaphore) -> bytes:
            """All of a watch until the server closes the connection."""
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=server.ssl)
            request = f"GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admintoken\r\n\r\n"
            writer.write(request.encode())
            await reader.readuntil(b"\r\n\r\n")
            opened.release()
            content = await reader.read()
            writer.transport.abort()
            return content

        opened = asyncio.Semaphore(0)
        watches = [asyncio.create_task(follow(opened)) for _ in range(20)]
        for _ in watches:
            await opened.acquire()
        async with session.post(CONFIG_MAPS, json={"metadata": {"name": "seen"}}) as answer:
            assert answer.status == 201
        started = time.monotonic()
        assert await server.terminate(5) == 0
        assert time.monotonic() - started < 2.0
        for content in await asyncio.gather(*watches):
            assert content.endswith(b"}\n\r\n0\r\n\r\n") and b'"name":"seen"' in content


async def test_a_second_signal_does_not_hurt(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server:
        server.process.terminate()
        server.process.terminate()
        assert await server.terminate() == 0
        assert "Traceback" not in server.log


@pytest.mark.parametrize("path", ["/livez", "/openapi/v2"])
async def test_a_silent_client_does_not_hold_it_up(tmp_path: Path, path: str) -> None:
    """One that is idle, and one that does not read its answer."""
    async with ServerProcess(tmp_path) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=server.ssl)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admintoken\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        started = time.monotonic()
        assert await server.terminate(15) == 0
        assert time.monotonic() - started < 12.0
        writer.transport.abort()
