"""client-go's leader election, in a process written in Go, and ours compete for one Lease of this server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steersman import LeaderElector, Leadership, LeaseLock

from ..conftest import RunningServer
from .go_programs import build


@pytest.fixture
async def contender(tmp_path: Path) -> Path:
    """The program, built."""
    return await build("build", "./contender", into=tmp_path / "contender")


class Gopher:
    """The process in Go, and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[str] = []

    async def until(self, line: str) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(20):
            while line not in self.said:
                said = await self.process.stdout.readline()
                assert said, f"it has ended, and said only {self.said}"
                self.said.append(said.decode().strip())
        self.said.clear()


@asynccontextmanager
async def running(program: Path, kubeconfig: Path, identity: str) -> AsyncIterator[Gopher]:
    process = await asyncio.create_subprocess_exec(
        *(str(program), identity, "default", "lock"),
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield Gopher(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.timeout(900)
async def test_one_lease_for_both(contender: Path, apiserver: RunningServer) -> None:
    """Ours leads, then Go's, which is killed; ours, whose lease is left to run out; then Go's, which gives it up."""
    now = asyncio.get_running_loop().time
    seen: list[str] = []
    async with asyncio.timeout(90), await apiserver.client() as client:

        def elector(identity: str, release: bool) -> LeaderElector:
            return LeaderElector(
                client,
                LeaseLock("default", "lock"),
                identity=identity,
                lease_duration=2,
                renew_deadline=1.5,
                retry_period=0.2,
                release_on_cancel=release,
                exit_on_overrun=False,
                on_new_leader=seen.append,
            )

        begun, over = asyncio.Event(), asyncio.Event()

        async def until_over(leadership: Leadership) -> int:
            begun.set()
            await over.wait()
            leadership.check()
            return leadership.fencing_token

        one = asyncio.create_task(elector("python-1", True).run(until_over))
        await begun.wait()
        async with running(contender, apiserver.kubeconfig, "gopher") as gopher:
            await gopher.until("sees python-1")
            await asyncio.sleep(2.5)
            over.set()
            first = await one
            await gopher.until("begin")
            second = asyncio.create_task(elector("python-2", False).run(token_of))
            await asyncio.sleep(2.5)
            assert not second.done()
            assert seen == ["python-1", "gopher"]
            gopher.process.kill()
            killed = now()
            assert await second == first + 2
            assert now() - killed > 1.5

        left = now()
        async with running(contender, apiserver.kubeconfig, "gopher-2") as gopher:
            await gopher.until("begin")
            assert now() - left > 1.5, "the lease that ours has left had to run out"
            third = asyncio.create_task(elector("python-3", True).run(token_of))
            await asyncio.sleep(0.5)
            gopher.process.terminate()
            terminated = now()
            assert await third == first + 4
            assert now() - terminated < 1.5, "what Go's gives up is taken at once"
            await gopher.until("end")


async def token_of(leadership: Leadership) -> int:
    return leadership.fencing_token
