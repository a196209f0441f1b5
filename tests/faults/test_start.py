"""A server that cannot start says why in one line, and what to do; it prints no traceback and exits with 1."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
from pathlib import Path

import pytest

from ..server_process import ServerProcess, command


async def refused(*flags: str) -> str:
    """The line that `steersman serve` with these flags ends with."""
    process = await asyncio.create_subprocess_exec(
        *command("serve", *flags), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(30):
        out, err = await process.communicate()
    text = err.decode()
    assert process.returncode == 1, text
    assert out == b"" and text.count("\n") == 1 and text.startswith("steersman"), text
    return text.partition(": ")[2].strip()


def flags(directory: Path, store: str = "memory://") -> tuple[str, ...]:
    return "--secure-port", "0", "--cert-dir", str(directory / "certs"), "--store", store


async def test_a_file_in_use(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server:
        line = await refused(*flags(tmp_path, server.store))
        assert line == (
            f"{tmp_path}/store.db is in use by process {server.process.pid}; stop that server or choose another path"
        )
        async with server.session() as session, session.get("/readyz") as answer:
            assert answer.status == 200


async def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = await refused("--secure-port", str(port), "--cert-dir", str(tmp_path / "certs"))
    assert line == f"cannot listen on 127.0.0.1:{port}: Address already in use"


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"hello, this is a text, not a database " * 200)
    line = await refused(*flags(tmp_path, f"sqlite:///{path}"))
    assert line == f"{path} is not a SQLite database; choose another path or restore a backup"


async def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with ServerProcess(tmp_path) as server:
        await server.terminate()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    line = await refused(*flags(tmp_path, f"sqlite:///{path}"))
    assert line.startswith(f"{path} is damaged") and line.endswith("restore a backup")


async def test_a_newer_format(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with ServerProcess(tmp_path) as server:
        await server.terminate()
    with sqlite3.connect(path) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version + 1}")
    connection.close()
    line = await refused(*flags(tmp_path, f"sqlite:///{path}"))
    assert str(path) in line and "this version knows up to" in line


async def test_another_applications_database(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE accounts (id INTEGER)")
    connection.close()
    assert str(path) in await refused(*flags(tmp_path, f"sqlite:///{path}"))


@pytest.mark.parametrize("name", ["missing/store.db", "file/store.db", "."])
async def test_a_file_that_cannot_be_made(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    line = await refused(*flags(tmp_path, f"sqlite:///{tmp_path}/{name}"))
    assert str(tmp_path) in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    directory = tmp_path / "locked"
    directory.mkdir(mode=0o500)
    line = await refused(*flags(tmp_path, f"sqlite:///{directory}/store.db"))
    assert str(directory) in line and "permission" in line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory"),
        (b"\xff\xfe", "can't decode"),
        (b"token,user\n", "tokens.csv"),
        (b'token,user,uid,"group\n', "tokens.csv"),
    ],
)
async def test_token_files(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "tokens.csv"
    if content is not None:
        path.write_bytes(content)
    assert said in await refused(*flags(tmp_path), "--token-auth-file", str(path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory"),
        ("faults: {", "while parsing"),
        ("faults: [{status: 404}]", "faults[0]: a status of 404 cannot be made"),
    ],
)
async def test_plans_of_faults(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "plan.yaml"
    if content is not None:
        path.write_text(content)
    assert said in await refused(*flags(tmp_path), "--faults", str(path))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--store", "postgres://x"], "postgres"),
        (["--store", "sqlite:///"], "sqlite"),
        (["--bind-address", "no such host"], "no such host"),
        (["--bind-address", "192.0.2.1"], "192.0.2.1"),
        (["--secure-port", "70000"], "70000"),
        (["--controllers", "nope"], "nope"),
        (["--insecure-http", "--bind-address", "0.0.0.0"], "--insecure-http"),
        (["--tls-cert-file", "/nowhere"], "go together"),
        (["--tls-cert-file", "/nowhere", "--tls-private-key-file", "/nowhere"], "/nowhere"),
        (["--tls-cert-file", __file__, "--tls-private-key-file", __file__], "certificate"),
        (["--client-ca-file", "/nowhere"], "/nowhere"),
        (["--client-ca-file", __file__], "certificate"),
        (["--etcd-cafile", "/dev/null"], "no certificate in PEM"),
        (["--etcd-cafile", __file__], "no certificate in PEM"),
        (["--etcd-certfile", __file__, "--etcd-keyfile", __file__], "no certificate in PEM and its key"),
        (["--cert-dir", "/dev/null/certs"], "/dev/null/certs"),
        (["--kubeconfig", "/dev/null/config"], "/dev/null/config"),
        (["--history", "-1"], "--history"),
        (["--history", "nan"], "--history"),
        (["--max-requests-inflight", "-1"], "--max-requests-inflight"),
        (["--secure-port", "x"], "--secure-port"),
        (["--no-such-flag"], "--no-such-flag"),
    ],
    ids=str,
)
async def test_flags(tmp_path: Path, wrong: list[str], said: str) -> None:
    assert said in await refused(*flags(tmp_path), *wrong)
