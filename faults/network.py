"""The network between all parties, in user space: every connection goes through a relay that can cut it off, hold back
what is sent, or be late. It needs no rights, and works the same everywhere.

What was held back arrives later, as TCP would send it again. Members of etcd find each other through SOCKS: so it is
known who calls, and both directions between any two have a rule of their own.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

_SIZE = 2**16


@dataclass(slots=True)
class Rule:
    """What happens to bytes from one party to another: `delay` in seconds; without `flowing` they wait."""

    delay: float = 0.0
    cut: bool = False
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    connections: set[asyncio.StreamWriter] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.flowing.set()


class Network:
    """Relays on loopback; an async context manager that closes them."""

    def __init__(self) -> None:
        self.rules: defaultdict[tuple[str, str], Rule] = defaultdict(Rule)
        self._servers: list[asyncio.Server] = []
        self._relays: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Network:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for server in self._servers:
            server.close()
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    async def relay(self, source: str, target: str, port: int) -> int:
        """A port on loopback at which `source` reaches what `target` listens on."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._accepted(source, target, port, reader, writer)

        return await self._listen(accept)

    async def socks(self, source: str, targets: Mapping[str, tuple[str, int]]) -> int:
        """A port of a SOCKS 5 proxy (RFC 1928) for `source`: `targets` says who stands behind an IPv4 address, and on
        which port of loopback it listens."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                methods = (await reader.readexactly(2))[1]
                await reader.readexactly(methods)
                writer.write(b"\5\0")
                head = await reader.readexactly(10)
                target, port = targets[".".join(map(str, head[4:8]))]
                writer.write(b"\5\0\0\1\0\0\0\0\0\0")
            except (OSError, asyncio.IncompleteReadError, KeyError):
                writer.transport.abort()
                return
            await self._accepted(source, target, port, reader, writer)

        return await self._listen(accept)

    def cut(self, one: str, other: str) -> None:
        """End all connections between two, and refuse new ones."""
        for rule in self._between(one, other):
            rule.cut = True
            for writer in list(rule.connections):
                writer.transport.abort()

    def hold(self, source: str, target: str) -> None:
        """Hold back what `source` sends to `target`."""
        self.rules[source, target].flowing.clear()

    def delay(self, one: str, other: str, seconds: float) -> None:
        """Let everything between two take longer."""
        for rule in self._between(one, other):
            rule.delay = seconds

    def heal(self, one: str, other: str) -> None:
        """All is well again between two."""
        for rule in self._between(one, other):
            rule.delay, rule.cut = 0.0, False
            rule.flowing.set()

    def _between(self, one: str, other: str) -> tuple[Rule, Rule]:
        return self.rules[one, other], self.rules[other, one]

    async def _listen(self, accept: object) -> int:
        server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=_SIZE)  # type: ignore[arg-type]
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _accepted(
        self, source: str, target: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._relays.add(task)
        try:
            await self._carry(source, target, port, reader, writer)
        except asyncio.CancelledError:
            pass  # the network is closed
        finally:
            self._relays.discard(task)
            writer.close()

    async def _carry(
        self, source: str, target: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        there, back = self._between(source, target)
        if there.cut:
            return
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port, limit=_SIZE)
            there.connections.add(writer)
            try:
                pumps = [_pump(reader, far_writer, there), _pump(far_reader, writer, back)]
                tasks = [asyncio.create_task(pump) for pump in pumps]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in tasks:
                    each.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                there.connections.discard(writer)
                far_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rule: Rule) -> None:
    """Carry bytes in one direction until one end is closed; then what has arrived is on its way."""
    with suppress(OSError):
        while data := await reader.read(_SIZE):
            if rule.delay:
                await asyncio.sleep(rule.delay)
            await rule.flowing.wait()
            writer.write(data)
            await writer.drain()
    await rule.flowing.wait()
    with suppress(OSError, RuntimeError):
        writer.write_eof()
        await writer.drain()
