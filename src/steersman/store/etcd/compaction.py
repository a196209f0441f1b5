"""Compaction of an etcd that several servers share: whoever comes first does it.

Source: kube-apiserver `pkg/storage/etcd3/compact.go`; with the same key, so that a kube-apiserver on the same etcd
takes part.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from steersman.store.etcd import messages as pb
from steersman.store.etcd.client import COMPACT, RANGE, TXN, EtcdClient, RevisionCompacted
from steersman.store.etcd.watch_stream import StreamBroken, WatchStream
from steersman.store.history import History
from steersman.store.interface import StoreError

log = logging.getLogger("steersman.store.etcd")
_KEY = b"compact_rev_key"
_SHORTEST = 1.0


class Compactor:
    """Compacts once in each interval, to where the store was an interval before, unless another server has done it.

    The key holds the last revision that was compacted to, its version counts the compactions: who finds the version
    that it knows is first.
    """

    def __init__(
        self, client: EtcdClient, history: History, before: Callable[[], Awaitable[None]], done: Callable[[int], None]
    ) -> None:
        """`before` is awaited before anything is compacted, `done` told the revision, also of others' compactions."""
        self._client = client
        self._history = history
        self._before = before
        self._done = done
        self._version = 0
        self._revision = 0

    async def run(self) -> None:
        """Works until it is cancelled."""
        while True:
            await asyncio.sleep(max(self._history.seconds, _SHORTEST))
            try:
                await self.turn()
            except (StoreError, RevisionCompacted) as error:
                log.warning("not compacted this time: %s", error)

    async def turn(self) -> None:
        """One interval's work. Raises StoreError, RevisionCompacted."""
        known = pb.Compare(target=pb.VERSION, key=_KEY, version=self._version)
        put = pb.RequestOp(request_put=pb.PutRequest(key=_KEY, value=b"%d" % self._revision))
        look = pb.RequestOp(request_range=pb.RangeRequest(key=_KEY))
        reply = (await self._client.call(TXN, pb.TxnRequest(compare=[known], success=[put], failure=[look]))).message
        target, self._revision = self._revision, reply.header.revision
        if not reply.succeeded:
            [found] = reply.responses[0].response_range.kvs or [None]
            self._version = found.version if found is not None else 0
            if found is not None and found.value.isdigit():
                self._done(int(found.value))
            return
        self._version += 1
        target = min(target, reply.header.revision - self._history.revisions)
        if target > 0:
            await self._before()
            await self._client.call(COMPACT, pb.CompactionRequest(revision=target))
            self._done(target)


async def oldest_kept(client: EtcdClient) -> int:
    """The oldest revision that can be read, 0 if nothing was ever compacted. Raises StoreError."""
    while True:
        try:
            await client.call(RANGE, pb.RangeRequest(key=b"\0", revision=1))
            return 0
        except RevisionCompacted:
            pass
        stream = None
        try:
            stream = await WatchStream.open(client, b"\0", b"", 1)
            while True:
                await stream.read()
        except RevisionCompacted as compacted:
            return compacted.revision
        except StreamBroken as error:
            log.info("asking again what is compacted: %s", error)
        finally:
            if stream is not None:
                stream.close()
