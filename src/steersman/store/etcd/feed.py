"""The watch of everything that drives a store: which revision is known to be complete here, and who waits for one."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Sequence
from itertools import count

from steersman._util.tasks import end
from steersman.store.etcd import messages as pb
from steersman.store.etcd.client import NOWHERE, PAUSE, RANGE, TXN, EtcdClient, RevisionCompacted
from steersman.store.etcd.compaction import oldest_kept
from steersman.store.etcd.keyspace import Keyspace
from steersman.store.etcd.watch_stream import Batch, StreamBroken, WatchStream
from steersman.store.interface import StoreError, StoreEvent, StoreUnavailable

log = logging.getLogger("steersman.store.etcd")
_PATROL = 0.02
"""Seconds after which a member is asked how far it is, when somebody waits for what has not come."""


class Witness:
    """The events of one key while a write of it is under way; not `complete` when some may have been missed."""

    __slots__ = ("_all", "_key", "complete", "events")

    def __init__(self, everyone: dict[bytes, list[Witness]], key: bytes) -> None:
        self._all = everyone
        self._key = key
        self.complete = True
        self.events: list[StoreEvent] = []
        everyone.setdefault(key, []).append(self)

    def end(self) -> None:
        others = self._all[self._key]
        others.remove(self)
        if not others:
            del self._all[self._key]

    def may_have_seen(self, expected: int, value: bytes | None) -> bool:
        """Whether `value` may have been written over `expected`. What is compacted is not told as a predecessor."""
        return not self.complete or any(
            event.value == value and event.previous_revision in (expected, 0) for event in self.events
        )


class Feed:
    """Runs from when it is made until `close`; breaks of connections are bridged without a gap.

    `revision` is complete: everything up to it has been delivered. `last_event` is the last that was about a key.
    """

    def __init__(
        self,
        client: EtcdClient,
        space: Keyspace,
        deliver: Callable[[Sequence[StoreEvent]], None],
        lost: Callable[[int], None],
        revision: int,
    ) -> None:
        """`revision` is where it begins, with an event; `lost` is told the oldest revision that is left after a gap."""
        self.revision = self.last_event = revision
        self._client = client
        self._space = space
        self._deliver = deliver
        self._lost = lost
        self._stream: WatchStream | None = None
        self._witnesses: dict[bytes, list[Witness]] = {}
        self._waiting: list[tuple[int, int, float, asyncio.Future[None]]] = []
        self._number = count()
        self._patrolling: asyncio.Task[None] | None = None
        self._following = asyncio.create_task(self._follow())

    def witness(self, key: bytes) -> Witness:
        return Witness(self._witnesses, key)

    async def until(self, revision: int) -> None:
        """Wait until a revision that has happened is complete. Raises StoreUnavailable when that takes too long."""
        if revision <= self.revision:
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._waiting, (revision, next(self._number), loop.time(), future))
        if self._patrolling is None:
            self._patrolling = asyncio.create_task(self._patrol())
        await future

    async def close(self) -> None:
        await end([self._following, *([self._patrolling] if self._patrolling is not None else ())])
        for *_, future in self._waiting:
            if not future.done():
                future.set_exception(StoreUnavailable("the store is closed"))

    async def _follow(self) -> None:
        said = ""
        while True:
            try:
                # From what is known on: so a compaction in between is noticed, and nothing is missed.
                self._stream = await WatchStream.open(self._client, *self._space.all, self.revision)
                while True:
                    batch = await self._stream.read()
                    if batch is not None:
                        self._take(batch)
                        said = ""
            except StreamBroken as error:
                # It is tried ten times a second: what stays the same is told once.
                log.log(logging.DEBUG if str(error) == said else logging.INFO, "etcd's watch begins anew: %s", error)
                said = str(error)
                await asyncio.sleep(PAUSE)
            except RevisionCompacted:
                await self._begin_anew()
            except Exception:
                log.exception("the watch of etcd failed, and begins again")
                await asyncio.sleep(PAUSE)
            finally:
                stream, self._stream = self._stream, None
                if stream is not None:
                    stream.close()
                    self._client.avoid(stream.member)

    def _take(self, batch: Batch) -> None:
        events = [self._space.event(event) for event in batch.events if event.revision > self.revision]
        if events:
            self.revision = self.last_event = events[-1].revision
            if self._witnesses:
                for event in events:
                    for witness in self._witnesses.get(event.key, ()):
                        witness.events.append(event)
            self._deliver(events)
        self.revision = max(self.revision, batch.revision)
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._waiting[0][0] <= self.revision:
            *_, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)

    async def _begin_anew(self) -> None:
        """What was missed is gone: go on from what is there now."""
        log.warning("etcd has compacted what happened since revision %d; everything is read anew", self.revision)
        try:
            oldest = await oldest_kept(self._client)
            reply = await self._client.call(RANGE, NOWHERE)
        except (StoreError, RevisionCompacted) as error:
            log.info("not yet: %s", error)
            await asyncio.sleep(PAUSE)
            return
        self.revision = self.last_event = reply.message.header.revision
        for witnesses in self._witnesses.values():
            for witness in witnesses:
                witness.complete = False
        self._lost(oldest)
        self._wake()

    async def _patrol(self) -> None:
        """While somebody waits: ask how far the member is, leave one that does not tell, and give up in the end."""
        loop, settings = asyncio.get_running_loop(), self._client.settings
        try:
            while self._waiting:
                await asyncio.sleep(_PATROL)
                if not self._waiting:
                    return
                oldest = min(since for _, _, since, _ in self._waiting)
                age = loop.time() - oldest
                if age >= settings.timeout:
                    self._give_up(loop.time() - settings.timeout)
                elif self._stream is not None and age >= settings.attempt:
                    self._stream.close()
                elif self._stream is not None:
                    await self._nudge(self._stream)
        finally:
            self._patrolling = None

    async def _nudge(self, stream: WatchStream) -> None:
        """Revisions of keys elsewhere are no events here: have the member tell that it has passed them."""
        if self._space.whole:
            return
        if stream.abilities.true_progress:
            stream.ask_progress()
            return
        try:
            await self._client.call(TXN, mark(self._space))
        except StoreError as error:
            log.info("no mark was written: %s", error)

    def _give_up(self, before: float) -> None:
        late = [item for item in self._waiting if item[2] <= before]
        self._waiting = [item for item in self._waiting if item[2] > before]
        heapq.heapify(self._waiting)
        for *_, future in late:
            if not future.done():
                future.set_exception(StoreUnavailable("etcd cannot be used: its watch does not tell what was written"))


def mark(space: Keyspace) -> object:
    """A write that makes an event, of a key that means nothing."""
    put = pb.PutRequest(key=space.inner(b"/steersman.dev/mark"))
    return pb.TxnRequest(success=[pb.RequestOp(request_put=put)])
