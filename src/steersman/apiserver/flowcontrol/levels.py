"""Priority levels: seats, and fair queues for those who have to wait for one.

A request takes a seat while it is worked on. All seats of the server are shared out among the levels by their shares;
a level may borrow what others lend and do not need. Requests that find none wait in one of their level's queues: their
flow is dealt a hand of queues, and the shortest of them is theirs. So one flow, however greedy, is in few queues. The
queue that has had the least of the server's time goes first.

Source: apiserver `pkg/util/flowcontrol/fairqueuing/queueset`, `pkg/util/shufflesharding`.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import field
from hashlib import blake2b
from typing import Any

from steersman._util.dataclass import dataclass

_MIN_COST = 0.0001
"""Seconds of the server's time that a request counts as at least."""
_MAX_EMPTY = 1024
"""Queues that are remembered although nobody waits in them."""


@dataclass(slots=True, eq=False)
class Queue:
    """`used` is the time that its requests took, made up to that of the others when it was empty."""

    waiting: deque[Waiter] = field(default_factory=deque)
    used: float = 0.0


@dataclass(slots=True, eq=False)
class Waiter:
    """A request in a queue; `ready` is set when it may go on."""

    queue: Queue
    ready: asyncio.Future[None]


class Level:
    """One priority level. `nominal` are its own seats; see `share_out`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.uid = ""
        self.exempt = False
        self.shares = 0
        self.nominal = 0
        self.lendable = 0
        self.borrowable: float = math.inf
        self.running = 0
        self.waiting = 0
        self.gone = False
        self._hand = 1
        self._limit = 0
        self._deck = 1
        self._queues: dict[int, Queue] = {}
        self._active: dict[Queue, None] = {}
        self._now = 0.0

    def configure(self, uid: str, spec: Mapping[str, Any]) -> None:
        """Take over a PriorityLevelConfiguration's spec. Those who wait keep their places."""
        self.uid = uid
        self.gone = False
        self.exempt = spec.get("type") == "Exempt"
        part = spec.get("exempt" if self.exempt else "limited") or {}
        self.shares = part.get("nominalConcurrencyShares") or 0
        self._lendable_percent = part.get("lendablePercent") or 0
        self._borrowing_percent = part.get("borrowingLimitPercent")
        queuing = (part.get("limitResponse") or {}).get("queuing")
        self._deck, self._hand, self._limit = 1, 1, 0
        if queuing:
            self._deck, self._hand, self._limit = queuing["queues"], queuing["handSize"], queuing["queueLengthLimit"]

    def set_seats(self, nominal: int) -> None:
        self.nominal = nominal
        self.lendable = nominal * self._lendable_percent // 100
        percent = self._borrowing_percent
        self.borrowable = math.inf if percent is None else nominal * percent // 100

    @property
    def idle_lendable(self) -> int:
        """Seats that others may use now."""
        return max(0, min(self.lendable, self.nominal - self.running - self.waiting))

    def queue_for(self, flow: str) -> Queue | None:
        """Where a request of a flow is to wait; None when there is no place left."""
        numbers = self._deal(flow)
        known = [self._queues.get(number) for number in numbers]
        lengths = [len(queue.waiting) if queue is not None else 0 for queue in known]
        found = self._queues.setdefault(numbers[lengths.index(min(lengths))], Queue())
        # A level without queues lets requests wait for their turn, but not for seats.
        limit = self._limit or max(1, self.nominal)
        return None if len(found.waiting) >= limit else found

    def _deal(self, flow: str) -> list[int]:
        """The numbers of a flow's queues: always the same, and rarely all those of another flow."""
        rest = int.from_bytes(blake2b(flow.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        hand: list[int] = []
        remainders: list[int] = []
        for index in range(self._hand):
            rest, remainder = divmod(rest, self._deck - index)
            card = remainder
            for earlier in reversed(remainders):
                if card >= earlier:
                    card += 1
            remainders.append(remainder)
            hand.append(card)
        return hand

    @property
    def queues(self) -> bool:
        """Whether requests may wait for a seat."""
        return bool(self._limit)

    def wait(self, queue: Queue, loop: asyncio.AbstractEventLoop) -> Waiter:
        """Put a request into a queue."""
        waiter = Waiter(queue, loop.create_future())
        if not queue.waiting:
            queue.used = max(queue.used, self._now)
            self._active[queue] = None
        queue.waiting.append(waiter)
        self.waiting += 1
        return waiter

    def forget(self, waiter: Waiter) -> None:
        """Take a request out of its queue that waits no longer."""
        if waiter in waiter.queue.waiting:
            waiter.queue.waiting.remove(waiter)
            self._left(waiter.queue)

    def next(self) -> Waiter | None:
        """Take out the request whose turn it is."""
        while self._active:
            queue = min(self._active, key=lambda each: each.used)
            self._now = queue.used
            queue.used += _MIN_COST
            waiter = queue.waiting.popleft()
            self._left(queue)
            if not waiter.ready.done():
                return waiter
        return None

    def _left(self, queue: Queue) -> None:
        self.waiting -= 1
        if not queue.waiting:
            del self._active[queue]
            if len(self._queues) > _MAX_EMPTY:
                self._queues = {number: each for number, each in self._queues.items() if each.waiting}


def charge(waiter: Waiter, seconds: float) -> None:
    """Count the time that a request took, so that its flow waits the longer for the next."""
    waiter.queue.used += max(0.0, seconds - _MIN_COST)


def share_out(levels: Sequence[Level], seats: int) -> None:
    """Give each level its part of all seats.

    Source: apiserver `pkg/util/flowcontrol/apf_controller.go` (finishQueueSetReconfigsLocked).
    """
    total = sum(level.shares for level in levels) or 1
    for level in levels:
        level.set_seats(math.ceil(seats * level.shares / total))
