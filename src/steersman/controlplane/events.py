"""Events go when their time has come, counted from their last change.

kube-apiserver gives them a lease in etcd (`--event-ttl`), and so does this server where the store is one; in other
stores, and where they have none, they are deleted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from steersman._util import clock
from steersman.apimachinery import times
from steersman.apimachinery.errors import ApiError
from steersman.apiserver.core import Core
from steersman.apiserver.watchcache import Change

if TYPE_CHECKING:
    from steersman.client.rest import RestClient


class EventExpiry:
    """Keeps Events in the order of their writes and deletes each when its time has come, unless it was written since.

    After a start, the age of stored Events is that of their creation or last occurrence.
    """

    name = "event-ttl-controller"

    def __init__(self, connect: Callable[[], RestClient], core: Core) -> None:
        """`connect` gives a client when there is something to delete."""
        scope = core.catalog.look_up("", "v1", "events")
        assert scope is not None
        self._connect = connect
        self._cache = scope.cache
        self._ttl = core.event_ttl
        self._due: deque[tuple[float, str, int]] = deque()
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Works until it is cancelled."""
        loop = asyncio.get_running_loop()
        self._due.extend(self._stored(loop.time()))
        self._cache.watchers.append(self._on_change)
        try:
            while True:
                await self._wait(loop)
                await self._expire(loop.time())
        finally:
            self._cache.watchers.remove(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.new is not None:
            due = asyncio.get_running_loop().time() + self._ttl
            self._due.append((due, change.new.key, change.new.revision))
            self._wake.set()

    async def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self._wake.clear()
        if not self._due:
            await self._wake.wait()
        await asyncio.sleep(self._due[0][0] - loop.time())

    async def _expire(self, now: float) -> None:
        rest = self._connect()
        while self._due and self._due[0][0] <= now:
            _, key, revision = self._due.popleft()
            entry = self._cache.get(key)
            if entry is None or entry.revision != revision:
                continue
            namespace, _, name = key.rpartition("/")
            body = {"preconditions": {"resourceVersion": str(revision)}}
            path = f"/api/v1/namespaces/{namespace}/events/{quote(name, safe='')}"
            try:
                await rest.json("DELETE", path, body=body)
            except ApiError as error:
                if error.code >= 500:
                    raise

    def _stored(self, now: float) -> list[tuple[float, str, int]]:
        """When the Events that are there already are due, in that order."""
        today = clock.utc_now()
        found = []
        for entry in self._cache.entries.values():
            event = entry.decode()
            seen = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp")
            age = today - times.parse_time(seen or event["metadata"]["creationTimestamp"])
            found.append((now + self._ttl - max(0.0, age.total_seconds()), entry.key, entry.revision))
        return sorted(found)
