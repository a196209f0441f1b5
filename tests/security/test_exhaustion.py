"""Clients and webhooks that want all of the server's memory, connections or time."""

from __future__ import annotations

import asyncio
import base64
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.conftest import RunningServer, running
from tests.server_process import ServerProcess

from steersman.net.pki import ServerFiles, create_ca, create_server_certificate
from steersman.net.tls import server_ssl_context

IDLE = 10_000
HALF = 500
GIGABYTE = 1 << 30
MEGABYTE = 1 << 20


def resident(pid: int) -> int:
    """The megabytes of memory that a process has."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    raise AssertionError(pid)


@contextmanager
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = IDLE + 1000
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"only {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
async def test_ten_thousand_idle_connections(tmp_path: Path) -> None:
    with many_files(), ExitStack() as open_sockets:
        async with ServerProcess(tmp_path) as server:
            before = resident(server.process.pid)
            for number in range(IDLE):
                connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
                open_sockets.callback(connection.close)
                if number % 200 == 0:
                    await asyncio.sleep(0)
            async with server.session() as session, session.get("/api/v1/namespaces/default", timeout=10) as answer:
                assert answer.status == 200
            assert resident(server.process.pid) - before < 700


async def test_half_a_request_holds_up_nobody(apiserver: RunningServer) -> None:
    half = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: "
    writers = []
    try:
        for _ in range(HALF):
            _, writer = await asyncio.open_connection("127.0.0.1", apiserver.plane.port, ssl=apiserver.ssl)
            writer.write(half)
            writers.append(writer)
        for writer in writers:
            writer.write(b"a")
        answer = await apiserver.request("GET", "/api/v1/namespaces/default")
        assert answer.status == 200
    finally:
        for writer in writers:
            writer.transport.abort()


async def without_end(request: web.Request) -> web.StreamResponse:
    """A gigabyte of answer."""
    await request.read()
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    await answer.prepare(request)
    part = b" " * MEGABYTE
    try:
        for _ in range(GIGABYTE // MEGABYTE):
            await answer.write(part)
    except ConnectionError:
        pass
    return answer


@pytest.fixture
async def endless() -> AsyncIterator[dict[str, Any]]:
    """The client configuration of a webhook that answers a gigabyte."""
    ca = create_ca("endless")
    pair = create_server_certificate(ca, ["127.0.0.1"])
    app = web.Application()
    app.router.add_post("/", without_end)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_ssl_context(pair.cert, pair.key))
    await site.start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}/"
    yield {"url": url, "caBundle": base64.b64encode(ca.cert).decode()}
    await runner.cleanup()


@pytest.mark.slow
async def test_a_webhook_that_answers_a_gigabyte(
    certificates: ServerFiles, tmp_path: Path, endless: dict[str, Any]
) -> None:
    async with running(certificates, tmp_path) as server:
        hook = {
            "name": "endless.example.com",
            "clientConfig": endless,
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
            ],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
        }
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        made = await server.request("POST", path, {"metadata": {"name": "endless"}, "webhooks": [hook]})
        assert made.status == 201, made.body
        before = peak()
        maps = "/api/v1/namespaces/default/configmaps"
        asked = asyncio.create_task(server.request("POST", maps, {"metadata": {"name": "a"}}))
        while not asked.done():
            async with asyncio.timeout(5):
                assert (await server.request("GET", maps)).status == 200
        answer = await asked
        assert answer.status == 500
        assert 'failed calling webhook "endless.example.com"' in answer.body["message"]
        assert peak() - before < 200


def peak() -> int:
    """The most megabytes that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
