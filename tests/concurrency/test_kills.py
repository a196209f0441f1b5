"""What clients were told while the server was killed again and again is what one atomic register a key would tell."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from faults.linearizability import Outcome, linearize

from steersman.client.client import Client

from ..server_process import ServerProcess
from .history import CONFIG_MAP, LABEL, Follower, History, Worker, check_real_time, check_snapshots, check_stream

CLIENTS = 10
KEYS = ("a", "b", "c", "d")
KILLS = 5
LAST = "last"


async def work(server: ServerProcess, client: Client, history: History) -> None:
    """Let the clients work while the server is killed and restarted."""
    online = asyncio.Event()
    online.set()
    workers = [Worker(f"w{number}", client, KEYS, history, online) for number in range(CLIENTS)]
    tasks = [asyncio.create_task(worker.run()) for worker in workers]
    for _ in range(KILLS):
        await until(history, random.randint(100, 500), tasks)
        await server.kill()
        online.clear()
        await server.start()
        online.set()
    await until(history, 200, tasks)
    history.over = True
    await asyncio.gather(*tasks)


async def until(history: History, more: int, tasks: list[asyncio.Task[None]]) -> None:
    """Wait for more operations; a client that failed ends the test."""
    wanted = len(history.operations) + more
    while len(history.operations) < wanted:
        done, _ = await asyncio.wait(tasks, timeout=0.002, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


@pytest.mark.slow
async def test_histories_are_linearizable(tmp_path: Path) -> None:
    history = History()
    async with ServerProcess(tmp_path) as server:
        async with server.client(namespace="default") as client:
            marks = client.list(CONFIG_MAP, namespace="default", label_selector=LABEL)
            await marks.collect()
            follower = Follower(client)
            following = asyncio.create_task(follower.run(marks.resource_version, LAST))
            await work(server, client, history)
            meta = {"name": LAST, "namespace": "default", "labels": {LABEL: "yes"}}
            await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
            async with asyncio.timeout(10):
                await following
        assert await server.terminate() == 0
        assert "Traceback" not in server.log
    outcomes = Counter(operation.outcome for operation in history.operations)
    assert all(outcomes[outcome] for outcome in Outcome), outcomes
    for key in KEYS:
        assert linearize(history.of(key)) is not None, history.of(key)
    check_real_time(history)
    check_stream(follower.events, history)
    check_snapshots(follower.events, history.snapshots)
    assert history.snapshots and follower.failures
