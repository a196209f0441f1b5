"""The programs of a campaign as processes: started, killed, stopped, started again on what they had written."""

from __future__ import annotations

import asyncio
import mmap
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

PATIENCE = 300.0
"""Seconds that anything may take before it counts as not happening at all; a slow machine needs far less."""


@dataclass
class Process:
    """A program whose errors go to `log`."""

    name: str
    argv: list[str]
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    starts: int = 0
    _process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    async def start(self) -> None:
        self.starts += 1
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.argv, env={**os.environ, **self.env}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def kill(self) -> None:
        """End it as a crash would: nothing is finished, nothing is flushed."""
        if self.running:
            self.signal(signal.SIGKILL)
            await self.process.wait()

    async def terminate(self) -> None:
        """Ask it to stop, and wait for it."""
        if self.running:
            self.signal(signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self.process.wait()
            await self.kill()

    async def revive(self) -> None:
        """See to it that it runs."""
        if not self.running:
            await self.start()


class Serving:
    """Which servers have said that they are ready, and were not killed since. Where there is none, clients wait: what
    nobody listens to teaches nothing, and takes time from those who start."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._some = asyncio.Event()

    def change(self, name: str, *, ready: bool) -> None:
        (self._names.add if ready else self._names.discard)(name)
        (self._some.set if self._names else self._some.clear)()

    async def wait(self) -> None:
        """Until there is one."""
        await self._some.wait()


@dataclass
class Server(Process):
    """`steersman serve` on a port of its own."""

    host: str = "127.0.0.1"
    port: int = 0
    knobs: Knobs | None = None
    serving: Serving = field(default_factory=Serving)

    async def kill(self) -> None:
        self.serving.change(self.name, ready=False)
        await super().kill()

    async def answers(self, path: str = "/readyz") -> bool:
        """Whether it is ready to serve; asked past the network of the campaign."""
        timeout = aiohttp.ClientTimeout(total=5)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            try:
                async with session.get(f"https://{self.host}:{self.port}{path}", ssl=False) as answer:
                    return answer.status == 200
            except (aiohttp.ClientError, TimeoutError):
                return False

    async def until_ready(self) -> None:
        """Wait until it serves; it is started again when it has ended. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while not await self.answers():
                if not self.running:
                    self.serving.change(self.name, ready=False)
                await self.revive()
                await asyncio.sleep(0.05)
        self.serving.change(self.name, ready=True)

    def limit_files(self, size: int | None) -> None:
        """Let no file grow beyond so many bytes: what a full disk is to a process."""
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


@dataclass
class EtcdMember(Process):
    """A member of etcd; `address` is that of its peers' port as the other members know it."""

    host: str = "127.0.0.1"
    port: int = 0
    address: str = ""
    data: Path = field(default_factory=Path)

    async def ask(self, path: str, body: Mapping[str, Any], seconds: float = 5.0) -> dict[str, Any]:
        """One call of etcd's API, as JSON. Raises RuntimeError, which says what was answered, or aiohttp's errors."""
        timeout = aiohttp.ClientTimeout(total=seconds)
        url = f"http://{self.host}:{self.port}/v3/{path}"
        async with aiohttp.ClientSession(timeout=timeout) as session, session.post(url, json=body) as answer:
            content: dict[str, Any] = await answer.json(content_type=None)
            if answer.status != 200:
                raise RuntimeError(f"{self.name} answers {answer.status}: {content}")
            return content

    async def answers(self) -> bool:
        """Whether it can read what the whole cluster has agreed on."""
        with suppress(aiohttp.ClientError, TimeoutError, RuntimeError):
            await self.ask("kv/range", {"key": "AA=="})
            return True
        return False

    async def until_ready(self) -> None:
        """See `Server.until_ready`."""
        async with asyncio.timeout(PATIENCE):
            while not await self.answers():
                await self.revive()
                await asyncio.sleep(0.05)


class Knobs:
    """What `shim.c`, preloaded into a process, does to its clock and its disk."""

    _FORM = struct.Struct("=qq")

    def __init__(self, library: Path, file: Path) -> None:
        file.write_bytes(bytes(self._FORM.size))
        with file.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), self._FORM.size)
        self.env = {"LD_PRELOAD": str(library), "FAULTS_KNOBS": str(file)}

    def turn(self, *, clock: float = 0.0, fsync: float = 0.0) -> None:
        """Seconds that the wall clock is ahead, and that an fsync takes longer."""
        self._memory[:] = self._FORM.pack(int(clock * 1e9), int(fsync * 1e6))


def compiled_shim(directory: Path) -> Path | None:
    """The library of `shim.c`, or None where it cannot be compiled."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = directory / "shim.so"
    source = Path(__file__).with_name("shim.c")
    done = subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", "-o", library, source], capture_output=True, check=False
    )
    return None if done.returncode else library
