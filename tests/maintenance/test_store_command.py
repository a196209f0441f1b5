"""`steersman store` as an operator of a server uses it, and what clients notice of it."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from steersman.apiserver.encryption.configuration import read_configuration
from steersman.apiserver.encryption.store import EncryptedStore
from steersman.client.client import Client
from steersman.client.resources import Resource
from steersman.client.watch import WatchEvent
from steersman.store.memory import MemoryStore
from steersman.store.sqlite import SQLiteStore
from steersman.store.urls import open_store

from .. import etcd
from ..server_process import ServerProcess, command

ROOT = Path(__file__).parents[1]
CONFIG_MAP = Resource("v1", "ConfigMap", "configmaps", True)
PATH = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def etcd_program() -> Path:
    return etcd.program()


async def steersman(*arguments: str | Path) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command("store", *map(str, arguments)), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


class Watcher:
    """A client that goes on watching whatever becomes of the server, and knows the objects."""

    def __init__(self, client: Client) -> None:
        self.known: dict[str, Any] = {}
        self.changed = asyncio.Event()
        self._watch = client.watch(CONFIG_MAP, namespace="default")
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for event in self._watch:
            assert isinstance(event, WatchEvent)
            name = event.object["metadata"]["name"]
            if event.type == "DELETED":
                self.known.pop(name, None)
            else:
                self.known[name] = event.object
            self.changed.set()

    async def until(self, condition: Callable[[dict[str, Any]], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition(self.known):
                self.changed.clear()
                await self.changed.wait()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def create(session: aiohttp.ClientSession, name: str, **data: str) -> dict[str, Any]:
    async with session.post(PATH, json=config_map(name, **data)) as answer:
        assert answer.status == 201, await answer.text()
        made: dict[str, Any] = await answer.json()
        return made


async def ask(session: aiohttp.ClientSession, path: str) -> tuple[int, dict[str, Any]]:
    async with session.get(path) as answer:
        return answer.status, json.loads((await answer.text()).splitlines()[0])


async def check_the_past_is_gone(session: aiohttp.ClientSession, version: str, token: str) -> None:
    """What a client goes on from that knew the store before."""
    status, body = await ask(session, f"{PATH}?limit=2&continue={token}")
    assert (status, body["reason"]) == (410, "Expired")
    status, body = await ask(session, f"{PATH}?watch=true&resourceVersion={version}")
    if status == 200:
        assert body["type"] == "ERROR"
        status, body = body["object"]["code"], body["object"]
    assert (status, body["reason"]) == (410, "Expired")
    status, body = await ask(session, f"{PATH}?resourceVersion={version}&resourceVersionMatch=Exact")
    assert (status, body["reason"]) == (410, "Expired")


async def across(server: ServerProcess, work: Callable[[], Awaitable[str]]) -> None:
    """Have a client watch and write before and after `work`, which gives the store's URL after it."""
    async with server.client() as client:
        watcher = Watcher(client)
        async with server.session() as session:
            for number in range(5):
                await create(session, f"before{number}", turn="first")
            await watcher.until(lambda known: "before4" in known)
            _, listed = await ask(session, f"{PATH}?limit=2")
            version, token = listed["metadata"]["resourceVersion"], listed["metadata"]["continue"]
        await server.terminate()
        server.store = await work()
        await server.start()
        async with server.session() as session:
            await check_the_past_is_gone(session, version, token)
            _, found = await ask(session, f"{PATH}/before1")
            assert found["data"] == {"turn": "first"}
            # The object is as the client knows it: it may write it, under the version that it has now.
            found["data"]["turn"] = "second"
            async with session.put(f"{PATH}/before1", json=found) as answer:
                assert answer.status == 200, await answer.text()
                written = await answer.json()
            made = await create(session, "after")
            assert int(version) < int(written["metadata"]["resourceVersion"]) < int(made["metadata"]["resourceVersion"])
            async with session.delete(f"{PATH}/before2") as answer:
                assert answer.status == 200
        await watcher.until(
            lambda known: (
                known.get("before1", {}).get("data") == {"turn": "second"}
                and "after" in known
                and "before2" not in known
            )
        )
        await watcher.stop()


