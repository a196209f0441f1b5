"""What keeps the watch cache as the store is, also when the store has lost its place in its history."""

from __future__ import annotations

import asyncio
import logging

from steersman._util.tasks import end
from steersman.apiserver.watchcache import WatchCache
from steersman.apiserver.watching import WatchHub
from steersman.store.interface import Compacted, Store, StoreError, Watch

log = logging.getLogger("steersman.apiserver.store")
FIRST, END = b"/registry/", b"/registry0"
_AGAIN_AFTER = 0.5


class Feed:
    """Runs from when it is made until `close`."""

    def __init__(self, store: Store, cache: WatchCache, hub: WatchHub) -> None:
        self._store = store
        self._cache = cache
        self._hub = hub
        self._reloading: asyncio.Task[None] | None = None
        self._watch = self._follow()

    async def settle(self) -> None:
        """Wait until the cache has all that was acknowledged, to whomever, before. Raises StoreUnavailable."""
        await self._store.settle()
        while True:
            if self._reloading is not None:
                await asyncio.shield(self._reloading)
            watch = self._watch
            try:
                await watch.caught_up()  # a new watch is given what happened since it was read from
            except Compacted:
                if watch is self._watch and self._reloading is None:
                    raise  # it could not be read anew
                continue
            if self._reloading is None:
                return

    async def read_anew(self) -> None:
        """Take in what is stored as if nothing were known of it: it is read in another way than before."""
        self._watch.cancel()
        self._ended(Compacted(self._cache.revision))
        if self._reloading is not None:
            await asyncio.shield(self._reloading)

    async def close(self) -> None:
        self._watch.cancel()
        if self._reloading is not None:
            await end([self._reloading])

    def _follow(self) -> Watch:
        return self._store.watch(FIRST, END, self._cache.revision + 1, self._cache.apply, self._ended)

    def _ended(self, error: StoreError) -> None:
        if isinstance(error, Compacted) and self._reloading is None:
            self._reloading = asyncio.get_running_loop().create_task(self._reload())

    async def _reload(self) -> None:
        """Clients' watches end: they have missed something. They find out when they ask to go on."""
        log.warning("the store has forgotten what happened since revision %d; all is read anew", self._cache.revision)
        try:
            while True:
                try:
                    snapshot = await self._store.range(FIRST, END)
                    while self._hub.count():  # they leave when they run
                        self._hub.end_all()
                        await asyncio.sleep(0)
                    self._cache.reload(snapshot.items, snapshot.revision)
                    self._watch = self._follow()
                    await self._watch.caught_up()
                    return
                except StoreError as error:
                    log.warning("not read yet: %s", error)
                    await asyncio.sleep(_AGAIN_AFTER)
        finally:
            self._reloading = None
