from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from steersman.store.memory import MemoryStore
from steersman.store.sqlite import SQLiteStore
from steersman.store.urls import BadStoreURL, open_store


async def test_memory() -> None:
    store = await open_store("memory://")
    assert isinstance(store, MemoryStore)
    await store.close()


@pytest.mark.parametrize("name", ["store.db", "my store#1?.db"])
async def test_sqlite(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    escaped = name.replace("#", "%23").replace("?", "%3F")
    for url in (f"sqlite:///{escaped}", f"sqlite:///{tmp_path}/{escaped}"):
        store = await open_store(url)
        assert isinstance(store, SQLiteStore)
        await store.close()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([name, f"{name}-lock"])  # noqa: ASYNC240


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgres://host/db", r"unknown kind of store: 'postgres://host/db'; use one of memory://, sqlite:///"),
        ("cluster.db", "unknown kind of store"),
        ("", "unknown kind of store"),
        ("sqlite://", "path of the database is missing"),
        ("sqlite:///", "path of the database is missing"),
        ("sqlite:////tmp/", "path of the database is missing"),
        ("sqlite://cluster.db", "three slashes"),
        ("sqlite:///a.db?mode=ro", "no options"),
        ("memory://name", "has no path"),
        ("sqlite://[/x", "not a store URL"),
    ],
)
async def test_bad_urls(url: str, message: str) -> None:
    with pytest.raises(BadStoreURL, match=message) as raised:
        await open_store(url)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("lacking", ["hpack", "google.protobuf"])
@pytest.mark.parametrize("url", ["etcd://127.0.0.1:1", "etcd-snapshot:////no/such.db"])
def test_packages_that_are_not_there(lacking: str, url: str) -> None:
    """What is missing is named, and how it is installed."""
    code = (
        f"import asyncio, sys; sys.modules[{lacking!r}] = None\n"
        "from steersman.store.urls import open_store\n"
        "from steersman.store.interface import StoreError\n"
        f"try: asyncio.run(open_store({url!r}))\n"
        "except StoreError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.startswith("an etcd store needs more packages (")
    assert lacking in said and said.endswith("; pip install 'steersman[etcd]'\n")