@pytest.mark.slow
async def test_a_server_and_its_clients_move_to_etcd_and_back(etcd_program: Path, tmp_path: Path) -> None:
    async with etcd.etcd(etcd_program, tmp_path) as cluster, ServerProcess(tmp_path) as server:
        first, other = server.store, f"{cluster.url}/moved"

        async def to_etcd() -> str:
            status, out, err = await steersman("move", first, other)
            assert (status, err) == (0, "") and "keys; the revision is" in out
            return other

        await across(server, to_etcd)
        async with server.session() as session:
            for name in ("before0", "before1", "before3", "before4", "after"):
                async with session.delete(f"{PATH}/{name}") as answer:
                    assert answer.status == 200

        async def back() -> str:
            status, out, err = await steersman("move", other, f"sqlite:///{tmp_path}/back.db")
            assert (status, err) == (0, "") and "keys; the revision is" in out
            return f"sqlite:///{tmp_path}/back.db"

        await across(server, back)


async def test_what_kube_apiserver_wrote_is_moved_in_our_form(etcd_program: Path, tmp_path: Path) -> None:
    """Protobuf, and JSON as Go writes it; what is no object stays as it is."""
    recorded = ROOT / "apiserver" / "encryption"
    ciphers = read_configuration((recorded / "configuration.yaml").read_bytes())
    stored = json.loads((recorded / "recorded.json").read_text())["values"]
    raw = MemoryStore()
    decrypted = EncryptedStore(raw, ciphers, "/deep")
    async with etcd.etcd(etcd_program, tmp_path) as cluster:
        store = await open_store(cluster.url)
        for key, value in stored.items():
            await raw.swap(key.encode(), 0, base64.b64decode(value))
            plain = await decrypted.get(key.encode())
            assert plain is not None
            await store.swap(plain.key, 0, plain.value)
        await store.swap(b"/registry/ranges/serviceips", 0, b"\x00\x01")
        await store.close()
        status, _, err = await steersman("move", cluster.url, f"sqlite:///{tmp_path}/store.db")
        assert (status, err) == (0, "")
    moved = await SQLiteStore.open(tmp_path / "store.db")
    found = {item.key.decode(): item.value for item in (await moved.range(b"/registry/", b"/registry0")).items}
    await moved.close()
    assert found.pop("/registry/ranges/serviceips") == b"\x00\x01"
    assert set(found) == set(stored)
    for key, value in found.items():
        assert value.startswith(b'{"apiVersion":"') and not value.endswith(b"\n")
        assert key.endswith(f"/{json.loads(value)['metadata']['name']}")


@pytest.mark.slow
async def test_a_server_goes_on_from_a_backup(tmp_path: Path) -> None:
    file = tmp_path / "backup"
    async with ServerProcess(tmp_path) as server:

        async def restored() -> str:
            status, _, err = await steersman("restore", file, server.store)
            assert status == 1
            reason = f"{tmp_path}/store.db exists; choose another path, or replace it with --force"
            assert err == f"steersman store restore: {reason}\n"
            status, out, err = await steersman("restore", file, server.store, "--force")
            assert (status, err) == (0, "")
            assert out.endswith(f"; what was there is {tmp_path}/store.db.replaced\n")
            return server.store

        async with server.session() as session:
            for number in range(5):
                await create(session, f"before{number}", turn="first")
            status, out, err = await steersman("backup", server.store, file)
            assert (status, err) == (0, "") and out.startswith(f"{file}: ")
            status, _, err = await steersman("restore", file, server.store, "--force")
            assert status == 1 and "is in use by process" in err and err.count("\n") == 1
            for number in range(5):
                async with session.delete(f"{PATH}/before{number}") as answer:
                    assert answer.status == 200
        await across(server, restored)


