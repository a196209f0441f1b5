"""Both networks: what is sent arrives, waits, or is refused, as wanted; and the clock and the disk of a program."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from faults.cluster import free_ports
from faults.namespaces import Namespaces
from faults.network import Network
from faults.processes import Knobs, Process, compiled_shim
from faults.relays import Relays

ECHO = """
import asyncio, sys
async def echo(reader, writer):
    while data := await reader.readline():
        writer.write(data)
        await writer.drain()
    writer.close()
async def main():
    async with await asyncio.start_server(echo, "0.0.0.0", int(sys.argv[1])) as server:
        await server.serve_forever()
asyncio.run(main())
"""


def networks() -> list[type[Network]]:
    return [Relays, Namespaces] if Namespaces.usable() else [Relays]


@asynccontextmanager
async def echoing(kind: type[Network], directory: Path) -> AsyncIterator[tuple[Network, str, int]]:
    """A network, and where `clients` reach the echo of the party `server`."""
    async with AsyncExitStack() as stack:
        network: Network = await stack.enter_async_context(kind())
        place = await network.place("server")
        [port] = free_ports(1)
        argv = [*place.prefix, sys.executable, "-c", ECHO, str(port)]
        process = Process("server", argv, directory / "log")
        stack.push_async_callback(process.kill)
        await process.start()
        await until_it_listens(place.host, port)
        host, _, at = (await network.way("clients", "server", port)).rpartition(":")
        yield network, host, int(at)


async def until_it_listens(host: str, port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(OSError), socket.create_connection((host, port), 5):
                return
            await asyncio.sleep(0.05)


async def connected(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection over which something has come back."""
    reader, writer = await asyncio.open_connection(host, port)
    assert await echoes(reader, writer)
    return reader, writer


async def echoes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    with suppress(OSError):
        writer.write(b"hello\n")
        return await reader.readline() == b"hello\n"
    return False


@pytest.mark.parametrize("kind", networks())
@pytest.mark.parametrize("way", [("clients", "server"), ("server", "clients")])
async def test_what_is_held_back_arrives_later(kind: type[Network], way: tuple[str, str], tmp_path: Path) -> None:
    async with echoing(kind, tmp_path) as (network, host, port):
        reader, writer = await connected(host, port)
        network.hold(*way)
        writer.write(b"held\n")
        answer = asyncio.create_task(reader.readline())
        done, _ = await asyncio.wait({answer}, timeout=0.3)
        assert not done
        network.heal(*way)
        async with asyncio.timeout(60):
            assert await answer == b"held\n"
        writer.close()


@pytest.mark.parametrize("kind", networks())
async def test_what_is_cut_is_refused(kind: type[Network], tmp_path: Path) -> None:
    async with echoing(kind, tmp_path) as (network, host, port):
        _, writer = await connected(host, port)
        network.cut("clients", "server")
        with suppress(OSError):
            reader, new = await asyncio.open_connection(host, port)
            assert not await echoes(reader, new)
            new.close()
        network.heal("clients", "server")
        _, again = await connected(host, port)
        for each in (writer, again):
            each.close()


async def test_what_is_delayed_takes_longer(tmp_path: Path) -> None:
    async with echoing(Relays, tmp_path) as (network, host, port):
        reader, writer = await connected(host, port)
        network.delay("clients", "server", 0.1)
        clock = asyncio.get_running_loop().time
        began = clock()
        writer.write(b"late\n")
        assert await reader.readline() == b"late\n"
        assert clock() - began >= 0.19
        writer.close()


def test_a_program_believes_the_clock_and_waits_for_the_disk(tmp_path: Path) -> None:
    library = compiled_shim(tmp_path)
    if library is None:
        pytest.skip("no C compiler")
    knobs = Knobs(library, tmp_path / "knobs")
    look = """
import os, sys, time
began = time.monotonic()
os.fsync(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT))
print(time.time(), time.monotonic() - began)
"""

    def run() -> tuple[float, float]:
        command = [sys.executable, "-c", look, str(tmp_path / "file")]
        out = subprocess.run(command, env=knobs.env, capture_output=True, text=True, check=True).stdout
        now, waited = map(float, out.split())
        return now, waited

    now, _ = run()
    knobs.turn(clock=86400.0, fsync=0.2)
    later, waited = run()
    assert later - now >= 86400.0 and waited >= 0.2
    knobs.turn()
    assert run()[0] < later
