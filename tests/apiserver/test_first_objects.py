"""What a server with an empty store comes with: the same whether it was made before, or is made by all rules."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest

from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.authz.settings import RBAC, AuthorizerSettings
from steersman.apiserver.server import APIServer, ServerConfig
from steersman.store.memory import MemoryStore

TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
ALWAYS = (AuthorizerSettings("AlwaysAllow", "everything"),)


class Onlooker:
    """A plugin of an embedder's: it sees every write of a server."""

    name = "Onlooker"

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def admit(self, attributes: Attributes) -> None:
        self.seen.append(attributes.name)


async def first_objects(config: ServerConfig, store: MemoryStore | None = None) -> dict[bytes, Any]:
    """By key, without what is an object's own: its times and its uid."""
    store = store or MemoryStore()
    server = await APIServer.start(store, config, listen=False)
    await server.stop(0)
    found = {}
    for item in (await store.range(b"/", b"0")).items:
        obj = orjson.loads(TIME.sub(b"", item.value))
        assert len(obj["metadata"].pop("uid")) == 36
        assert obj["metadata"]["creationTimestamp"] == ""
        found[item.key] = obj
    return found


@pytest.mark.parametrize("authorizers", [RBAC, ALWAYS])
@pytest.mark.parametrize("fairness", [True, False])
async def test_they_are_those_that_all_rules_make(authorizers: Any, fairness: bool) -> None:
    onlooker = Onlooker()
    made = await first_objects(ServerConfig(authorizers=authorizers, fairness=fairness, admission_plugins=[onlooker]))
    assert "kube-system" in onlooker.seen
    assert await first_objects(ServerConfig(authorizers=authorizers, fairness=fairness)) == made


async def test_each_has_its_own_uid_and_the_time_of_the_start() -> None:
    store = MemoryStore()
    server = await APIServer.start(store, ServerConfig(), listen=False)
    now = server.core.now()
    await server.stop(0)
    objects = [orjson.loads(item.value)["metadata"] for item in (await store.range(b"/", b"0")).items]
    assert len({meta["uid"] for meta in objects}) == len(objects) > 100
    assert {meta["creationTimestamp"][:13] for meta in objects} == {now[:13]}


async def test_a_store_that_holds_something_is_completed() -> None:
    store = MemoryStore()
    whole = await first_objects(ServerConfig(), store)
    for gone in (b"/registry/clusterroles/view", b"/registry/namespaces/kube-public"):
        item = await store.get(gone)
        assert item is not None
        await store.swap(gone, item.mod_revision, None)
    assert (await first_objects(ServerConfig(), store)).keys() == whole.keys()
