"""One watch at one member: its answers as whole batches of events.

Source: etcd `api/etcdserverpb/rpc.proto`; kube-apiserver `pkg/storage/etcd3/watcher.go` for what it asks for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

from steersman.net.grpc import CallFailed, Stream
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

    def __init__(self, member: Member, call: Stream, abilities: Abilities) -> None:
        self.member = member
        self.abilities = abilities
        self._call = call
        self._pieces: list[Any] = []

    @classmethod
    async def open(cls, client: EtcdClient, start: bytes, end: bytes, revision: int) -> Self:
        """Watch [start, end) from a revision on. Raises StreamBroken."""
        try:
            member, call = await client.watch()
        except StoreUnavailable as error:
            raise StreamBroken(str(error)) from None
        stream = cls(member, call, Abilities(False, False))
        try:
            status = await member.unary(STATUS, pb.StatusRequest(), client.settings.attempt, client.metadata)
        except CallFailed as error:
            stream.close()
            client.avoid(member)
            raise StreamBroken(str(error)) from None
        except BaseException:
            stream.close()
            raise
        stream.abilities = Abilities.of(status.version)
        create = pb.WatchCreateRequest(
            key=start, range_end=end, start_revision=revision, prev_kv=True, progress_notify=True, fragment=True
        )
        stream.ask(pb.WatchRequest(create_request=create))
        return stream

    async def read(self) -> Batch | None:
        """What comes next, None for an answer that says nothing of events. Raises StreamBroken, RevisionCompacted."""
        try:
            message = await self._call.read()
        except CallFailed as error:
            raise StreamBroken(f"{self.member.address}: {error.details}") from None
        if message is None:
            raise StreamBroken(f"{self.member.address} has closed the stream")
        answer = pb.WatchResponse.FromString(message)
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

    def ask_progress(self) -> None:
        """Have the member say how far it is; it answers when it has sent all before."""
        self.ask(pb.WatchRequest(progress_request=pb.WatchProgressRequest()))

    def ask(self, request: Any) -> None:
        """Send a request; if the stream has ended, who reads is told."""
        self._call.write(request.SerializeToString())

    def close(self) -> None:
        """End it; who is reading is told that it is broken."""
        self._call.cancel()


def _event(piece: Any) -> StoreEvent:
    new, old = piece.kv, piece.prev_kv
    if piece.type == pb.DELETE:
        return StoreEvent(new.key, None, new.mod_revision, old.create_revision, old.mod_revision)
    return StoreEvent(new.key, new.value, new.mod_revision, new.create_revision, old.mod_revision)
