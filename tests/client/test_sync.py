from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from steersman.apimachinery import errors
from steersman.client import Backoff, Client, Resource, SyncClient, load
from steersman.client.sync import Portal

CONFIG_MAP = Resource("v1", "ConfigMap")
Away = Callable[[Callable[[SyncClient], None]], Awaitable[None]]


@pytest.fixture
def away(apiserver: Any) -> Away:
    """Runs code with a blocking client on another thread: the server needs this one's event loop."""

    def run(body: Callable[[SyncClient], None]) -> None:
        with SyncClient(load(kubeconfig=apiserver.kubeconfig)) as client:
            body(client)

    return lambda body: asyncio.to_thread(run, body)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"test": "sync"}},
        "data": data,
    }


def test_every_verb_of_the_client_is_there() -> None:
    verbs = {name for name, value in vars(Client).items() if callable(value) and not name.startswith("_")}
    assert verbs <= set(dir(SyncClient))


async def test_objects_live_and_die_without_an_event_loop(away: Away) -> None:
    def body(blocking: SyncClient) -> None:
        made = blocking.create(config_map("a", x="1"))
        made["data"]["x"] = "2"
        assert blocking.update(made)["data"] == {"x": "2"}
        assert blocking.get(CONFIG_MAP, "a")["data"] == {"x": "2"}
        listing = blocking.list(CONFIG_MAP, namespace=blocking.namespace, label_selector="test=sync", limit=1)
        assert [obj["metadata"]["name"] for obj in listing] == ["a"]
        assert len(listing.collect()) == 1
        blocking.delete(CONFIG_MAP, "a")
        with pytest.raises(errors.NotFound):
            blocking.get(CONFIG_MAP, "a")

    await away(body)


async def test_a_watch_is_an_iterator(away: Away) -> None:
    def body(blocking: SyncClient) -> None:
        blocking.create(config_map("a", x="1"))
        with blocking.watch(CONFIG_MAP, namespace=blocking.namespace, label_selector="test=sync") as events:
            assert next(events).object["metadata"]["name"] == "a"
            blocking.delete(CONFIG_MAP, "a")
            assert next(events).type == "DELETED"
        with pytest.raises(StopIteration):
            next(events)

    await away(body)


async def test_one_client_serves_many_threads(away: Away) -> None:
    def body(blocking: SyncClient) -> None:
        blocking.create(config_map("a", n="0"))

        def grow(obj: dict[str, Any]) -> None:
            obj["data"]["n"] = str(int(obj["data"]["n"]) + 1)

        patient = Backoff(steps=500, duration=0.002, jitter=1.0)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: blocking.modify(CONFIG_MAP, "a", grow, backoff=patient), range(8)))
        assert blocking.get(CONFIG_MAP, "a")["data"] == {"n": "8"}

    await away(body)


async def test_closing_ends_the_thread_and_refuses_calls(away: Away) -> None:
    def body(blocking: SyncClient) -> None:
        blocking.server_version()
        blocking.close()
        blocking.close()
        assert blocking.portal.thread not in threading.enumerate()
        with pytest.raises(RuntimeError, match="the client is closed"):
            blocking.server_version()

    await away(body)


def test_a_blocking_call_from_the_clients_own_loop_is_refused() -> None:
    portal = Portal()

    async def nothing() -> None: ...

    async def inner() -> None:
        portal.call(nothing())

    with pytest.raises(RuntimeError, match=r"would wait for itself: .* must use another SyncClient"):
        portal.call(inner())
    portal.stop()
