"""A store in etcd, which several servers, and kube-apiserver, may share.

Every write is one transaction on one key. What is written anywhere arrives on one watch of everything, the feed: it
drives the live watches, and tells when a write of our own has been given to them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Self

from steersman._util.tasks import end
from steersman.store._checks import check_compact, check_swap, watch_position
from steersman.store._watching import Deliver, Ended, KeyWatch, Watching
from steersman.store.etcd import messages as pb
from steersman.store.etcd.client import (
    COMPACT,
    NOWHERE,
    PAUSE,
    RANGE,
    STATUS,
    TXN,
    EtcdClient,
    Reply,
    RevisionCompacted,
    RevisionInFuture,
)
from steersman.store.etcd.compaction import Compactor, oldest_kept
from steersman.store.etcd.copying import check_whole
from steersman.store.etcd.feed import Feed, Witness, mark
from steersman.store.etcd.keyspace import Keyspace
from steersman.store.etcd.leases import Leases
from steersman.store.etcd.settings import EtcdSettings
from steersman.store.etcd.watch_stream import StreamBroken, WatchStream
from steersman.store.history import History
from steersman.store.interface import (
    Compacted,
    CompareFailed,
    Figures,
    FutureRevision,
    KeyValue,
    Premises,
    PremisesChanged,
    Range,
    StoreError,
    StoreUnavailable,
    UnknownOutcome,
    Watch,
)

log = logging.getLogger("steersman.store.etcd")
_FIRST_PAGE = 100
_LARGEST_PAGE = 10_000
_PAGE_BYTES = 16 * 1024 * 1024
_HEALTH_INTERVAL = 2.0
_READS = 4
"""Reads of the current revision at a time: with one, each request would wait for another one's first."""


