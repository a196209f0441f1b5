"""What an informer tells of an object, and which of our own writes are under way.

A reconcile that writes an object knows what it has written: it need not run again because of that. But it must run for
what others write. So an event that stems from a write of a reconcile is kept from that one reconcile only, and only if
it is certain that the write has made the very state of one that was told: it created the object, was guarded by the
resourceVersion that was told last, or the state is that one with nothing but the write done to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

from steersman.client.pager import key_of
from steersman.client.resources import Object
from steersman.client.watch_memory import Key, Known

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "GENERIC"]


class Origin(NamedTuple):
    """The reconcile that writes: a controller's name, and what it was asked."""

    controller: str
    request: Any


@dataclass(slots=True)
class Run:
    """A reconcile. `versions` are the states that it has made, by (apiVersion, kind) and key.

    What is read before it has `begun` to run the user's code is what that code begins with: it need not be told of it.
    What is read later may come too late for what the code has done until then. `may_write` raises LeadershipLost when
    it is not certain any more that this process leads.
    """

    origin: Origin
    may_write: Callable[[], None] | None = None
    versions: dict[tuple[str, str, Key], str] = field(default_factory=dict)
    begun: bool = False
    ended: bool = False


def current_run() -> Run | None:
    """The reconcile whose code runs; None outside of one, and in what has outlived it."""
    run = CURRENT.get()
    return None if run is None or run.ended else run


CURRENT: ContextVar[Run | None] = ContextVar("steersman_reconcile", default=None)
"""The reconcile that has begun this task or thread; see `current_run`."""


@dataclass(slots=True)
class Flight:
    """A write that was sent and not answered yet. `held` are events that may turn out to be its own: resourceVersion,
    whether the object is gone, and what to do if the event is another's. `deleted` are the uids of objects of this name
    that the watch has told to be gone meanwhile."""

    origin: Origin | None
    certain: bool
    deleted: set[str] = field(default_factory=set)
    held: list[tuple[str, bool, Callable[[], None]]] = field(default_factory=list)


@dataclass
class Event:
    """Something that has happened to an object.

    `raw` is the object's state, the last one for DELETED; it is shared by all who hear of the event: leave it as it is.
    `initial` objects were there when the informer began, or were found after a gap; `resync` is nothing but the regular
    look at all objects. "GENERIC" events come from outside of the cluster.
    """

    type: EventType
    raw: Object
    before: Known | None = None
    initial: bool = False
    resync: bool = False
    origin: Origin | None = None
    flights: Sequence[Flight] = ()

    @cached_property
    def key(self) -> Key:
        """(namespace, name)"""
        return key_of(self.raw)

    @cached_property
    def old(self) -> Object | None:
        """The state before a MODIFIED event."""
        if self.resync:
            return self.raw
        return self.before.raw if self.before is not None and self.type == "MODIFIED" else None

    @property
    def metadata(self) -> Object:
        """The metadata of `raw`."""
        found: Object = self.raw.get("metadata") or {}
        return found

    def told_to(self, origin: Origin, act: Callable[[], None]) -> None:
        """Do `act`, unless this event is what the reconcile `origin` has written itself."""
        if self.origin == origin:
            return
        for flight in self.flights:
            if flight.origin == origin:
                flight.held.append((self.metadata.get("resourceVersion") or "", self.type == "DELETED", act))
                return
        act()
