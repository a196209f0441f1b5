"""What an etcd holds at one revision, and an etcd that is filled with what a store held.

A revision of etcd cannot be set: one that has to be passed is passed by writes that mean nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from steersman.store.etcd import messages as pb
from steersman.store.etcd.client import COMPACT, NOWHERE, RANGE, TXN, EtcdClient, RevisionCompacted
from steersman.store.etcd.feed import mark
from steersman.store.etcd.keyspace import Keyspace
from steersman.store.etcd.leases import Leases
from steersman.store.etcd.settings import EtcdSettings
from steersman.store.interface import KeyValue, StoreUnavailable

FIRST, END = b"/registry/", b"/registry0"
UNFINISHED = b"/steersman.dev/restoring"
"""Is there while an etcd is filled: what it holds is not whole."""
_EVENTS, _EVENTS_LAST = b"/registry/events/", 3600.0
"""Events last this long, in seconds, from when they are restored: upstream's `--event-ttl`."""
NOT_STATE = (b"/registry/masterleases/", b"/registry/peerserverleases/")
"""Which kube-apiservers are alive: true only there, and only for seconds."""
_PAGE = 500
_OPERATIONS = 100
"""Operations in a transaction; etcd takes up to 128 by default."""
_BATCH_BYTES = 1 << 20
"""etcd takes up to 1.5 MB in a request by default."""
_WRITERS = 200


class EtcdSnapshot:
    """What is stored for the API server, at one revision."""

    def __init__(self, client: EtcdClient, revision: int) -> None:
        """For `open`."""
        self._client = client
        self._space = Keyspace(client.settings.root.encode())
        self.revision = revision

    @classmethod
    async def open(cls, settings: EtcdSettings) -> EtcdSnapshot:
        """Raises StoreUnavailable."""
        client = EtcdClient(settings)
        try:
            answer = await client.first_answer(RANGE, NOWHERE)
            await check_whole(client, Keyspace(settings.root.encode()))
        except BaseException:
            await client.close()
            raise
        return cls(client, answer.header.revision)

    async def items(self) -> AsyncIterator[KeyValue]:
        """The keys in byte order. Raises StoreUnavailable, also where the revision is compacted meanwhile."""
        key, last = self._space.bounds(FIRST, END)
        while True:
            request = pb.RangeRequest(key=key, range_end=last, limit=_PAGE, revision=self.revision)
            try:
                page = (await self._client.call(RANGE, request)).message
            except RevisionCompacted:
                text = f"etcd has compacted revision {self.revision} while it was read; try again"
                raise StoreUnavailable(text) from None
            for item in map(self._space.item, page.kvs):
                if not item.key.startswith(NOT_STATE):
                    yield item
            if not page.more:
                return
            key = page.kvs[-1].key + b"\0"

    async def close(self) -> None:
        await self._client.close()


class EtcdTarget:
    """An etcd that is about to be filled. No server may use it meanwhile, which only its users can know."""

    def __init__(self, client: EtcdClient, revision: int, *, exists: bool) -> None:
        """For `open`. `exists` is whether something is there."""
        self._client = client
        self._space = Keyspace(client.settings.root.encode())
        self._leases = Leases(client)
        self._leases.expire(_EVENTS, _EVENTS_LAST)
        self.revision = revision
        self.exists = exists

    @classmethod
    async def open(cls, settings: EtcdSettings) -> EtcdTarget:
        """Raises StoreUnavailable."""
        client = EtcdClient(settings)
        space = Keyspace(settings.root.encode())
        try:
            first, end = space.bounds(FIRST, END)
            answer = await client.first_answer(RANGE, pb.RangeRequest(key=first, range_end=end, limit=1))
            exists = bool(answer.kvs) or await _is_unfinished(client, space)
        except BaseException:
            await client.close()
            raise
        return cls(client, answer.header.revision, exists=exists)

    async def fill(self, items: Iterable[KeyValue], after: int) -> int:
        """Replace what is there by `items`, written in this order at revisions above `after`; nothing older can be read
        then. Returns the current revision. Raises StoreUnavailable: then it is not whole, and no server takes it.
        """
        unfinished = pb.RequestOp(request_put=pb.PutRequest(key=self._space.inner(UNFINISHED)))
        first, end = self._space.bounds(FIRST, END)
        clear = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=first, range_end=end))
        self.revision = await self._write([unfinished, clear])
        await self._pass(after)
        count = 0
        async for batch in self._batches(items):
            count += len(batch)
            await self._write(batch)
        await self._check_alone(count)
        done = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=self._space.inner(UNFINISHED)))
        self.revision = await self._write([done])
        await self._client.call(COMPACT, pb.CompactionRequest(revision=self.revision))
        return self.revision

    async def close(self) -> None:
        await self._client.close()

    async def _pass(self, revision: int) -> None:
        """Write until the current revision is at least this one."""
        request = mark(self._space)

        async def write() -> None:
            while self.revision < revision:
                reply = await self._client.call(TXN, request)
                self.revision = max(self.revision, reply.message.header.revision)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_WRITERS, max(revision - self.revision, 0))):
                    group.create_task(write())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _check_alone(self, count: int) -> None:
        """Raises StoreUnavailable where there is more, or less, than was written."""
        first, end = self._space.bounds(FIRST, END)
        found = await self._client.call(RANGE, pb.RangeRequest(key=first, range_end=end, count_only=True))
        if found.message.count != count:
            text = (
                "something else has written into this etcd meanwhile; stop all servers on it, then restore with --force"
            )
            raise StoreUnavailable(text)

    async def _batches(self, items: Iterable[KeyValue]) -> AsyncIterator[list[Any]]:
        batch: list[Any] = []
        size = 0
        for item in items:
            length = len(item.key) + len(item.value)
            if batch and (len(batch) == _OPERATIONS or size + length > _BATCH_BYTES):
                yield batch
                batch, size = [], 0
            lease = await self._leases.of(item.key)
            put = pb.PutRequest(key=self._space.inner(item.key), value=item.value, lease=lease)
            batch.append(pb.RequestOp(request_put=put))
            size += length
        if batch:
            yield batch

    async def _write(self, operations: list[Any]) -> int:
        reply = await self._client.call(TXN, pb.TxnRequest(success=operations))
        revision: int = reply.message.header.revision
        return revision


async def check_whole(client: EtcdClient, space: Keyspace) -> None:
    """Raises StoreUnavailable where a restore has not come to its end."""
    if await _is_unfinished(client, space):
        text = "a restore into this etcd was not finished: what it holds is not whole; restore again, with --force"
        raise StoreUnavailable(text)


async def _is_unfinished(client: EtcdClient, space: Keyspace) -> bool:
    found = await client.call(RANGE, pb.RangeRequest(key=space.inner(UNFINISHED), count_only=True))
    return bool(found.message.count)
