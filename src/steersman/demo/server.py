"""The server of the demonstration: `steersman serve` as a process of its own, as anyone would run it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from pathlib import Path
from typing import Any, Self

READY_WITHIN = 30.0
STOP_WITHIN = 15.0
_PREFIX = "serving on "


class DemoError(Exception):
    """The demonstration cannot go on; the message says why in one line."""


class DemoServer:
    """`steersman serve` on a free port, its files in one directory. `await DemoServer.start(...)`, then `ready()`."""

    def __init__(self, process: asyncio.subprocess.Process, directory: Path) -> None:
        self._process = process
        self._log = directory / "server.log"
        self._began = time.monotonic()
        self.kubeconfig = directory / "kubeconfig"
        self.url = ""
        self.started_in = 0.0
        """Seconds from the start of the process to the line that says it serves."""

    @classmethod
    async def start(cls, directory: Path, database: str) -> Self:
        """Start the process; it is not ready yet."""
        command = [sys.executable, "-m", "steersman", "serve", "--secure-port", "0"]
        # A path in a store's URL is percent-encoded.
        path = str(directory / database).replace("%", "%25").replace("?", "%3F").replace("#", "%23")
        command += ["--store", f"sqlite:///{path}", "--kubeconfig", str(directory / "kubeconfig")]
        with (directory / "server.log").open("wb") as log:
            # In a session of its own: Ctrl-C is for the demonstration, which then stops the server in order.
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        return cls(process, directory)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ready(self) -> None:
        """Return when it serves. Raises DemoError when it ends instead, or takes more than 30 seconds."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(READY_WITHIN):
                line = (await self._process.stdout.readline()).decode()
        except TimeoutError:
            raise DemoError(f"the server was not ready within {READY_WITHIN:.0f} s{self._last_words()}") from None
        if not line.startswith(_PREFIX):
            raise DemoError(f"the server did not start{self._last_words()}")
        self.url = line.removeprefix(_PREFIX).strip()
        self.started_in = time.monotonic() - self._began

    async def ended_or(self, other: asyncio.Future[Any]) -> None:
        """Return when `other` is done. Raises DemoError when the server ends before that."""
        ended = asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait([ended, other], return_when=asyncio.FIRST_COMPLETED)
            if not other.done():
                raise DemoError(f"the server ended by itself{self._last_words()}")
        finally:
            ended.cancel()

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL if that does not end it within 15 seconds."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(STOP_WITHIN):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""
