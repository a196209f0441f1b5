"""The network in user space: every connection goes through a relay that can end it, hold back what is sent, or be late.

What was held back arrives later, as TCP would send it again. Members of etcd find each other through SOCKS: so it is
known who calls, and both directions between any two have a rule of their own.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from faults.network import Place

_SIZE = 2**16
_HOST = "127.0.0.1"
_PEERS = "198.18.0."
"""Addresses of members, which nothing has to be at: Go's programs do not use a proxy for those of loopback."""

Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Rule:
    """What happens to bytes from one party to another: `delay` in seconds; without `flowing` they wait."""

    delay: float = 0.0
    cut: bool = False
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    connections: set[asyncio.StreamWriter] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.flowing.set()


class Relays:
    """See `Network`."""

    delays = True

    def __init__(self) -> None:
        self._rules: defaultdict[tuple[str, str], Rule] = defaultdict(Rule)
        self._peers: dict[str, tuple[str, int]] = {}
        self._servers: list[asyncio.Server] = []
        self._relays: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for server in self._servers:
            server.close()
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    async def place(self, party: str, peer_port: int = 0) -> Place:
        if not peer_port:
            return Place(_HOST, _HOST)
        name = f"{_PEERS}{len(self._peers) + 1}"
        self._peers[name] = party, peer_port
        proxy = await self._listen(self._socks(party))
        return Place(_HOST, name, env={"HTTP_PROXY": f"socks5://{_HOST}:{proxy}"})

    async def way(self, source: str, target: str, port: int) -> str:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._accepted(source, target, port, reader, writer)

        return f"{_HOST}:{await self._listen(accept)}"

    def cut(self, one: str, other: str) -> None:
        for rule in self._between(one, other):
            rule.cut = True
            for writer in list(rule.connections):
                writer.transport.abort()

    def hold(self, source: str, target: str) -> None:
        self._rules[source, target].flowing.clear()

    def delay(self, one: str, other: str, seconds: float) -> None:
        for rule in self._between(one, other):
            rule.delay = seconds

    def heal(self, one: str, other: str) -> None:
        for rule in self._between(one, other):
            rule.delay, rule.cut = 0.0, False
            rule.flowing.set()

    def _between(self, one: str, other: str) -> tuple[Rule, Rule]:
        return self._rules[one, other], self._rules[other, one]

    def _socks(self, source: str) -> Accept:
        """A SOCKS 5 proxy (RFC 1928) for one member."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                methods = (await reader.readexactly(2))[1]
                await reader.readexactly(methods)
                writer.write(b"\5\0")
                head = await reader.readexactly(10)
                target, port = self._peers[".".join(map(str, head[4:8]))]
                writer.write(b"\5\0\0\1\0\0\0\0\0\0")
            except (OSError, asyncio.IncompleteReadError, KeyError):
                writer.transport.abort()
                return
            await self._accepted(source, target, port, reader, writer)

        return accept

    async def _listen(self, accept: Accept) -> int:
        server = await asyncio.start_server(accept, _HOST, 0, limit=_SIZE)
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
            far_reader, far_writer = await asyncio.open_connection(_HOST, port, limit=_SIZE)
            there.connections.add(writer)
            pumps = [_pump(reader, far_writer, there), _pump(far_reader, writer, back)]
            tasks = [asyncio.create_task(pump) for pump in pumps]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                far_writer.close()
                there.connections.discard(writer)
                for each in tasks:
                    each.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


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
