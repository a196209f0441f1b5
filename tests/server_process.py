"""`steersman serve` as a process of its own, to be killed, stopped and started again on the same file."""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp

from steersman.client.client import Client
from steersman.client.config import load
from steersman.controlplane.kubeconfig import write_kubeconfig
from steersman.net.tls import client_ssl_context

PREPARING = 30.0
TOKEN = "admintoken"


class ServerProcess:
    """A server on the SQLite file `directory/store.db`, over HTTPS; an async context manager that kills it.

    It keeps its port and the administrator's token over restarts. `log` is what all its runs wrote to stderr.
    """

    def __init__(self, directory: Path, *flags: str, store: str | None = None) -> None:
        self.store = store or f"sqlite:///{directory}/store.db"
        self.kubeconfig = directory / "kubeconfig"
        self.log_file = directory / "stderr.log"
        self.port = 0
        self.flags = flags
        self._certs = directory / "certs"
        self._tokens = directory / "tokens.csv"
        self._tokens.write_text(f"{TOKEN},admin,admin,system:masters\n")
        self._process: asyncio.subprocess.Process | None = None

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def ssl(self) -> ssl.SSLContext:
        return client_ssl_context(self.ca)

    @property
    def ca(self) -> bytes:
        return (self._certs / "ca.crt").read_bytes()

    async def start(self) -> Self:
        """Start it and wait until it serves."""
        with self.log_file.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command("serve", "--store", self.store, "--secure-port", str(self.port)),
                *("--cert-dir", str(self._certs), "--token-auth-file", str(self._tokens), *self.flags),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        async with asyncio.timeout(PREPARING):
            line = (await self.process.stdout.readline()).decode()
        assert line.startswith("serving on https://127.0.0.1:"), self.log
        self.port = int(line.rpartition(":")[2])
        write_kubeconfig(self.kubeconfig, self.url, self.ca, TOKEN)
        return self

    async def kill(self) -> None:
        """End it as a crash would: nothing is finished, nothing is flushed."""
        self.process.kill()
        await self.process.wait()

    async def terminate(self, seconds: float = 10.0) -> int:
        """Ask it to stop; gives its exit status."""
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(seconds):
            return await self.process.wait()

    def client(self, **options: Any) -> Client:
        """A client as administrator; the caller closes it."""
        return Client(load(kubeconfig=self.kubeconfig), **options)

    @asynccontextmanager
    async def session(self, **options: Any) -> AsyncIterator[aiohttp.ClientSession]:
        """Plain HTTP as administrator."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        connector = aiohttp.TCPConnector(ssl=self.ssl, limit=0)
        async with aiohttp.ClientSession(self.url, headers=headers, connector=connector, **options) as session:
            yield session
            await connector.close(abort_ssl=True)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *exc_info: object) -> None:
        if self.process.returncode is None:
            await self.kill()


def command(*arguments: str) -> tuple[str, ...]:
    """The command line of the program under test; a warning of Python is an error in it too."""
    return sys.executable, "-W", "error", "-m", "steersman.cli", *arguments
