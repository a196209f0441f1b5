"""Real etcd: its programs, fetched or built once, and members that run for a test."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from .interop.go_programs import run
from .interop.programs import made_once

SOURCE = Path(__file__).parent / "store" / "etcd_server"
NEWEST, DEBIAN = "newest", "debian"
FAST = ("--heartbeat-interval=20", "--election-timeout=200")


def program(version: str = NEWEST) -> Path:
    """etcd as its Go module has it, or Debian's; the test is skipped where it cannot be had. Not in a running loop."""
    if version == DEBIAN:
        return made_once("etcd-debian", b"", _from_debian) / "usr" / "bin" / "etcd"
    return made_once("etcd", (SOURCE / "go.mod").read_bytes(), _from_its_module) / "etcd"


async def _from_its_module(directory: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("no Go to build etcd with")
    code, out = await run("go", "mod", "download", cwd=SOURCE)
    if code:
        pytest.skip(f"etcd's modules cannot be had: {out.strip().splitlines()[-1]}")
    code, out = await run("go", "build", "-ldflags", "-s -w", "-o", str(directory / "etcd"), ".", cwd=SOURCE)
    assert code == 0, out


async def _from_debian(directory: Path) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("no Debian to take etcd from")
    code, out = await run("apt-get", "download", "etcd-server", cwd=directory)
    if code:
        pytest.skip(f"Debian's etcd-server cannot be had: {out.strip().splitlines()[-1]}")
    [package] = directory.glob("etcd-server*.deb")  # noqa: ASYNC240
    code, out = await run("dpkg", "-x", str(package), str(directory), cwd=directory)
    assert code == 0, out


def free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@dataclass
class Member:
    """One member of a cluster: a process that can be killed, stopped and started again on its data."""

    command: list[str]
    port: int
    log: Path
    process: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(*self.command, stdout=log, stderr=log)

    async def until_it_listens(self) -> None:
        async with asyncio.timeout(60):
            while True:
                assert self.process is not None and self.process.returncode is None, self.log.read_text()
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    return
                await asyncio.sleep(0.02)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()


@dataclass
class Etcd:
    """A running cluster."""

    members: list[Member]
    directory: Path
    scheme: str = "http"

    @property
    def url(self) -> str:
        return "etcd://" + ",".join(member.address for member in self.members)


@asynccontextmanager
async def etcd(
    found: Path, directory: Path, *options: str, members: int = 1, tls: Sequence[str] = ()
) -> AsyncIterator[Etcd]:
    """A cluster of the program `found` that listens; `tls` are the options that make it speak TLS to clients."""
    ports = free_ports(2 * members)
    pairs = list(zip(ports[::2], ports[1::2], strict=True))
    initial = ",".join(f"m{number}=http://127.0.0.1:{peer}" for number, (_, peer) in enumerate(pairs))
    scheme = "https" if tls else "http"
    running = []
    for number, (port, peer) in enumerate(pairs):
        command = [
            str(found),
            f"--name=m{number}",
            f"--data-dir={directory / f'etcd-{number}'}",
            f"--listen-client-urls={scheme}://127.0.0.1:{port}",
            f"--advertise-client-urls={scheme}://127.0.0.1:{port}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster={initial}",
            *FAST,
            *tls,
            *options,
        ]
        running.append(Member(command, port, directory / f"etcd-{number}.log"))
    try:
        for member in running:
            await member.start()
        for member in running:
            await member.until_it_listens()
        yield Etcd(running, directory, scheme)
    finally:
        for member in running:
            if member.process is not None and member.process.returncode is None:
                member.signal(signal.SIGCONT)
            await member.kill()
