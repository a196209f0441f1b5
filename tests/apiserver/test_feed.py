"""What keeps the watch cache as the store is."""

from __future__ import annotations

from pathlib import Path

from steersman.apiserver.feed import Feed
from steersman.apiserver.watchcache import WatchCache
from steersman.apiserver.watching import WatchHub
from steersman.store.conformance import put
from steersman.store.etcd import EtcdStore, parse_url
from steersman.store.interface import Range

from .. import etcd

KEY = b"/registry/things/a"


class Overtaken(EtcdStore):
    """What is read is not the last any more when it arrives."""

    other: EtcdStore

    async def range(self, start: bytes, end: bytes, *, limit: int = 0, revision: int = 0) -> Range:
        found = await super().range(start, end, limit=limit, revision=revision)
        await put(self.other, KEY, b"later")
        await self.settle()
        return found


async def test_what_was_written_while_all_is_read_anew_is_not_missed(tmp_path: Path) -> None:
    async with etcd.etcd(etcd.program(), tmp_path) as cluster:
        settings = parse_url(cluster.url)
        other, store = await EtcdStore.open(settings), await Overtaken.open(settings)
        store.other = other
        cache = WatchCache()
        cache.load([], store.revision)
        things = cache.resource(b"/registry/things/")
        feed = Feed(store, cache, WatchHub())
        try:
            for _ in range(5):
                await put(other, KEY, b"before")
                reading = feed.read_anew()
                reading.send(None)  # it has begun
                await feed.settle()
                entry = things.get("a")
                assert entry is not None
                assert entry.stored == b"later"
                reading.close()
        finally:
            await feed.close()
            await store.close()
            await other.close()
