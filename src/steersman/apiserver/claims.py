"""Claims of cluster addresses and node ports, where several servers give them out.

A server that wants to give a Service something creates its claim first; of two that want the same one is refused. A
claim counts while its Service has what was claimed, or may be about to get it; any other is taken over.
Source: kubernetes `pkg/registry/core/service/ipallocator/ipallocator.go`, whose IPAddress objects are claims, too.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson

from steersman._util import clock
from steersman.apimachinery import times
from steersman.apimachinery.codec import json as codec
from steersman.apiserver.claimed import Claimed
from steersman.apiserver.services import given_to
from steersman.apiserver.watchcache import ResourceCache
from steersman.store.interface import CompareFailed, KeyValue, Store, StoreError

log = logging.getLogger("steersman.apiserver")

Item = tuple[str, Any]
PENDING = 60.0
"""Seconds in which a Service must have been stored after something was claimed for it."""
_ADDRESSES, _PORTS = b"/registry/ipaddresses/", b"/registry/steersman.dev/nodeports/"


class Claims:
    """The claims of what the Services in a cache get."""

    def __init__(self, store: Store, services: ResourceCache, now: Callable[[], str]) -> None:
        self._store = store
        self._services = services
        self._now = now

    @asynccontextmanager
    async def held(self, service: str, value: bytes | None) -> AsyncIterator[None]:
        """Claim what a Service gets that is about to be stored in this block (None: deleted); what it has no more
        afterwards is given back. Raises Claimed, StoreError.
        """
        before, after = self._held_by(service), set() if value is None else given_to(orjson.loads(value))
        for item in sorted(after - before, key=str):
            await self._claim(item, service)
        yield
        for item in before - after:
            await self._give_back(item, service)

    async def _give_back(self, item: Item, service: str) -> None:
        try:
            found = await self._store.get(_key(item))
            if found is not None and _owner(found) == service:
                await self._store.swap(found.key, found.mod_revision, None)
        except StoreError as error:  # it ends by itself
            log.info("a claim was not given back: %s", error)

    async def _claim(self, item: Item, service: str) -> None:
        name, key = str(item[1]), _key(item)
        value = self._object(name, service)
        try:
            await self._store.swap(key, 0, value)
        except CompareFailed as failed:
            if failed.current is None or self._counts(failed.current, item, service):
                raise Claimed(*item) from None
            try:
                await self._store.swap(key, failed.current.mod_revision, value)
            except CompareFailed:
                raise Claimed(*item) from None

    def _counts(self, claim: KeyValue, item: Item, service: str) -> bool:
        """Whether a claim is another Service's that has the item, or may get it."""
        owner = _owner(claim)
        if owner == service:
            return False
        made = times.parse_time(codec.decode_stored(claim.value)["metadata"]["creationTimestamp"])
        return item in self._held_by(owner) or clock.now() - made.timestamp() < PENDING

    def _held_by(self, service: str) -> set[Item]:
        entry = self._services.get(service)
        return set() if entry is None else given_to(entry.decode())

    def _object(self, name: str, service: str) -> bytes:
        namespace, _, owner = service.partition("/")
        parent = {"resource": "services", "namespace": namespace, "name": owner}
        return codec.encode_object(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "IPAddress",
                "metadata": {
                    "name": name,
                    "uid": str(uuid.uuid4()),
                    "creationTimestamp": self._now(),
                    "labels": {
                        "ipaddress.kubernetes.io/ip-family": "IPv6" if ":" in name else "IPv4",
                        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
                    },
                },
                "spec": {"parentRef": parent},
            }
        )


def _key(item: Item) -> bytes:
    return (_ADDRESSES if item[0] == "ip" else _PORTS) + str(item[1]).encode()


def _owner(claim: KeyValue) -> str:
    """The Service that a claim was made for."""
    parent = codec.decode_stored(claim.value)["spec"]["parentRef"]
    return f"{parent.get('namespace', '')}/{parent['name']}"
