"""The server that the stand-in for etcd keeps loaded, and that the one for kube-apiserver hands its call over to."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from steersman.envtest import place
from steersman.net import pki

from .test_stand_ins import free_port

Process = asyncio.subprocess.Process


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates")
    serving = pki.create_server_certificate(pki.create_ca("servers"), ["127.0.0.1"])
    (directory / "apiserver.crt").write_bytes(serving.cert)
    (directory / "apiserver.key").write_bytes(serving.key)
    return directory


@asynccontextmanager
async def program(name: str, *arguments: str, **more: str) -> AsyncIterator[Process]:
    """A stand-in that runs; what is left of it at the end is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "steersman.envtest",
        name,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **more},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def etcd(data: Path) -> AsyncIterator[tuple[str, Process]]:
    url = f"http://127.0.0.1:{free_port()}"
    async with program("etcd", f"--data-dir={data}", f"--listen-client-urls={url}") as process:
        assert process.stderr is not None
        assert b"ready" in await process.stderr.readline()
        yield url, process


def flags(url: str, port: int, certificates: Path) -> tuple[str, ...]:
    return (
        f"--etcd-servers={url}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={certificates}",
        "--anonymous-auth=true",
        "--authorization-mode=RBAC",
    )


async def health(port: int) -> int:
    """The status of the server's answer; it is asked once, for it listens before it is ready. Raises OSError."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://127.0.0.1:{port}/healthz", ssl=context) as answer,
    ):
        return answer.status


async def serving(process: Process) -> None:
    assert process.stdout is not None
    assert b"serving on" in await process.stdout.readline()


def children(process: Process) -> list[int]:
    text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in text.split()]


async def gone(number: int) -> None:
    try:
        handle = os.pidfd_open(number)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(handle, ended.set)
    await ended.wait()
    loop.remove_reader(handle)
    os.close(handle)


only_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


def test_a_server_is_loaded_without_what_few_need() -> None:
    """All of it would be part of each start."""
    few = ("cryptography", "aiohttp", "yaml", "tempfile", "email.", "steersman.client.", "steersman.api.core.pod")
    code = (
        "import importlib, sys; from contextlib import suppress; from steersman.envtest.standby import NEEDED\n"
        "for name in NEEDED:\n"
        "    with suppress(ImportError): importlib.import_module(name)\n"
        f"print(*(name for name in sys.modules if name.startswith({few})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@only_linux
async def test_the_loaded_server_takes_the_call(tmp_path: Path, certificates: Path) -> None:
    port = free_port()
    async with etcd(tmp_path) as (url, keeper):
        [standby] = children(keeper)
        async with program("kube-apiserver", *flags(url, port, certificates)) as process:
            await serving(process)
            assert await health(port) == 200
            assert children(process) == []
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        await gone(standby)
        assert children(keeper) == []


@only_linux
async def test_it_is_killed_with_the_caller(tmp_path: Path, certificates: Path) -> None:
    port = free_port()
    async with etcd(tmp_path) as (url, keeper):
        [standby] = children(keeper)
        async with program("kube-apiserver", *flags(url, port, certificates)) as process:
            await serving(process)
            process.kill()
            await gone(standby)
            with pytest.raises(aiohttp.ClientConnectorError):
                await health(port)


@only_linux
async def test_it_ends_with_etcd_unless_it_was_called(tmp_path: Path, certificates: Path) -> None:
    port = free_port()
    async with etcd(tmp_path / "a") as (_, keeper):
        [standby] = children(keeper)
        keeper.kill()
        await gone(standby)
    async with (
        etcd(tmp_path / "b") as (url, keeper),
        program("kube-apiserver", *flags(url, port, certificates)) as process,
    ):
        await serving(process)
        keeper.kill()
        await keeper.wait()
        assert await health(port) == 200
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0


async def test_the_callers_environment_and_streams_are_its_own(tmp_path: Path, certificates: Path) -> None:
    async with etcd(tmp_path) as (url, _):
        call = flags(url, free_port(), certificates)
        for _ in range(2):  # the second one finds no server loaded
            async with program("kube-apiserver", *call, STEERSMAN_CONTROLLERS="bogus") as process:
                out, err = await process.communicate()
                assert process.returncode == 1
                assert out == b""
                assert err == b'steersman serve: "bogus" is not in the list of known controllers\n'


async def test_several_at_once(tmp_path: Path, certificates: Path) -> None:
    ports = [free_port() for _ in range(3)]
    async with (
        etcd(tmp_path / "a") as (one, _),
        etcd(tmp_path / "b") as (other, _),
        program("kube-apiserver", *flags(one, ports[0], certificates)) as first,
        program("kube-apiserver", *flags(other, ports[1], certificates)) as second,
    ):
        await asyncio.gather(serving(first), serving(second))
        assert [await health(port) for port in ports[:2]] == [200, 200]
        async with program("kube-apiserver", *flags(one, ports[2], certificates)) as third:
            _, err = await third.communicate()
            assert third.returncode == 1
            assert b"in use" in err  # the database has one server
    assert (tmp_path / "a" / "steersman.db").is_file()
    assert (tmp_path / "b" / "steersman.db").is_file()


async def test_who_finds_nobody_to_call_serves_by_itself(tmp_path: Path, certificates: Path) -> None:
    port = free_port()
    async with etcd(tmp_path / "data") as (url, _):
        found = await asyncio.to_thread(place.ask, url)
        assert found is not None
        assert found.standby == str((tmp_path / "data").resolve() / "steersman.sock")
        assert os.stat(found.standby).st_mode & 0o777 == 0o600
        os.unlink(found.standby)  # nobody can be called there
        async with program("kube-apiserver", *flags(url, port, certificates)) as process:
            await serving(process)
            assert await health(port) == 200


async def test_a_path_too_long_for_a_socket(tmp_path: Path, certificates: Path) -> None:
    port = free_port()
    async with (
        etcd(tmp_path / ("long" * 30)) as (url, _),
        program("kube-apiserver", *flags(url, port, certificates)) as process,
    ):
        await serving(process)
        assert await health(port) == 200
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
