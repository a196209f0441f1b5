"""A server whose database fills up, as its clients and whoever watches over it see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from ..server_process import ServerProcess

PATH = "/api/v1/namespaces/default/configmaps"
QUOTA = 3 << 20


async def scraped(session: aiohttp.ClientSession) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    async with session.get("/metrics") as answer:
        families = text_string_to_metric_families(await answer.text())
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


async def create(session: aiohttp.ClientSession, name: str) -> tuple[int, dict[str, Any]]:
    async with session.post(PATH, json={"metadata": {"name": name}, "data": {"x": "y" * 100_000}}) as answer:
        body: dict[str, Any] = await answer.json()
        return answer.status, body


async def test_a_full_store_refuses_writes_and_says_so(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path, "--quota-backend-bytes", str(QUOTA)) as server, server.session() as session:
        empty = await scraped(session)
        number, status, body = 0, 201, dict[str, Any]()
        while status == 201:
            number += 1
            status, body = await create(session, f"c{number}")
        assert number > 10
        assert (status, body["code"], body["status"], body.get("reason")) == (500, 500, "Failure", None)
        assert body["message"] == (
            "the store is full: it may hold 3.0 MB (--quota-backend-bytes); delete what is not needed, or allow more"
        )
        async with session.get("/readyz") as answer:
            assert answer.status == 200
        full = await scraped(session)
        assert full["apiserver_storage_size_bytes", frozenset({("storage_cluster_id", "sqlite-0")})] >= QUOTA
        plain = {name: value for (name, labels), value in full.items() if not labels}
        assert plain["steersman_store_used_bytes"] >= QUOTA == plain["steersman_store_quota_bytes"]
        assert plain["steersman_store_revision"] >= plain["steersman_store_compacted_revision"] > 0
        assert plain["steersman_store_disk_left_bytes"] > 0 < plain["steersman_store_log_bytes"]
        keys = "steersman_store_keys", frozenset[tuple[str, str]]()
        assert full[keys] - empty[keys] >= number - 1
        labels = frozenset({("operation", "create"), ("group", ""), ("resource", "configmaps")})
        before = empty.get(("etcd_requests_total", labels), 0)
        assert full["etcd_requests_total", labels] - before >= number
        assert full["etcd_request_errors_total", labels] >= 1
        assert full["etcd_request_duration_seconds_count", labels] == full["etcd_requests_total", labels]
        for gone in range(1, number):
            async with session.delete(f"{PATH}/c{gone}") as answer:
                assert answer.status == 200
        status, _ = await create(session, "again")
        while status == 500:  # until what was deleted is removed
            status, _ = await create(session, "again")
        assert status == 201
        assert "is full" in server.log and "takes writes again" in server.log