@pytest.mark.slow
async def test_a_restore_that_is_killed_leaves_one_or_the_other(tmp_path: Path) -> None:
    path, url, file = tmp_path / "store.db", f"sqlite:///{tmp_path}/store.db", tmp_path / "backup"
    store = await SQLiteStore.open(path)
    await asyncio.gather(*(store.swap(b"/registry/%d" % number, 0, random.randbytes(900)) for number in range(20_000)))
    assert (await steersman("backup", url, file))[0] == 0
    await store.swap(b"/registry/later", 0, b"than the backup")
    await store.close()
    whole = 0
    for _ in range(8):
        process = await asyncio.create_subprocess_exec(
            *command("store", "restore", str(file), url, "--force"), stdout=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(random.uniform(0.2, 1.2)):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        store = await SQLiteStore.open(path)
        found = await store.range(b"/registry/", b"/registry0", limit=1)
        later = await store.get(b"/registry/later")
        assert found.count == 20_000 + (later is not None)
        if process.returncode == 0:
            whole += 1
            assert later is None
        if later is None:
            await store.swap(b"/registry/later", 0, b"than the backup")
        await store.close()


async def test_a_database_becomes_as_small_as_what_it_holds(tmp_path: Path) -> None:
    path, url = tmp_path / "store.db", f"sqlite:///{tmp_path}/store.db"
    store = await SQLiteStore.open(path, fsync=False)
    made = await asyncio.gather(*(store.swap(b"/registry/%d" % n, 0, random.randbytes(9000)) for n in range(300)))
    status, _, err = await steersman("vacuum", url)
    assert status == 1 and "is in use by process" in err and err.count("\n") == 1
    await asyncio.gather(*(store.swap(b"/registry/%d" % n, made[n], None) for n in range(299)))
    await store.compact(store.revision)
    await store.close()
    store = await SQLiteStore.open(path)  # what was compacted is removed for good
    written = 0
    while (await store.figures()).used > 1_000_000:
        written = await store.swap(b"/registry/more", written, b"")
    revision, kept = store.revision, await store.get(b"/registry/299")
    await store.close()
    size = path.stat().st_size
    status, out, err = await steersman("vacuum", url)
    assert (status, err) == (0, "")
    assert out == f"{url}: {size} bytes before, {path.stat().st_size} now\n"
    assert size > 2_000_000 > 200_000 > path.stat().st_size
    store = await SQLiteStore.open(path)
    assert (store.revision, await store.get(b"/registry/299")) == (revision, kept)
    await store.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("backup", "memory://", "FILE"), "steersman store backup: a store in memory is no file"),
        (("backup", "sqlite:///missing.db", "FILE"), "steersman store backup: missing.db does not exist"),
        (("backup", "etcd://127.0.0.1:1", "FILE"), "steersman store backup: etcd cannot be used: 127.0.0.1:1: "),
        (("restore", "missing", "sqlite:///new.db"), "steersman store restore: cannot read missing: "),
        (("restore", "FILE", "sqlite:///new.db", "--bump-revision", "0"), "steersman store restore: argument --bump"),
        (("move", "sqlite:///missing.db", "sqlite:///new.db"), "steersman store move: missing.db does not exist"),
        (("vacuum", "sqlite:///missing.db"), "steersman store vacuum: missing.db does not exist"),
        (("vacuum", "etcd://127.0.0.1:1"), "steersman store vacuum: only a SQLite store can be vacuumed"),
        (("move", "a", "b", "--etcd-user", "me"), "steersman store move: --etcd-user and --etcd-password-file go"),
    ],
)
async def test_what_cannot_be_done_is_said_in_a_line(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = await steersman(*arguments)
    assert (status, out) == (1, "")
    assert err.startswith(said) and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240
