"""A server that encrypts what it stores, as its users and its administrator see it."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from steersman.store.interface import KeyValue
from steersman.store.urls import open_store

from ... import etcd
from ...server_process import ServerProcess

SECRETS = "/api/v1/namespaces/default/secrets"
PROVIDERS = ("aesgcm", "aescbc", "secretbox")
KEYS = {name: base64.b64encode(name.encode() * 32).decode() for name in ("a", "b")}


@pytest.fixture(scope="module")
def etcd_program() -> Path:
    return etcd.program()


def write(path: Path, providers: Sequence[str], resources: str = "[secrets]") -> None:
    """A configuration; a provider is `identity`, or `NAME:KEY,KEY`."""
    text = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
    text += f"- resources: {resources}\n  providers:\n"
    for provider in providers:
        name, _, keys = provider.partition(":")
        shown = ", ".join(f"{{name: {key}, secret: {KEYS[key]}}}" for key in filter(None, keys.split(",")))
        text += f"  - {name}: {{{f'keys: [{shown}]' if keys else ''}}}\n"
    made = path.with_suffix(".new")
    made.write_text(text)
    os.replace(made, path)


class Administrator:
    """A server that is started and stopped with configurations, and what its store really holds."""

    def __init__(self, directory: Path, store: str | None = None) -> None:
        self.file = directory / "encryption.yaml"
        self.server = ServerProcess(directory, "--encryption-provider-config", str(self.file), store=store)

    @asynccontextmanager
    async def serving(self, *providers: str, resources: str = "[secrets]") -> AsyncIterator[aiohttp.ClientSession]:
        if providers:
            write(self.file, providers, resources)
        await self.server.start()
        try:
            async with self.server.session() as session:
                yield session
        finally:
            await self.server.terminate()

    async def stored(self, key: str) -> KeyValue:
        store = await open_store(self.server.store)
        found = await store.get(key.encode())
        await store.close()
        assert found is not None
        return found


async def ask(session: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
    async with session.request(method, path, json=body, headers=headers) as answer:
        return answer.status, await answer.json(content_type=None)


async def create(session: aiohttp.ClientSession, name: str) -> None:
    status, body = await ask(
        session, "POST", SECRETS, {"metadata": {"name": name}, "stringData": {"word": "swordfish"}}
    )
    assert status == 201, body


async def check_readable(session: aiohttp.ClientSession, name: str) -> dict[str, Any]:
    status, body = await ask(session, "GET", f"{SECRETS}/{name}")
    assert status == 200 and base64.b64decode(body["data"]["word"]) == b"swordfish"
    found: dict[str, Any] = body
    return found


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_keys_are_changed_in_turn(provider: str, tmp_path: Path) -> None:
    """Unencrypted, with a key, with the next key, and back; what is written as it is gets the key of today."""
    administrator = Administrator(tmp_path)
    prefix, key = f"k8s:enc:{provider}:v1:".encode(), "/registry/secrets/default/s"
    async with administrator.serving("identity") as session:
        await create(session, "s")
    assert b"swordfish" in base64.b64decode((await administrator.stored(key)).value.partition(b'"word":"')[2][:12])
    for given, begins in (
        ((f"{provider}:a", "identity"), prefix + b"a:"),
        ((f"{provider}:b,a", "identity"), prefix + b"b:"),
        ((f"{provider}:b",), prefix + b"b:"),
        (("identity", f"{provider}:b"), b"{"),
    ):
        before = await administrator.stored(key)
        async with administrator.serving(*given) as session:
            found = await check_readable(session, "s")
            status, body = await ask(session, "PUT", f"{SECRETS}/s?dryRun=All", found)
            assert (status, body["metadata"]["resourceVersion"]) == (200, found["metadata"]["resourceVersion"])
            status, written = await ask(session, "PUT", f"{SECRETS}/s", found)
            assert status == 200
            stale = not before.value.startswith(begins)
            assert (written["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]) == stale
            status, again = await ask(session, "PATCH", f"{SECRETS}/s", {})
            assert again["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"]
        after = await administrator.stored(key)
        assert after.value.startswith(begins)
        assert (after.value != before.value) == stale


async def test_an_etcd_under_a_prefix(etcd_program: Path, tmp_path: Path) -> None:
    async with etcd.etcd(etcd_program, tmp_path) as cluster:
        administrator = Administrator(tmp_path, f"{cluster.url}/deep")
        async with administrator.serving("aesgcm:a", resources="['*.*']") as session:
            await create(session, "s")
        assert (await administrator.stored("/registry/secrets/default/s")).value.startswith(b"k8s:enc:aesgcm:v1:a:")
        assert (await administrator.stored("/registry/namespaces/default")).value.startswith(b"k8s:enc:aesgcm:v1:a:")
        async with administrator.serving() as session:
            await check_readable(session, "s")


async def test_what_cannot_be_decrypted_is_told_as_upstream_does(tmp_path: Path) -> None:
    administrator = Administrator(tmp_path)
    async with administrator.serving("aesgcm:a") as session:
        await create(session, "s")
        await create(session, "t")
    async with administrator.serving("identity") as session:
        await check_refusals(session, "no matching prefix found")
        status, body = await ask(session, "POST", SECRETS, {"metadata": {"name": "s"}})
        assert (status, body["reason"]) == (409, "AlreadyExists")
        await create(session, "new")
        await check_readable(session, "new")
        assert (await ask(session, "DELETE", f"{SECRETS}/new"))[0] == 200
        assert (await ask(session, "GET", "/api/v1/namespaces/default/configmaps"))[0] == 200
    async with administrator.serving("aesgcm:b") as session:
        await check_refusals(session, "no matching key was found for the provided AES transformer")
    async with administrator.serving("aesgcm:a", "identity") as session:
        for name in ("s", "t"):
            await check_readable(session, name)
        async with session.get("/metrics") as answer:
            told = [line for line in (await answer.text()).splitlines() if "transformation_operations_total{" in line]
        labels = (
            'resource="secrets",transformation_type="from_storage",transformer_prefix="k8s:enc:aesgcm:v1:",status="OK"'
        )
        assert f"apiserver_storage_transformation_operations_total{{{labels}}} 2" in told
    # Without the flag, what is encrypted is not taken for something else.
    administrator.server.flags = ()
    async with administrator.serving() as session:
        await check_refusals(session, "identity transformer tried to read encrypted data")


async def check_refusals(session: aiohttp.ClientSession, why: str) -> None:
    untransformable = f"data from the storage is not transformable revision=0: {why}"
    corrupt = (
        "StorageError: corrupt object, Code: 7, Key: %s/secrets/default/s, ResourceVersion: 0, AdditionalErrorMsg: "
    )
    corrupt += untransformable
    for method in ("GET", "DELETE"):
        status, body = await ask(session, method, f"{SECRETS}/s")
        assert (status, body["reason"]) == (500, "InternalError")
        assert body["message"] == f"Internal error occurred: {corrupt % ''}"
        assert body["details"] == {"causes": [{"message": corrupt % ""}]}
    for method in ("PUT", "PATCH"):
        status, body = await ask(session, method, f"{SECRETS}/s", {"metadata": {"name": "s"}})
        assert (status, body["message"]) == (500, f"Internal error occurred: {untransformable}")
        assert body["details"] == {"causes": [{"message": untransformable}]}
    for path in (SECRETS, "/api/v1/secrets?watch=true", "/api/v1/namespaces/kube-public/secrets?resourceVersion=0"):
        status, body = await ask(session, "GET", path)
        assert (status, body["reason"], body["details"]) == (429, "TooManyRequests", {"retryAfterSeconds": 2})
        assert body["message"] == (
            "storage is (re)initializing: failed to list <unspecified>: failed to read one or more secrets from the "
            f"storage: {corrupt % '/registry'} (and 1 more)"
        )
    status, body = await ask(session, "DELETE", SECRETS)
    assert (status, body["reason"]) == (500, "StorageReadError")


async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    administrator = Administrator(tmp_path)
    async with administrator.serving("aesgcm:a") as session:
        await create(session, "s")
    administrator.server.flags += ("--encryption-provider-config-automatic-reload", "true")
    async with administrator.serving("aesgcm:b", "identity") as session:
        status, _ = await ask(session, "GET", f"{SECRETS}/s")
        assert status == 500
        administrator.file.write_text("kind: Nonsense\n")
        await until(lambda: "was not reloaded" in administrator.server.log)
        write(administrator.file, ("aesgcm:b,a", "identity"))
        await until(lambda: "was reloaded" in administrator.server.log)
        await until_listed(session)
        found = await check_readable(session, "s")
        status, written = await ask(session, "PUT", f"{SECRETS}/s", found)
        assert written["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]
    assert (await administrator.stored("/registry/secrets/default/s")).value.startswith(b"k8s:enc:aesgcm:v1:b:")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            if condition():
                return
            await asyncio.sleep(0.05)


async def until_listed(session: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(60):
        while True:
            status, _ = await ask(session, "GET", SECRETS)
            if status == 200:
                return
            await asyncio.sleep(0.05)


async def test_wrong_flags_and_files_are_told_in_a_line(tmp_path: Path) -> None:
    administrator = Administrator(tmp_path)
    administrator.file.write_text("{}")
    with pytest.raises(AssertionError):
        await administrator.server.start()
    await administrator.server.process.wait()
    said = administrator.server.log.splitlines()
    assert len(said) == 1 and said[0].startswith(
        f"steersman serve: --encryption-provider-config {administrator.file}: error while parsing file: "
    )
    administrator.server.flags = ("--encryption-provider-config-automatic-reload", "true")
    with pytest.raises(AssertionError):
        await administrator.server.start()
    await administrator.server.process.wait()
    assert administrator.server.log.splitlines()[1] == (
        "steersman serve: --encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
    )
