"""Where events go: files that are rotated, batches, webhooks, and what is cut."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web

from steersman.apiserver.audit.backends import BatchConfig, Batched, Direct, Truncation
from steersman.apiserver.audit.files import AuditFile, Rotation, tidy
from steersman.apiserver.audit.webhook import AuditWebhook
from steersman.apiserver.webhooks.kubeconfig import RemoteService
from steersman.net.calls import Trust
from steersman.net.pki import create_ca, create_server_certificate
from steersman.net.tls import server_ssl_context


class Sink:
    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.arrived = asyncio.Event()

    def send(self, events: Sequence[bytes]) -> bool:
        self.batches.append(list(events))
        self.arrived.set()
        return True

    async def close(self) -> None:
        """Nothing is held."""


async def test_a_full_file_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "new" / "audit.log"
    file = AuditFile(path, Rotation(megabytes=1, days=0, backups=1, compress=True))
    line = b"x" * 400_000
    for _ in range(8):
        assert file.send([line])
    await file.close()
    tidy(path, Rotation(megabytes=1, days=0, backups=1, compress=True), datetime.now(UTC))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.read_bytes() == (line + b"\n") * 2
    (old,) = [file for file in path.parent.iterdir() if file != path]
    assert old.name.startswith("audit-")
    assert old.name.endswith(".log.gz")
    assert gzip.decompress(old.read_bytes()) == (line + b"\n") * 2
    assert old.stat().st_mode & 0o777 == 0o600


def test_old_files_go_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    now = datetime(2026, 1, 10, tzinfo=UTC)
    for days in (1, 3, 9):
        at = now - timedelta(days=days)
        (tmp_path / f"audit-{at:%Y-%m-%dT%H-%M-%S}.000.log").write_text("x")
    (tmp_path / "audit-other.log").write_text("x")
    tidy(path, Rotation(days=5, backups=0), now)
    assert {file.name for file in tmp_path.iterdir()} == {
        "audit-2026-01-09T00-00-00.000.log",
        "audit-2026-01-07T00-00-00.000.log",
        "audit-other.log",
    }


async def test_batches_are_full_or_have_waited() -> None:
    sink = Sink()
    backend = Batched(sink, BatchConfig(buffer=100, size=3, wait=0.05, rate=0))
    for number in range(4):
        await backend.process(b"%d" % number, first=True)
    async with asyncio.timeout(5):
        while sum(map(len, sink.batches)) < 4:
            sink.arrived.clear()
            await sink.arrived.wait()
    assert sink.batches == [[b"0", b"1", b"2"], [b"3"]]
    await backend.process(b"4", first=True)
    await backend.close()
    assert sink.batches[2:] == [[b"4"]]


async def test_more_than_the_buffer_holds_is_lost() -> None:
    sink = Sink()
    backend = Batched(sink, BatchConfig(buffer=2, size=10, wait=60, rate=0))
    for number in range(5):
        assert await backend.process(b"%d" % number, first=True)
    await backend.close()
    assert sink.batches == [[b"0", b"1"]]


async def test_large_events_lose_their_objects_and_batches_are_split() -> None:
    sink = Sink()
    large = json.dumps({"level": "Request", "requestObject": "x" * 500, "responseObject": {}}).encode()
    backend = Direct(sink, strict=False, truncation=Truncation(event=200))
    await backend.process(large, first=True)
    await backend.process(json.dumps({"verb": "x" * 300}).encode(), first=True)
    assert [json.loads(event) for batch in sink.batches for event in batch] == [
        {"level": "Request", "annotations": {"audit.k8s.io/truncated": "true"}}
    ]
    assert Truncation(event=10, batch=10).split([b"12345", b"12345", b"1"]) == [[b"12345", b"12345"], [b"1"]]


async def test_a_webhook_is_asked_again_until_it_takes_them() -> None:
    ca = create_ca("audit")
    pair = create_server_certificate(ca, ["127.0.0.1"])
    taken = []

    async def take(request: web.Request) -> web.Response:
        taken.append((request.headers["Authorization"], await request.json()))
        return web.Response(status=500 if len(taken) < 3 else 200)

    app = web.Application()
    app.router.add_post("/audit", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_ssl_context(pair.cert, pair.key))
    await site.start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}/audit"
    webhook = AuditWebhook(RemoteService(url, Trust(ca.cert), token="secret"), backoff=0.01)
    try:
        assert await webhook.deliver([b'{"a":1}', b'{"b":2}'])
    finally:
        await webhook.close()
        await runner.cleanup()
    wanted = {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": [{"a": 1}, {"b": 2}]}
    assert taken == [("Bearer secret", wanted)] * 3
