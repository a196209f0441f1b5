"""A connection that can be cut, between a store and its etcd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from .. import etcd


class Proxy:
    """Passes bytes on. `cut` breaks all connections, and refuses new ones until `mend`; a `deaf` one keeps answers."""

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self._target = target
        self._up = True
        self._hears = asyncio.Event()
        self._hears.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.held = asyncio.Event()
        """Set while an answer is kept."""

    @property
    def url(self) -> str:
        return f"etcd://127.0.0.1:{self.port}"

    def cut(self) -> None:
        self._up = False
        for writer in tuple(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        self._up = True

    def make_deaf(self) -> None:
        self.held.clear()
        self._hears.clear()

    def make_hear(self) -> None:
        self._hears.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._up:
            writer.transport.abort()
            return
        inner, outer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, outer}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, outer))
                group.create_task(self._pass(inner, writer, answers=True))
        finally:
            self._writers -= {writer, outer}
            writer.transport.abort()
            outer.transport.abort()

    async def _pass(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, answers: bool = False) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if answers and not self._hears.is_set():
                    self.held.set()
                    await self._hears.wait()
                to.write(data)
                await to.drain()
        to.transport.abort()


@asynccontextmanager
async def proxy(target: int) -> AsyncIterator[Proxy]:
    [port] = etcd.free_ports(1)
    made = Proxy(port, target)
    server = await asyncio.start_server(made.serve, "127.0.0.1", port)
    try:
        yield made
    finally:
        server.close()
        made.cut()
        made.make_hear()
