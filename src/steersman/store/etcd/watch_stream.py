"""One watch at one member: its answers as whole batches of events.

Source: etcd `api/etcdserverpb/rpc.proto`; kube-apiserver `pkg/storage/etcd3/watcher.go` for what it asks for.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Any, Self

import grpc
import grpc.aio

from steersman.store.etcd import messages as pb
from steersman.store.etcd.client import STATUS, EtcdClient, Member, RevisionCompacted
from steersman.store.interface import StoreEvent, StoreUnavailable

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
# From these versions on a member tells progress only when it has sent all before (etcd #15220), and keeps the deletion
# that is a compaction's own revision (etcd #19179).
_TRUE_PROGRESS = {(3, 4): 31, (3, 5): 13}
_KEPT_TOMBSTONES = {(3, 4): 36, (3, 5): 18}


@dataclass(frozen=True, slots=True)
class Batch:
    """Events in the order of their revisions; there are no others in the range up to `revision`."""

    events: list[StoreEvent]
    revision: int


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a member's version can be relied on for."""

    true_progress: bool
    kept_tombstones: bool

    @classmethod
    def of(cls, version: str) -> Abilities:
        found = _VERSION.match(version)
        if found is None:
            return cls(False, False)
        major, minor, patch = map(int, found.groups())

        def since(first: dict[tuple[int, int], int]) -> bool:
            return (major, minor) > max(first) or patch >= first.get((major, minor), patch + 1)

        return cls(since(_TRUE_PROGRESS), since(_KEPT_TOMBSTONES))


class StreamBroken(Exception):
    """The stream has ended; another one can go on where it stopped."""


class WatchStream:
    """A running watch. Made by `open`; `read` until it raises; `close` in any case."""

    def __init__(self, member: Member, call: Any, abilities: Abilities) -> None:
        self.member = member
        self.abilities = abilities
        self._call = call
        self._pieces: list[Any] = []
        self._asking = self._closed = False

    @classmethod
    async def open(cls, client: EtcdClient, start: bytes, end: bytes, revision: int) -> Self:
        """Watch [start, end) from a revision on. Raises StreamBroken."""
        try:
            member, call = await client.watch()
        except StoreUnavailable as error:
            raise StreamBroken(str(error)) from None
        stream = cls(member, call, Abilities(False, False))
        try:
            status = await member.unary(STATUS)(
                pb.StatusRequest(), timeout=client.settings.attempt, metadata=client.metadata
            )
            stream.abilities = Abilities.of(status.version)
            create = pb.WatchCreateRequest(
                key=start, range_end=end, start_revision=revision, prev_kv=True, progress_notify=True, fragment=True
            )
            await call.write(pb.WatchRequest(create_request=create))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            stream.close()
            client.avoid(member)
            raise StreamBroken(str(error)) from None
        except BaseException:
            stream.close()
            raise
        return stream

    async def read(self) -> Batch | None:
        """What comes next, None for an answer that says nothing of events. Raises StreamBroken, RevisionCompacted."""
        try:
            answer = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise StreamBroken(f"{self.member.address}: {error.details()}") from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                raise StreamBroken(f"{self.member.address} is left: it does not tell what was written") from None
            raise
        if answer is grpc.aio.EOF:
            raise StreamBroken(f"{self.member.address} has closed the stream")
        if answer.compact_revision:
            raise RevisionCompacted(answer.compact_revision)
        if answer.canceled:
            raise StreamBroken(f"{self.member.address} has ended the watch: {answer.cancel_reason}")
        if answer.created:
            return None
        if answer.fragment:
            self._pieces.extend(answer.events)
            return None
        pieces, self._pieces = [*self._pieces, *answer.events], []
        if not pieces:
            return Batch([], answer.header.revision)
        events = [_event(piece) for piece in pieces]
        return Batch(events, events[-1].revision)

    async def ask_progress(self) -> None:
        """Have the member say how far it is; it answers when it has sent all before."""
        if self._asking:
            return
        self._asking = True
        try:
            await self._call.write(pb.WatchRequest(progress_request=pb.WatchProgressRequest()))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass  # whoever reads is told
        finally:
            self._asking = False

    def close(self) -> None:
        """End it; who is reading is told that it is broken."""
        self._closed = True
        self._call.cancel()


def _event(piece: Any) -> StoreEvent:
    new, old = piece.kv, piece.prev_kv
    if piece.type == pb.DELETE:
        return StoreEvent(new.key, None, new.mod_revision, old.create_revision, old.mod_revision)
    return StoreEvent(new.key, new.value, new.mod_revision, new.create_revision, old.mod_revision)
