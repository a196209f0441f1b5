"""The demonstration as its users run it: a program that starts a server, lets writers race, and counts."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steersman.client.client import Client
from steersman.client.config import load
from steersman.client.modify import ConflictReport
from steersman.client.resources import Resource
from steersman.client.sync import SyncClient
from steersman.demo import race
from steersman.demo.screen import Screen
from steersman.demo.server import DemoError, DemoServer

MY_APP = Resource("myorg.io/v1", "MyApp")


@asynccontextmanager
async def demo(*options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "steersman",
        "demo",
        *options,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            await process.wait()


async def line_with(process: asyncio.subprocess.Process, text: str) -> str:
    """The next line on stdout that has `text` in it."""
    assert process.stdout is not None
    async for line in process.stdout:
        if text in line.decode():
            return line.decode()
    raise AssertionError("the demonstration ended early")


async def test_shows_conflicts_and_that_nothing_is_lost(tmp_path: Path) -> None:
    async with demo("--writers", "4", "--increments", "10", "--directory", str(tmp_path)) as process:
        out, err = (stream.decode() for stream in await process.communicate())
    assert (process.returncode, err) == (0, "")
    assert "  40 = 40: no update was lost\n" in out
    conflicts = re.findall(
        r"^  409 (writer-\d) lost to .*: \.spec\.counter \d+ -> \d+; it reads again, try \d+$", out, re.M
    )
    assert conflicts, "writers that race without a pause meet"
    total = re.search(r"^  all +(\d+) +(\d+) +(\d+) +(\d+)$", out, re.M)
    assert total and [int(number) for number in total.groups()[:3]] == [40, len(conflicts), len(conflicts)]
    for number in range(1, 5):
        assert re.search(rf"^  writer-{number} +10 +{conflicts.count(f'writer-{number}')} ", out, re.M)
    assert "\033" not in out
    assert f"serve --store sqlite:///{tmp_path}/demo.db --kubeconfig {tmp_path}/kubeconfig" in out


async def test_a_directory_serves_once(tmp_path: Path) -> None:
    (tmp_path / "demo.db").touch()
    async with demo("--directory", str(tmp_path)) as process:
        out, err = (stream.decode() for stream in await process.communicate())
    assert (process.returncode, out) == (1, "")
    assert err == f"steersman demo: {tmp_path}/demo.db is there already: name another directory\n"


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5"])
async def test_refuses_numbers_that_make_no_race(number: str) -> None:
    async with demo(f"--writers={number}") as process:
        _, err = await process.communicate()
    assert process.returncode == 1
    assert f"--writers: {number!r} is no whole number above 0" in err.decode()


async def test_keep_leaves_the_server_up_until_interrupted() -> None:
    async with demo("--writers", "2", "--increments", "3", "--keep") as process:
        line = await line_with(process, "export KUBECONFIG=")
        kubeconfig = Path(line.strip().removeprefix("export KUBECONFIG="))
        assert os.stat(kubeconfig).st_mode & 0o077 == 0
        async with Client(load(kubeconfig=kubeconfig)) as client:
            app = await client.get(MY_APP, "example-myapp", namespace="default")
        assert app["spec"]["counter"] == 6
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert b"kubectl get myapps" in out
    assert not kubeconfig.parent.exists(), "a temporary directory is removed"


async def test_its_server_ends_with_it() -> None:
    async with demo("--increments", "1000000") as process:
        port = re.search(r"https://127\.0\.0\.1:(\d+)", await line_with(process, "  server"))
        assert port is not None
        await line_with(process, " 409 ")
        process.terminate()
        await process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", int(port[1]))


class Saboteur(Screen):
    """Sets the counter without asking which version it is, as soon as there is one."""

    def __init__(self, stream: io.StringIO, kubeconfig: Path) -> None:
        super().__init__(stream)
        self._kubeconfig = kubeconfig

    def conflict(self, loser: str, report: ConflictReport) -> None:
        """What a race shows is not looked at here."""

    def fact(self, name: str, text: str) -> None:
        if name == "object":
            with SyncClient(load(kubeconfig=self._kubeconfig)) as client:
                client.patch(MY_APP, "example-myapp", {"spec": {"counter": 7}}, namespace="default")


async def test_a_wrong_count_is_told(tmp_path: Path) -> None:
    out = io.StringIO()
    async with await DemoServer.start(tmp_path, "demo.db") as server:
        await server.ready()
        screen = Saboteur(out, server.kubeconfig)
        result = await race.run(server.kubeconfig, 2, 5, screen)
    screen.verdict(result)
    assert not result.complete
    assert "10 ≠ 17: UPDATES WERE LOST" in out.getvalue()


async def test_a_server_that_does_not_start_is_told_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "demo.db").write_text("this is no database, but long enough to be taken for one" * 20)
    async with await DemoServer.start(tmp_path, "demo.db") as server:
        with pytest.raises(DemoError, match=r"the server did not start: .*demo\.db"):
            await server.ready()


async def test_a_server_that_dies_ends_the_wait(tmp_path: Path) -> None:
    async with await DemoServer.start(tmp_path, "demo.db") as server:
        await server.ready()
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(server.ended_or(never))
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(DemoError, match="ended by itself"):
            await waiting