class EtcdStore:
    """A `Store` in an etcd cluster. Made by `open`; used on one event loop; ended by `close`."""

    shared = True
    read_only = False

    def __init__(self, client: EtcdClient, history: History, revision: int, compacted: int) -> None:
        """For `open`."""
        self._client = client
        self._space = Keyspace(client.settings.root.encode())
        self._leases = Leases(client)
        self._watching = Watching()
        self._compacted = compacted
        self._feed = Feed(client, self._space, self._watching.deliver, self._lost, revision)
        self._compactor = Compactor(client, history, self._history_is_read, self._note_compaction)
        self._tasks = [asyncio.create_task(work) for work in (self._compactor.run(), self._check_health())]
        self._catching_up: set[asyncio.Task[None]] = set()
        self._writes = 0
        self._drained: asyncio.Future[None] | None = None
        self._settling: set[asyncio.Task[None]] = set()
        self._queued: asyncio.Task[None] | None = None
        self._reads = asyncio.Semaphore(_READS)
        self._rested: tuple[Premises, list[Any]] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._trouble: str | None = None

    @classmethod
    async def open(cls, settings: EtcdSettings, *, history: History | None = None) -> Self:
        """Connect to the cluster. Compaction leaves readable what `history` says, as far as other servers let it.

        Raises StoreUnavailable, which says what is wrong with each member.
        """
        client = EtcdClient(settings)
        try:
            space = Keyspace(settings.root.encode())
            # With a root, revisions elsewhere are no events here: a mark makes one to begin with.
            answer = await (
                client.first_answer(RANGE, NOWHERE) if space.whole else client.first_answer(TXN, mark(space))
            )
            await check_whole(client, space)
            compacted = await oldest_kept(client)
        except BaseException:
            await client.close()
            raise
        return cls(client, history or History(), answer.header.revision, compacted)

    @property
    def revision(self) -> int:
        return self._feed.revision

    @property
    def compacted(self) -> int:
        return self._compacted

    def trouble(self) -> str | None:
        return self._trouble

    async def get(self, key: bytes) -> KeyValue | None:
        self._check_open()
        request = pb.RangeRequest(key=self._space.inner(key))
        found = (await self._client.call(RANGE, request)).message.kvs
        return self._space.item(found[0]) if found else None

    async def range(self, start: bytes, end: bytes, *, limit: int = 0, revision: int = 0) -> Range:
        self._check_open()
        if limit < 0 or revision < 0:
            raise ValueError("limit and revision cannot be negative")
        while True:
            try:
                return await self._pages(start, end, limit, revision)
            except RevisionInFuture:
                raise FutureRevision(self.revision) from None
            except RevisionCompacted:
                # Without a revision, the first page's was compacted while the others were read.
                if revision:
                    self._note_compaction(await oldest_kept(self._client))
                    raise Compacted(self._compacted) from None

    async def _pages(self, start: bytes, end: bytes, limit: int, revision: int) -> Range:
        """Read a range in pages of a bounded size, all at one revision."""
        items: list[KeyValue] = []
        count, size = -1, _FIRST_PAGE
        key, last = self._space.bounds(start, end)
        while True:
            wanted = min(size, limit - len(items)) if limit else size
            request = pb.RangeRequest(key=key, range_end=last, limit=wanted, revision=revision)
            page = (await self._client.call(RANGE, request)).message
            revision = revision or page.header.revision
            items += map(self._space.item, page.kvs)
            count = page.count if count < 0 else count
            if not page.more or (limit and len(items) >= limit):
                return Range(items, revision, len(items) < count, count)
            key = page.kvs[-1].key + b"\0"
            size = min(len(page.kvs) * _PAGE_BYTES // max(page.ByteSize(), 1), _LARGEST_PAGE) or 1

    async def swap(self, key: bytes, expected: int, value: bytes | None, premises: Premises | None = None) -> int:
        self._check_open()
        check_swap(expected, value)
        witness = self._feed.witness(key)
        self._writes += 1
        try:
            lease = await self._leases.of(key) if value is not None else 0
            reply = await self._client.call(TXN, self._transaction(key, expected, value, lease, premises))
            if reply.message.succeeded:
                revision: int = reply.message.header.revision
                await self._feed.until(revision)
                return revision
            raise await self._refused(key, expected, value, reply, witness, premises)
        finally:
            witness.end()
            self._writes -= 1
            if not self._writes and self._drained is not None and not self._drained.done():
                self._drained.set_result(None)

    def expire(self, prefix: bytes, seconds: float) -> bool:
        self._leases.expire(prefix, seconds)
        return True

    def _transaction(
        self, key: bytes, expected: int, value: bytes | None, lease: int, premises: Premises | None
    ) -> Any:
        inner = self._space.inner(key)
        if value is None:
            write = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=inner))
        else:
            write = pb.RequestOp(request_put=pb.PutRequest(key=inner, value=value, lease=lease))
        unchanged = pb.Compare(target=pb.MOD, key=inner, mod_revision=expected)
        look = pb.RequestOp(request_range=pb.RangeRequest(key=inner))
        compares = [unchanged] if premises is None else [unchanged, *self._compares(premises)]
        return pb.TxnRequest(compare=compares, success=[write], failure=[look])

    def _compares(self, premises: Premises) -> list[Any]:
        """What a transaction compares; many rest on the same."""
        if self._rested is None or self._rested[0] is not premises:
            inner, bounds, after = self._space.inner, self._space.bounds, premises.revision + 1
            found = [pb.Compare(target=pb.MOD, key=inner(key), mod_revision=at) for key, at in premises.keys]
            for start, end in (bounds(*span) for span in premises.spans):
                unwritten = pb.Compare(result=pb.LESS, target=pb.MOD, key=start, range_end=end, mod_revision=after)
                found.append(unwritten)
            self._rested = premises, found
        return self._rested[1]

    async def _refused(
        self,
        key: bytes,
        expected: int,
        value: bytes | None,
        reply: Reply,
        witness: Witness,
        premises: Premises | None,
    ) -> StoreError:
        """What a failed compare means. After an attempt without an answer it may be that attempt which has won."""
        found = reply.message.responses[0].response_range.kvs
        current = self._space.item(found[0]) if found else None
        if premises is not None and expected == (current.mod_revision if current is not None else 0):
            await self._feed.until(reply.message.header.revision)
            return PremisesChanged()
        await self._feed.until(current.mod_revision if current is not None else reply.message.header.revision)
        if reply.doubtful and witness.may_have_seen(expected, value):
            return UnknownOutcome(
                "etcd did not answer a write, and the key has changed since; it is not known whose write that was"
            )
        return CompareFailed(key, current)

    def watch(self, start: bytes, end: bytes, revision: int, deliver: Deliver, ended: Ended | None = None) -> Watch:
        self._check_open()
        position = watch_position(revision, self.revision, self._compacted)
        watch = KeyWatch(self._watching, start, end, position, deliver, ended)
        live = position > self.revision or self.revision == 1
        self._watching.add(watch, live=live)
        if not live:
            task = asyncio.create_task(self._catch_up(watch))
            self._catching_up.add(task)
            task.add_done_callback(self._catching_up.discard)
        return watch

    async def figures(self) -> Figures:
        """Those of the member that is asked."""
        self._check_open()
        found = await self._client.first_answer(STATUS, pb.StatusRequest())
        return Figures("etcd", found.dbSize, found.dbSizeInUse)

    async def compact(self, revision: int) -> None:
        self._check_open()
        await self.settle()
        check_compact(revision, self.revision, self._compacted)
        await self._history_is_read()
        try:
            await self._client.call(COMPACT, pb.CompactionRequest(revision=revision))
        except RevisionCompacted:
            self._note_compaction(await oldest_kept(self._client))
            raise Compacted(self._compacted) from None
        self._note_compaction(revision)

    async def settle(self) -> None:
        """One read of the current revision is shared by all who came before it began."""
        self._check_open()
        if self._queued is None:
            self._queued = asyncio.create_task(self._read_revision())
            self._queued.add_done_callback(_notice)
            self._queued.add_done_callback(self._settling.discard)
            self._settling.add(self._queued)
        await asyncio.shield(self._queued)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._shut_down())
        await asyncio.shield(self._closing)

    async def _shut_down(self) -> None:
        if self._writes:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained
        self._watching.end(StoreUnavailable("the store is closed"))
        await end([*self._tasks, *self._catching_up, *self._settling])
        await self._feed.close()
        await self._client.close()

    async def _read_revision(self) -> None:
        async with self._reads:
            self._queued = None
            reply = await self._client.call(RANGE, NOWHERE)
        await self._feed.until(reply.message.header.revision)

    async def _catch_up(self, watch: KeyWatch) -> None:
        """Give a watch its history, from a stream of its own, up to where the feed is; then it is live."""
        while watch.active:
            stream = None
            try:
                stream = await WatchStream.open(self._client, *self._space.all, watch.position)
                if not stream.abilities.kept_tombstones and watch.position <= self._compacted:
                    raise RevisionCompacted(self._compacted)
                await self._read_history(stream, watch)
                return
            except RevisionCompacted as error:
                self._note_compaction(error.revision)
                watch.fail(Compacted(self._compacted))
            except StreamBroken as error:
                log.info("history is read from another member: %s", error)
                await asyncio.sleep(PAUSE)
            finally:
                if stream is not None:
                    stream.close()

    async def _read_history(self, stream: WatchStream, watch: KeyWatch) -> None:
        complete = watch.position - 1
        while watch.active:
            if complete >= self._feed.last_event:
                watch.position = complete + 1
                self._watching.go_live(watch)
                return
            batch = await stream.read()
            if batch is None:
                continue
            wanted = [
                event
                for event in map(self._space.event, batch.events)
                if watch.start <= event.key < watch.end and event.revision >= watch.position
            ]
            complete = batch.revision
            watch.position = complete + 1
            watch.give(wanted)

    async def _history_is_read(self) -> None:
        """Wait for watches that are given history: what they need is about to be compacted."""
        if self._catching_up:
            await asyncio.wait(self._catching_up, timeout=self._client.settings.timeout)

    def _note_compaction(self, revision: int) -> None:
        self._compacted = max(self._compacted, revision)

    def _lost(self, revision: int) -> None:
        """The feed was away for so long that etcd has compacted what it missed."""
        self._note_compaction(revision)
        self._watching.end(Compacted(self._compacted))

    async def _check_health(self) -> None:
        while True:
            await asyncio.sleep(_HEALTH_INTERVAL)
            try:
                async with asyncio.timeout(self._client.settings.attempt):
                    await self.settle()
            except StoreError as error:
                self._trouble = str(error)
            except TimeoutError:
                self._trouble = f"etcd cannot be used: {self._client.trouble or 'no answer in time'}"
            else:
                self._trouble = None

    def _check_open(self) -> None:
        if self._closing is not None:
            raise StoreUnavailable("the store is closed")


def _notice(task: asyncio.Task[None]) -> None:
    """Who waited for it may have gone: its failure is nobody's then."""
    if not task.cancelled():
        task.exception()
